package netio

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"sort"
	"strings"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// Link is the state of one network interface.
type Link struct {
	Name string
	// Index changes when the interface is deleted and made again. Sockets that
	// were opened on the old index are deaf then.
	Index        int
	HardwareAddr net.HardwareAddr
	// Up means that the interface is switched on and its cable (or its radio)
	// is connected. A switch that forwards nothing still looks like this.
	Up bool
	// Uplinks are the ports that connect a bridge to the world outside of this board, sorted. The bridge is Up if one
	// of them is; the ports of its containers and virtual machines have a carrier without any cable. Other interfaces
	// have no uplinks.
	Uplinks []Port
	// Addrs are the addresses on it with their prefix lengths, sorted, those of IPv4 first. What is only of this link (RFC 4291,
	// section 2.5.6) is not there.
	Addrs []netip.Prefix
}

// Port is a port of a bridge.
type Port struct {
	Name  string
	Index int
}

// LocalAddr is one address of this host, and the index and the name of the interface it is on.
type LocalAddr struct {
	Prefix netip.Prefix
	Index  int
	Device string
}

// Snapshot is what topdog needs to know about the host's network at one moment. It shares no memory with later ones.
type Snapshot struct {
	// Present tells whether the interface exists. Link is zero if not.
	Present bool
	Link    Link
	// Missing says why no interface was chosen, and what to do about it. It is "" if one was chosen or configured.
	Missing string
	// Ambiguous is that of the Choice.
	Ambiguous string
	// Local lists every address in the network namespace, sorted, those of IPv4 first. See Link.Addrs for what is not there.
	Local []LocalAddr
	// Interfaces are the indexes of all interfaces, sorted, but for loopback and our own TUN
	// devices, and HardwareAddrs are their hardware addresses.
	Interfaces    []int
	HardwareAddrs []net.HardwareAddr
}

// Has tells whether the host has the address, on any interface.
func (s Snapshot) Has(addr netip.Addr) bool {
	return slices.ContainsFunc(s.Local, func(l LocalAddr) bool { return l.Prefix.Addr() == addr })
}

// SharesNetwork tells whether another interface than the one with the index is in the network of an address of this
// host. Then packets to that address may arrive at either.
func (s Snapshot) SharesNetwork(index int, local netip.Addr) bool {
	return slices.ContainsFunc(s.Local, func(l LocalAddr) bool {
		return l.Index != index && slices.Contains(s.Interfaces, l.Index) && !l.Prefix.IsSingleIP() && l.Prefix.Contains(local)
	})
}

// network is the links and the addresses of this host, as the kernel lists them.
type network struct {
	links []netlink.Link
	addrs []LocalAddr // sorted
	// defaultRoutes returns the interfaces of the default routes, the preferred one first. It asks the kernel.
	defaultRoutes func() []int
}

// list has the kernel list what exists now.
func list(handle *netlink.Handle) (n network, err error) {
	if n.links, err = dump(handle.LinkList); err != nil {
		return n, fmt.Errorf("list links: %w", err)
	}
	names := map[int]string{}
	for _, link := range n.links {
		names[link.Attrs().Index] = link.Attrs().Name
	}
	addrs, err := listAddrs(handle)
	if err != nil {
		return n, err
	}
	for _, a := range addrs {
		if prefix, ok := prefixOf(a.IPNet); ok {
			n.addrs = append(n.addrs, LocalAddr{prefix, a.LinkIndex, names[a.LinkIndex]})
		}
	}
	sort.Slice(n.addrs, func(i, j int) bool {
		a, b := n.addrs[i], n.addrs[j]
		return cmp.Or(a.Prefix.Compare(b.Prefix), a.Index-b.Index) < 0
	})
	n.defaultRoutes = func() []int { return defaultLinks(handle) }
	return n, nil
}

// uplinks are the ports that connect a bridge to the world outside of this board, and up says whether one of them is
// connected. A bridge that has only ports of the kinds that containers and virtual machines have may lead out by one
// of those, as it does inside of a container. Then uplinks returns none.
func (n *network) uplinks(bridge netlink.Link) (ports []Port, up bool) {
	if bridge.Type() != "bridge" {
		return nil, false
	}
	for _, port := range n.links {
		if attrs := port.Attrs(); attrs.MasterIndex == bridge.Attrs().Index && port.Type() != "veth" && port.Type() != "tuntap" {
			ports = append(ports, Port{attrs.Name, attrs.Index})
			up = up || isUp(attrs.RawFlags)
		}
	}
	sort.Slice(ports, func(i, j int) bool { return ports[i].Index < ports[j].Index })
	return ports, up
}

// isConnected reports whether an interface is up and connected to the world outside of this board.
func (n *network) isConnected(link netlink.Link) bool {
	ports, up := n.uplinks(link)
	return isUp(link.Attrs().RawFlags) && (len(ports) == 0 || up)
}

// isUp wants three flags: the administrator switched the interface on (IFF_UP),
// it has a carrier (IFF_LOWER_UP), and it is not waiting for something such as
// a Wi-Fi handshake (IFF_RUNNING: operstate is up, or unknown). Many USB
// adapters never report an operstate, so "up" itself must not be asked for.
func isUp(flags uint32) bool {
	const all = unix.IFF_UP | unix.IFF_LOWER_UP | unix.IFF_RUNNING
	return flags&all == all
}

// isLoopback reports whether an interface is loopback, by which nothing comes in.
func isLoopback(link netlink.Link) bool { return link.Attrs().RawFlags&unix.IFF_LOOPBACK != 0 }

// subnets lists the host's IPv4 addresses and their subnets, without those of loopback.
func (n *network) subnets() (all []subnet) {
	for _, link := range n.links {
		attrs, up := link.Attrs(), n.isConnected(link)
		ethernet := len(attrs.HardwareAddr) == len(hardwareAddr{})
		for _, l := range n.addrs {
			if l.Index == attrs.Index && !isLoopback(link) && l.Prefix.Addr().Is4() {
				all = append(all, subnet{attrs.Name, attrs.Index, ethernet, up, l.Prefix})
			}
		}
	}
	return all
}

// snapshot describes the interface with a name, and all addresses.
func (n *network) snapshot(name string) Snapshot {
	s := Snapshot{Local: n.addrs}
	links := slices.Clone(n.links)
	sort.Slice(links, func(i, j int) bool { return links[i].Attrs().Index < links[j].Attrs().Index })
	for _, link := range links {
		attrs := link.Attrs()
		mac := slices.Clone(attrs.HardwareAddr) // of which the list has a part of a large buffer
		if attrs.Name == name {
			s.Present = true
			s.Link = Link{Name: name, Index: attrs.Index, HardwareAddr: mac, Up: n.isConnected(link)}
			s.Link.Uplinks, _ = n.uplinks(link)
		}
		if !isLoopback(link) && !isDeviceName(attrs.Name) {
			s.Interfaces = append(s.Interfaces, attrs.Index)
			s.HardwareAddrs = append(s.HardwareAddrs, mac)
		}
	}
	for _, l := range n.addrs {
		if s.Present && l.Index == s.Link.Index {
			s.Link.Addrs = append(s.Link.Addrs, l.Prefix)
		}
	}
	return s
}

// LastAddr returns the last address of a network. That of an IPv4 network is its broadcast address.
func LastAddr(network netip.Prefix) netip.Addr {
	last := network.Masked().Addr().AsSlice()
	for i := network.Bits(); i < 8*len(last); i++ {
		last[i/8] |= 1 << (7 - i%8)
	}
	addr, _ := netip.AddrFromSlice(last) // its length is right
	return addr
}

// IsEdge reports whether an address is one that no machine of a network has: in IPv4 the first and the last one (RFC 1122,
// section 3.2.1.3), and in IPv6 the first one, which is that of all routers (RFC 4291, section 2.6.1). In networks of two
// addresses machines have both (RFC 3021, RFC 6164).
func IsEdge(addr netip.Addr, network netip.Prefix) bool {
	first := network.Masked().Addr()
	return network.Bits() < first.BitLen()-1 && (addr == first || addr.Is4() && addr == LastAddr(network))
}

// Choice is the interface that an address belongs to.
type Choice struct {
	Name string
	// Prefix is the board's own address on it, with its prefix length.
	Prefix netip.Prefix
	// Ambiguous says which other interface fits as well, and what to write into the config; "" if none does.
	Ambiguous string
}

// FindInterface returns the interface whose IPv4 subnet contains addr. The longest prefix wins, as
// in routing, then an interface that is up, then the one of the default route, and then the one that was made first.
// It ignores interfaces other than Ethernet and Wi-Fi, /32 addresses, which have no subnet,
// and addr itself, which may be a left-over of an earlier daemon.
//
// When no interface fits, the error says what was seen and what to write into the config.
func FindInterface(addr netip.Addr) (Choice, error) {
	handle, err := openHandle()
	if err != nil {
		return Choice{}, err
	}
	defer handle.Close()
	n, err := list(handle)
	if err != nil {
		return Choice{}, fmt.Errorf("netio: find the interface of %s: %w", addr, err)
	}
	found, err := choose(addr, n.subnets(), "", n.defaultRoutes)
	if err != nil {
		return Choice{}, fmt.Errorf("netio: find the interface of %s: %w", addr, err)
	}
	return found, nil
}

// defaultRoutes returns the default routes, the preferred one first.
func defaultRoutes(handle *netlink.Handle) ([]netlink.Route, error) {
	routes, err := dump(func() ([]netlink.Route, error) {
		return handle.RouteListFiltered(netlink.FAMILY_V4, &netlink.Route{Table: unix.RT_TABLE_MAIN}, netlink.RT_FILTER_TABLE)
	})
	sort.SliceStable(routes, func(i, j int) bool { return routes[i].Priority < routes[j].Priority })
	return slices.DeleteFunc(routes, func(r netlink.Route) bool { return r.Dst != nil && !r.Dst.IP.IsUnspecified() }), err
}

// defaultLinks returns the indexes of the interfaces of the default routes, the preferred one first; none if the
// kernel does not answer.
func defaultLinks(handle *netlink.Handle) (indexes []int) {
	routes, err := defaultRoutes(handle)
	for i := 0; err == nil && i < len(routes); i++ {
		indexes = append(indexes, routes[i].LinkIndex)
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

// choose picks the interface whose subnet contains addr. The one in use stays for as long as it fits, so that what works
// goes on working when another one appears. If the interface has two addresses in the same subnet, choose takes the lower
// one, so that the choice is the same at the next start. defaultRoutes is called only if it decides.
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

// errOwn says what to do if a floating address is a machine's own address.
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
