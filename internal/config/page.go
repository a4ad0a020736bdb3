package config

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// Listen is where `topdog page` listens: a TCP port, of one address of this board or of all.
type Listen struct {
	Addr netip.Addr // the zero value: all addresses, of IPv4 and of IPv6
	Port uint16     // never 0, with which nobody would know the port
}

// defaultListen has the number of the boards' UDP port, which TCP does not use.
var defaultListen = Listen{Port: 9254}

// MaxPageHosts is how many more names the page may have.
const MaxPageHosts = 16

// String returns it as it is written in a file, and as net.Listen takes it.
func (l Listen) String() string {
	if !l.Addr.IsValid() {
		return ":" + strconv.Itoa(int(l.Port))
	}
	return netip.AddrPortFrom(l.Addr, l.Port).String()
}

// ParseListen reads ":9254", "192.168.1.11:9254" or "[::]:9254".
func ParseListen(text string) (Listen, error) {
	const example = `write a TCP port of all addresses, for example ":9254", or of one, for example "192.168.1.11:9254" or "[::1]:9254"`
	colon := strings.LastIndexByte(text, ':')
	if _, err := netip.ParseAddr(text); colon < 0 || err == nil || strings.HasSuffix(text, "]") {
		if port, err := parsePort(text); err == nil {
			return Listen{}, refuse("write "+Quote(Listen{Port: port}.String()), "%s has no colon in front of the port", quoted(text))
		}
		return Listen{}, refuse(example, "%s has no port", quoted(text))
	}
	port, err := parsePort(text[colon+1:])
	if err != nil {
		return Listen{}, refuse(example, "%v", err)
	}
	if colon == 0 {
		return Listen{Port: port}, nil
	}
	ap, err := netip.ParseAddrPort(text)
	if err != nil {
		return Listen{}, refuse(example, "%s is not an address", quoted(text[:colon]))
	}
	l := Listen{ap.Addr().Unmap(), port}
	switch addr := l.Addr; {
	case addr.IsMulticast(), addr == netip.AddrFrom4([4]byte{255, 255, 255, 255}):
		return Listen{}, refuse(example, "%s is no address of a board", addr)
	case addr.IsLinkLocalUnicast(), addr.Zone() != "":
		return Listen{}, refuse("write "+Quote(Listen{Port: port}.String())+", which is all addresses", "%s is an address of one interface", quoted(text[:colon]))
	}
	return l, nil
}

// parsePort reads a port that can be written into a browser.
func parsePort(text string) (uint16, error) {
	port, err := strconv.ParseUint(text, 10, 16)
	if err != nil || port == 0 || text != strconv.FormatUint(port, 10) {
		return 0, fmt.Errorf("%s is not a port from 1 to 65535", quoted(text))
	}
	return uint16(port), nil
}

// parseHost reads one name under which browsers know the page. Names have no case (RFC 4343).
func parseHost(text string) (string, error) {
	const example = `write a name of this board, for example "topdog.lan"`
	host, port, hasPort := strings.Cut(text, ":")
	_, portErr := parsePort(port)
	_, addrErr := netip.ParseAddr(strings.Trim(text, "[]"))
	switch {
	case addrErr == nil:
		return "", refuse("delete it: the page answers at every address of this board", "%s is an address, and not a name", quoted(text))
	case strings.Contains(text, "/"):
		return "", refuse(example+", without http:// and without a path", "%s is not the name of a host", quoted(text))
	case hasPort && portErr == nil && isLabels(host):
		return "", refuse("write "+Quote(host)+": the page is asked at its own port", "%s has a port, and only the name belongs here", quoted(text))
	case strings.HasSuffix(text, ".") && isLabels(strings.TrimSuffix(text, ".")):
		return "", refuse("write "+Quote(strings.TrimSuffix(text, ".")), "%s ends with a dot", quoted(text))
	case strings.HasPrefix(text, "*"):
		return "", refuse(fmt.Sprintf("write each of them, at most %d", MaxPageHosts), "%s stands for many names", quoted(text))
	case !isLabels(text):
		return "", refuse(example, "%s is not the name of a host", quoted(text))
	}
	return strings.ToLower(text), nil
}

// isLabels reports whether text is a name of the form of RFC 1123, section 2.1. An underscore is not,
// but browsers ask for such names, and some routers give them.
func isLabels(text string) bool {
	labels := strings.Split(text, ".")
	return isHostName(text) && !slices.ContainsFunc(labels, func(label string) bool {
		return label == "" || len(label) > 63 || label[0] == '-' || label[len(label)-1] == '-'
	})
}

func oneMorePageHost(c *Config, text string) ([]string, error) {
	host, err := parseHost(text)
	if err != nil {
		return nil, err
	}
	if slices.Contains(c.PageHosts, host) {
		return nil, refuse("delete one of the two", "%s is listed twice", host)
	}
	return append(c.PageHosts, host), nil
}

// checkPage refuses to listen on what is this board's only while it leads.
func (r *reading) checkPage() {
	if r.refused["page_listen"] {
		return
	}
	for _, a := range r.cfg.Addresses {
		if l := r.cfg.PageListen; l.Addr == a.IP {
			r.refuse(r.field("page_listen"), r.values["page_listen"][0],
				fmt.Sprintf("%s is the floating address, which this board has only while it leads", a.IP),
				"write "+Quote(Listen{Port: l.Port}.String())+": then the page of the leader answers there, and each page at its own address")
		}
	}
}
