// Package webpage is what the pages of demo and simulator share: where they are served, how that is written, and
// their common scripts and styles. They are for the person who has started them, and only then for the LAN.
package webpage

import (
	"embed"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strconv"
	"strings"

	"topdog/internal/web"
)

// common are the files that both pages use, besides those of all pages of topdog (package web).
//
//go:embed assets
var common embed.FS

// NewServer returns a server of a page that has files, in their directory "assets", and routes.
func NewServer(files embed.FS, routes web.Routes, hostHint string, report func(error)) (*web.Server, error) {
	assets, _, err := web.Assets("assets", files, common)
	if err != nil {
		return nil, err
	}
	return &web.Server{Routes: append(assets, routes...), Limits: web.DefaultLimits, Names: hostNames, HostHint: hostHint, Report: report}, nil
}

// hostNames are the names of this machine.
func hostNames() []string {
	name, err := os.Hostname()
	if err != nil {
		return nil // numbers and localhost are always allowed
	}
	return []string{name}
}

// DefaultListen is where the page is unless somebody says otherwise: on this machine only, at a port that is free.
const DefaultListen = "127.0.0.1:0"

// CheckListen says what is wrong with where a page shall be, if anything.
func CheckListen(listen string) error {
	host, port, err := net.SplitHostPort(listen)
	if err != nil {
		return fmt.Errorf("%q is no HOST:PORT, such as :8080 for all addresses of this machine", listen)
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return fmt.Errorf("%q: a port is a number from 0 to 65535", listen)
	}
	if _, err := netip.ParseAddr(host); host != "" && err != nil {
		return fmt.Errorf("%q: the host is an address of this machine, or nothing for all of them", listen)
	}
	return nil
}

// URLs are where the page of a listener is; the first is for this machine, if it is served there. What
// stands behind the # is for the page alone, and browsers send it to nobody; it may be empty.
func URLs(port net.Addr, fragment string) []string {
	at, ok := port.(*net.TCPAddr)
	if !ok {
		return nil
	}
	hosts := []string{at.IP.String()}
	if at.IP.IsUnspecified() {
		hosts = append([]string{"127.0.0.1"}, ownAddresses()...)
	}
	if fragment != "" {
		fragment = "#" + fragment
	}
	var all []string
	for _, host := range hosts {
		all = append(all, "http://"+net.JoinHostPort(host, strconv.Itoa(at.Port))+"/"+fragment)
	}
	return all
}

// ownAddresses are those by which other machines may reach this one. If the kernel does not tell
// there are none: whoever serves a projector knows one.
func ownAddresses() (all []string) {
	addrs, _ := net.InterfaceAddrs()
	for _, a := range addrs {
		text, _, _ := strings.Cut(a.String(), "/")
		ip, err := netip.ParseAddr(text)
		if err == nil && ip.IsGlobalUnicast() {
			all = append(all, ip.String())
		}
	}
	return all
}
