package config

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"topdog/election"
	"topdog/netio"
	"topdog/wire"
)

// Address is a floating address, of IPv4 or of IPv6. Its prefix length is optional: usually it is
// that of the subnet in which the address lies.
type Address struct {
	IP   netip.Addr
	Bits int // 1 to 32, with IPv6 to 128, or FromSubnet
}

// FromSubnet as [Address.Bits] stands for the prefix length of the subnet of the
// interface in which the address lies.
const FromSubnet = 0

// String returns the address as it is written in a file.
func (a Address) String() string {
	if a.Bits == FromSubnet {
		return a.IP.String()
	}
	return a.IP.String() + "/" + strconv.Itoa(a.Bits)
}

// ParseAddress reads "192.168.1.250", "192.168.1.250/24", "fd00:1::250" or "fd00:1::250/64".
func ParseAddress(text string) (Address, error) {
	if several := strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(", ;", r) }); len(several) > 1 {
		return Address{}, refuse(`write one list, with each in quotes of its own: ["`+strings.Join(several, `", "`)+`"]`,
			"%s is not one address", quoted(text))
	}
	host, length, hasLength := strings.Cut(text, "/")
	ip, err := parseFloating(host)
	if err != nil {
		return Address{}, err
	}
	if !hasLength {
		return Address{ip, FromSubnet}, nil
	}
	size, err := strconv.Atoi(length)
	if err != nil || size < 1 || size > ip.BitLen() || length != strconv.Itoa(size) {
		hint := fmt.Sprintf("write a prefix length from 1 to %d, or leave it out: then it is that of the subnet", ip.BitLen())
		if ones := prefixLength(length); ones > 0 && ip.Is4() {
			hint = "write the netmask as a prefix length: " + Quote(host+"/"+strconv.Itoa(ones))
		}
		return Address{}, refuse(hint, "%s is not a prefix length", quoted("/"+length))
	}
	switch network := netip.PrefixFrom(ip, size); {
	case !netio.IsEdge(ip, network):
		return Address{ip, size}, nil
	case ip.Is6():
		return Address{}, refuse("write another address of that network",
			"%s is the address that all routers of the network have (RFC 4291, section 2.6.1)", text)
	case ip == network.Masked().Addr():
		return Address{}, fmt.Errorf("%s is the address of the network itself", text)
	default:
		return Address{}, fmt.Errorf("%s is the broadcast address of its network", text)
	}
}

// parseFloating reads an address that can float, or says precisely what is wrong with the text.
func parseFloating(text string) (netip.Addr, error) {
	plain := strings.Trim(text, "[]")
	ip, err := netip.ParseAddr(plain)
	switch {
	case err == nil && ip.Is6() && plain != text:
		return ip, refuse("write "+Quote(ip.String()), "%s has brackets, which belong only where a port follows", quoted(text))
	case err == nil && ip.Is6():
		return ip, checkFloating6(ip)
	case strings.Count(text, ":") > 1 && !strings.ContainsAny(text, "[] "):
		return ip, fmt.Errorf("%s is not an IPv6 address", quoted(text))
	}
	if ip, err = parseIPv4(text); err != nil {
		return ip, err
	}
	return ip, netio.CheckFloating(ip)
}

// checkFloating6 says why an IPv6 address cannot float, and what to write instead.
func checkFloating6(ip netip.Addr) error {
	err := netio.CheckFloating(ip)
	switch {
	case err == nil:
		return nil
	case ip.Is4In6():
		return refuse("write "+Quote(ip.Unmap().String()), "%v", err)
	case netio.CheckFloating(ip.WithZone("")) == nil:
		return refuse("write "+Quote(ip.WithZone("").String()), "%v", err)
	}
	return refuse("write an unused address of a prefix that the router announces, or of a unique local one such as "+
		Quote("fd00:1::/64"), "%v", err)
}

// prefixLength returns 24 for the netmask "255.255.255.0", and 0 for a text that is
// no netmask.
func prefixLength(mask string) int {
	ip, err := netip.ParseAddr(mask)
	if err != nil || !ip.Is4() {
		return 0
	}
	ones, _ := net.IPMask(ip.AsSlice()).Size()
	return ones
}

// parseIPv4 reads a unicast IPv4 address, or says precisely what is wrong with the text.
func parseIPv4(text string) (netip.Addr, error) {
	ip, err := netip.ParseAddr(text)
	switch {
	case err != nil:
		if _, portErr := netip.ParseAddrPort(text); portErr == nil {
			return ip, fmt.Errorf("%s has a port, only the address belongs here", quoted(text))
		}
		if strings.TrimSpace(text) != text {
			return ip, fmt.Errorf("there is a space in %s", quoted(text))
		}
		if plain := withoutLeadingZeros(text); plain != text {
			return ip, refuse("write "+Quote(plain), "%s has leading zeros, which some programs read as octal", quoted(text))
		}
		return ip, fmt.Errorf("%s is not an IPv4 address", quoted(text))
	case !ip.Is4():
		return ip, fmt.Errorf("%s is an IPv6 address; the boards elect and ask by IPv4", quoted(text))
	case ip.As4()[0] == 0:
		return ip, fmt.Errorf("%s names no host (RFC 1122: 0.0.0.0/8 is \"this network\")", text)
	case ip.IsMulticast():
		return ip, fmt.Errorf("%s is a multicast address", text)
	case ip == limitedBroadcast:
		return ip, fmt.Errorf("%s is the broadcast address", text)
	}
	return ip, nil
}

// limitedBroadcast is the broadcast address of any network that one is in (RFC 919).
var limitedBroadcast = netip.AddrFrom4([4]byte{255, 255, 255, 255})

// withoutLeadingZeros returns the IPv4 address that was probably meant by
// something like 192.168.001.250, or text itself.
func withoutLeadingZeros(text string) string {
	parts := strings.Split(text, ".")
	for i, part := range parts {
		n, err := strconv.ParseUint(part, 10, 8)
		if err != nil {
			return text
		}
		parts[i] = strconv.FormatUint(n, 10)
	}
	if len(parts) != 4 {
		return text
	}
	return strings.Join(parts, ".")
}

// autoID as id stands for the board's own IPv4 address on the group's interface. No two
// boards of a LAN have the same one.
const autoID = "auto"

// parseID reads a number, a dotted IPv4 address, or autoID, which is wire.Nobody.
func parseID(text string) (wire.ID, error) {
	if text == autoID {
		return wire.Nobody, nil
	}
	if strings.ContainsAny(text, ".:") {
		ip, err := parseIPv4(text)
		if err != nil {
			return wire.Nobody, err
		}
		return wire.IDFromAddr(ip), nil
	}
	n, err := strconv.ParseUint(text, 10, 32)
	switch {
	case text == "0":
		return wire.Nobody, errors.New("0 is nobody's id")
	case err != nil:
		return wire.Nobody, fmt.Errorf("%s is not an id", quoted(text))
	}
	return wire.ID(n), nil
}

// parsePeer reads the own address of another board.
func parsePeer(text string) (netip.Addr, error) {
	if host, _, found := strings.Cut(text, "/"); found {
		if _, err := netip.ParseAddr(host); err == nil {
			return netip.Addr{}, refuse("write "+Quote(host),
				"%s has a prefix length, only the address belongs here", quoted(text))
		}
	}
	ip, err := parseIPv4(text)
	if err == nil && ip.IsLoopback() {
		return ip, fmt.Errorf("%s is a loopback address, which is no other board's", ip)
	}
	return ip, err
}

// voters completes the setting of the voters' ids. All boards must know the id of a voter, so it
// cannot be "auto".
func voters(c *Config, k setting) setting {
	k.takes, k.max = aText|aNumber|aList, election.MaxVoters
	return scalar(&c.Voters, func(text string) ([]wire.ID, error) {
		id, err := parseID(text)
		if ip, notIP := netip.ParseAddr(text); notIP == nil && ip.Is6() {
			return nil, err
		}
		if err != nil || id == wire.Nobody {
			return nil, fmt.Errorf("%s is not the id of a voter", quoted(text))
		}
		all := append(c.Voters, id)
		if err := election.CheckVoters(all); err != nil {
			return nil, refuse("delete one of the two: a voter has one vote", "the list %v", err)
		}
		return all, nil
	}, k)
}

// Witness says which hosts of the LAN a board asks whether its own port still receives
// anything. It asks them by ARP, and only while it has reason to doubt that.
type Witness struct {
	Gateway bool         // the default gateway, if it is on the group's interface
	Addrs   []netip.Addr // or these hosts; with neither, nobody is asked
}

// MaxWitnesses is how many hosts may be listed. One that answers is enough.
const MaxWitnesses = 4

// The words that witness takes instead of addresses.
const (
	autoWitness = "auto"
	noWitness   = "none"
)

// witnesses completes the setting of the witnesses: addresses, or one of the words alone.
func witnesses(c *Config, k setting) setting {
	k.takes, k.max = aText|aList, MaxWitnesses
	first := true
	return scalar(&c.Witness, func(text string) (Witness, error) {
		w := c.Witness
		isWord := text == autoWitness || text == noWitness
		if !first && (isWord || len(w.Addrs) == 0) {
			return w, fmt.Errorf("%s and %s stand alone", Quote(autoWitness), Quote(noWitness))
		}
		if isWord {
			first = false
			return Witness{Gateway: text == autoWitness}, nil
		}
		ip, err := parseIPv4(text)
		switch {
		case err != nil:
			return w, err
		case ip.IsLoopback():
			return w, fmt.Errorf("%s is a loopback address, which proves nothing of the network", ip)
		case slices.Contains(w.Addrs, ip):
			return w, refuse("delete one of the two", "%s is listed twice", ip)
		}
		first = false
		return Witness{Addrs: append(slices.Clone(w.Addrs), ip)}, nil
	}, k)
}

// Listen is where `topdog page` listens: a TCP port of one address of this board, or of all of them.
type Listen struct {
	Addr netip.Addr // the zero value stands for all addresses, of IPv4 and of IPv6
	Port uint16     // never 0: nobody would know a port that the kernel chooses
}

// defaultListen has the number of the UDP port by which boards talk. The TCP port of that number is free.
var defaultListen = Listen{Port: 9254}

// String returns the form of the configuration file, which net.Listen takes too.
func (l Listen) String() string {
	if !l.Addr.IsValid() {
		return ":" + strconv.Itoa(int(l.Port))
	}
	return netip.AddrPortFrom(l.Addr, l.Port).String()
}

// ParseListen reads ":9254", "192.168.1.11:9254" or "[::]:9254".
func ParseListen(text string) (Listen, error) {
	host, portText, err := net.SplitHostPort(text)
	if err != nil {
		if port, err := parsePort(text); err == nil {
			return Listen{}, refuse("write "+Quote(Listen{Port: port}.String()), "%s has no colon in front of the port", quoted(text))
		}
		return Listen{}, fmt.Errorf("%s has no port", quoted(text))
	}
	port, err := parsePort(portText)
	if err != nil || host == "" {
		return Listen{Port: port}, err
	}
	addr, err := netip.ParseAddr(host)
	if err != nil {
		return Listen{}, fmt.Errorf("%s is not an address", quoted(host))
	}
	l := Listen{addr.Unmap(), port}
	switch addr := l.Addr; {
	case addr.IsMulticast(), addr == limitedBroadcast:
		return Listen{}, fmt.Errorf("%s is no address of a board", addr)
	case addr.IsLinkLocalUnicast(), addr.Zone() != "":
		return Listen{}, refuse("write "+Quote(Listen{Port: port}.String())+", which is all addresses",
			"%s is an address of one interface", quoted(host))
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

func parseMulticast(text string) (netip.AddrPort, error) {
	ap, err := netip.ParseAddrPort(text)
	if err != nil {
		if ip, ipErr := netip.ParseAddr(text); ipErr == nil && ip.Is4() && ip.IsMulticast() {
			return ap, refuse("write multicast = "+Quote(text+":9254"), "%s has no port", quoted(text))
		}
		return ap, fmt.Errorf("%s is not an address and port", quoted(text))
	}
	if err := netio.CheckGroup(ap); err != nil {
		return ap, err
	}
	return ap, nil
}

// MaxPageHosts is how many names the page may have besides those of the board.
const MaxPageHosts = 16

// parsePageHost reads one name by which browsers ask for the page, and returns it in lower case
// (RFC 4343: names are the same in any case).
func parsePageHost(text string) (string, error) {
	host, port, hasPort := strings.Cut(text, ":")
	_, portErr := parsePort(port)
	_, addrErr := netip.ParseAddr(strings.Trim(text, "[]"))
	switch {
	case addrErr == nil:
		return "", refuse("delete it: the page answers at every address of this board",
			"%s is an address, and not a name", quoted(text))
	case strings.Contains(text, "/"):
		return "", fmt.Errorf("%s is not the name of a host", quoted(text))
	case hasPort && portErr == nil && isLabels(host):
		return "", refuse("write "+Quote(host)+": the page is asked at its own port",
			"%s has a port, and only the name belongs here", quoted(text))
	case strings.HasSuffix(text, ".") && isLabels(strings.TrimSuffix(text, ".")):
		return "", refuse("write "+Quote(strings.TrimSuffix(text, ".")), "%s ends with a dot", quoted(text))
	case strings.HasPrefix(text, "*"):
		return "", refuse(fmt.Sprintf("write each of them, at most %d", MaxPageHosts), "%s stands for many names", quoted(text))
	case !isLabels(text):
		return "", fmt.Errorf("%s is not the name of a host", quoted(text))
	}
	return strings.ToLower(text), nil
}

// isLabels reports whether text is a name of the form of RFC 1123, section 2.1. Names with an
// underscore are accepted as well: some routers assign them, and browsers ask for them.
func isLabels(text string) bool {
	labels := strings.Split(text, ".")
	return isHostName(text) && !slices.ContainsFunc(labels, func(label string) bool {
		return label == "" || len(label) > 63 || label[0] == '-' || label[len(label)-1] == '-'
	})
}

// isHostName reports whether text can be the name of a host. Four numbers cannot: they are
// a misspelt address.
func isHostName(text string) bool {
	const most = 253 // RFC 1035, section 2.3.4, as text
	isDigit := func(r rune) bool { return '0' <= r && r <= '9' }
	odd := func(r rune) bool { return !isLetterOrDigit(r) && !strings.ContainsRune("-_.", r) }
	named := func(r rune) bool { return r != '.' && !isDigit(r) }
	return len(text) <= most && strings.ContainsFunc(text, named) && !strings.ContainsFunc(text, odd)
}

// isLetterOrDigit knows those of ASCII.
func isLetterOrDigit(r rune) bool {
	return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9'
}
