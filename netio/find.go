package netio

import (
	"fmt"
	"net/netip"
	"sort"
	"strings"

	"github.com/vishvananda/netlink"
)

// FindInterface returns the interface whose IPv4 subnet contains addr, and the
// board's own address on it with its prefix length. The longest prefix wins, as
// in routing. Loopback is left out, and so are /32 addresses, which have no
// subnet, and addr itself: it may be a left-over of an earlier life.
//
// When no interface or more than one fits, the error says what was seen and
// what to write into the config.
func FindInterface(addr netip.Addr) (name string, prefix netip.Prefix, err error) {
	handle, err := openHandle()
	if err != nil {
		return "", netip.Prefix{}, err
	}
	defer handle.Close()
	subnets, err := subnets(handle)
	if err != nil {
		return "", netip.Prefix{}, fmt.Errorf("netio: find the interface of %s: %w", addr, err)
	}
	found, err := choose(addr, subnets)
	if err != nil {
		return "", netip.Prefix{}, fmt.Errorf("netio: find the interface of %s: %w", addr, err)
	}
	return found.name, found.prefix, nil
}

// subnet is one IPv4 address of the host and the name of its interface.
type subnet struct {
	name   string
	prefix netip.Prefix
}

func (s subnet) String() string { return fmt.Sprintf("%s (%s)", s.name, s.prefix) }

// subnets lists the addresses of the host that could tell where addr belongs.
func subnets(handle *netlink.Handle) ([]subnet, error) {
	links, err := dump(handle.LinkList)
	if err != nil {
		return nil, fmt.Errorf("list links: %w", err)
	}
	names := map[int]string{}
	for _, link := range links {
		names[link.Attrs().Index] = link.Attrs().Name
	}
	addrs, err := listAddrs(handle)
	if err != nil {
		return nil, err
	}
	var all []subnet
	for _, a := range addrs {
		prefix, ok := prefixOf(a.IPNet)
		if ok && names[a.LinkIndex] != "" && !prefix.Addr().IsLoopback() && !prefix.IsSingleIP() {
			all = append(all, subnet{names[a.LinkIndex], prefix})
		}
	}
	sort.Slice(all, func(i, j int) bool { return all[i].String() < all[j].String() })
	return all, nil
}

// choose picks the subnet that contains addr. An interface may have two addresses in
// the same subnet: then it is the lower one, so that the choice is the same at the next start.
func choose(addr netip.Addr, all []subnet) (subnet, error) {
	var best subnet
	var rival subnet // another interface that fits as well as best
	for _, s := range all {
		switch {
		case !s.prefix.Contains(addr) || s.prefix.Addr() == addr || s.prefix.Bits() < best.prefix.Bits():
		case best.name == "" || s.prefix.Bits() > best.prefix.Bits():
			best, rival = s, subnet{}
		case s.name != best.name:
			rival = s
		case s.prefix.Addr().Less(best.prefix.Addr()):
			best = s
		}
	}
	switch {
	case best.name == "" && len(all) == 0:
		return subnet{}, fmt.Errorf("%w: no interface has an IPv4 address yet; if this lasts, write interface = \"…\" into the config", ErrLinkDown)
	case best.name == "":
		seen := make([]string, len(all))
		for i, s := range all {
			seen[i] = s.String()
		}
		return subnet{}, fmt.Errorf("no interface has a subnet that contains it; there are %s; choose an address in one of these, or write interface = %q into the config",
			strings.Join(seen, ", "), all[0].name)
	case rival.name != "":
		return subnet{}, fmt.Errorf("both %s and %s contain it; write interface = %q or interface = %q into the config",
			best, rival, best.name, rival.name)
	}
	return best, nil
}
