package netio

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"sort"
	"strings"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// LastAddr returns the last address of an IPv4 network, which is its broadcast address.
func LastAddr(network netip.Prefix) netip.Addr {
	last := network.Masked().Addr().As4()
	for i := network.Bits(); i < 32; i++ {
		last[i/8] |= 1 << (7 - i%8)
	}
	return netip.AddrFrom4(last)
}

// IsEdge reports whether an address is the first or the last one of a network, which no machine has (RFC 1122, section 3.2.1.3), but in
// networks of two addresses (RFC 3021).
func IsEdge(addr netip.Addr, network netip.Prefix) bool {
	return network.Bits() < 31 && (addr == network.Masked().Addr() || addr == LastAddr(network))
}

// Choice is the interface that an address belongs to.
type Choice struct {
	Name string
	// Prefix is the board's own address on it, with its prefix length.
	Prefix netip.Prefix
	// Ambiguous says that other interfaces fit as well, and what to write into the config; "" if none does.
	Ambiguous string
}

// FindInterface returns the interface whose IPv4 subnet contains addr. The longest prefix wins, as
// in routing, then an interface that is up, then the default route decides, and then the interface that was made first.
// Left out are what is no Ethernet or Wi-Fi, /32 addresses, which have no subnet,
// and addr itself: it may be a left-over of an earlier life.
//
// When no interface fits, the error says what was seen and what to write into the config.
func FindInterface(addr netip.Addr) (Choice, error) {
	handle, err := openHandle()
	if err != nil {
		return Choice{}, err
	}
	defer handle.Close()
	t := newTable("", addr)
	if err := list(handle, t); err != nil {
		return Choice{}, fmt.Errorf("netio: find the interface of %s: %w", addr, err)
	}
	found, err := choose(addr, t.subnets(), "", func() []int { return defaultRoutes(handle) })
	if err != nil {
		return Choice{}, fmt.Errorf("netio: find the interface of %s: %w", addr, err)
	}
	return found, nil
}

// defaultRoutes returns the indexes of the interfaces by which the default routes lead, the
// preferred one first. Without an answer of the kernel, none decides.
func defaultRoutes(handle *netlink.Handle) (indexes []int) {
	routes, err := dump(func() ([]netlink.Route, error) {
		return handle.RouteListFiltered(netlink.FAMILY_V4, &netlink.Route{Table: unix.RT_TABLE_MAIN}, netlink.RT_FILTER_TABLE)
	})
	if err != nil {
		return nil
	}
	sort.SliceStable(routes, func(i, j int) bool { return routes[i].Priority < routes[j].Priority })
	for i := range routes {
		if r := &routes[i]; r.Dst == nil || r.Dst.IP.IsUnspecified() {
			indexes = append(indexes, r.LinkIndex)
		}
	}
	return indexes
}

// subnet is one IPv4 address of the host, and its interface.
type subnet struct {
	name     string
	index    int
	ethernet bool // or Wi-Fi, which looks the same from above
	up       bool
	prefix   netip.Prefix
}

func (s subnet) String() string { return fmt.Sprintf("%s (%s)", s.name, s.prefix) }

// choose picks the interface whose subnet contains addr. The one in use stays for as long as it does: what works
// goes on working when another one appears. An interface may have two addresses in the same subnet: then it is the lower
// one, so that the choice is the same at the next start. defaultRoutes is asked only if it decides.
func choose(addr netip.Addr, all []subnet, inUse string, defaultRoutes func() []int) (Choice, error) {
	var fits, tunnels []subnet
	for _, s := range all {
		switch {
		case !s.prefix.Contains(addr) || s.prefix.Addr() == addr || s.prefix.IsSingleIP() || s.prefix.Addr().IsLoopback():
		case s.ethernet:
			fits = append(fits, s)
		default:
			tunnels = append(tunnels, s)
		}
	}
	if len(fits) == 0 {
		return Choice{}, noneFits(addr, all, tunnels)
	}
	sort.Slice(fits, func(i, j int) bool {
		a, b := fits[i], fits[j]
		if a.up != b.up && a.prefix.Bits() == b.prefix.Bits() {
			return a.up
		}
		return cmp.Or(b.prefix.Bits()-a.prefix.Bits(), a.index-b.index, a.prefix.Addr().Compare(b.prefix.Addr())) < 0
	})
	best := fits[0]
	if i := slices.IndexFunc(fits, func(s subnet) bool { return s.name == inUse }); i >= 0 {
		best = fits[i]
	}
	asLong := func(s subnet) bool { return s.prefix.Bits() >= best.prefix.Bits() }
	rival := func() int {
		return slices.IndexFunc(fits, func(s subnet) bool { return s.name != best.name && asLong(s) })
	}
	if rival() >= 0 && best.name != inUse {
		for _, index := range defaultRoutes() {
			if i := slices.IndexFunc(fits, func(s subnet) bool { return s.index == index && asLong(s) && s.up == best.up }); i >= 0 {
				best = fits[i]
				break
			}
		}
	}
	found := Choice{Name: best.name, Prefix: best.prefix}
	if i := rival(); i >= 0 {
		found.Ambiguous = fmt.Sprintf("both %s and %s contain %s; this board uses %s: write interface = %q into the config, or interface = %q",
			best, fits[i], addr, best.name, best.name, fits[i].name)
	}
	return found, nil
}

// errOwn says what to do with a floating address that is a machine's own one.
var errOwn = errors.New("a floating address is one that no machine has for itself: choose another one, on all boards")

// noneFits says why no interface is the one, and what to do.
func noneFits(addr netip.Addr, all, tunnels []subnet) error {
	sort.Slice(tunnels, func(i, j int) bool { return tunnels[i].String() < tunnels[j].String() })
	var seen []string
	for _, s := range all {
		if !s.prefix.IsSingleIP() && !s.prefix.Addr().IsLoopback() && s.ethernet {
			seen = append(seen, s.String())
		}
	}
	slices.Sort(seen)
	own := slices.IndexFunc(all, func(s subnet) bool { return s.prefix.Addr() == addr && !s.prefix.IsSingleIP() })
	switch {
	case own >= 0:
		return fmt.Errorf("%v is this board's own address on %s; %w", addr, all[own].name, errOwn)
	case len(tunnels) > 0:
		return fmt.Errorf("%s contains it, which is no Ethernet and no Wi-Fi interface, so no other machine would learn where it is; choose an address in one of the networks of %s",
			tunnels[0], cmp.Or(strings.Join(seen, ", "), "an Ethernet or Wi-Fi interface"))
	case len(seen) == 0:
		return fmt.Errorf("%w: no interface has an IPv4 address yet; if this lasts, write interface = \"…\" into the config", ErrLinkDown)
	}
	return fmt.Errorf("no interface has a subnet that contains it; there are %s; choose an address in one of these, or write interface = %q into the config",
		strings.Join(seen, ", "), strings.Fields(seen[0])[0])
}
