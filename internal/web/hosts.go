package web

import (
	"net"
	"net/netip"
	"slices"
	"strings"
)

// allowed reports whether a request for a host may be answered: if it names none, as HTTP/1.0 may,
// a number, localhost, one of some names, or one of them with .local, as mDNS has it. All others
// may be the name of somebody else's page that resolves to this address now.
func allowed(host string, names []string) bool {
	if host == "" {
		return true
	}
	name := strings.ToLower(strings.TrimSuffix(withoutPort(host), "."))
	if _, err := netip.ParseAddr(name); err == nil || name == "localhost" {
		return true
	}
	return slices.ContainsFunc(names, func(n string) bool {
		n = strings.ToLower(n)
		return n != "" && (name == n || name == n+".local")
	})
}

// withoutPort is the host of a Host header: "[::1]:80", "[::1]", "pi1:80" or "pi1".
func withoutPort(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		return name
	}
	return strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
}
