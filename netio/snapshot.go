package netio

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
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
	// Addrs are the IPv4 addresses on it with their prefix lengths, sorted.
	Addrs []netip.Prefix
}

// Port is a port of a bridge.
type Port struct {
	Name  string
	Index int
}

// LocalAddr is one IPv4 address of this host, and the index and the name of the interface it is on.
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
	// Local lists every IPv4 address in the network namespace, sorted.
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

// table is what the kernel has told about links and addresses so far. It turns
// netlink messages into snapshots and does nothing else.
//
// Links and addresses come over two sockets, so a message about an address
// may overtake the one about its link. Both are therefore kept by index, and
// neither needs the other to be there first.
type table struct {
	name          string       // of the interface that is watched; "" before one was chosen
	floating      netip.Addr   // chooses it, if it is valid
	defaultRoutes func() []int // decides if several fit
	links         map[int]knownLink
	addrs         map[int]map[netip.Prefix]struct{}
	// gone says that an address may have gone since the last snapshot that was notified. An address that came and went in
	// between is in neither snapshot.
	gone bool
}

// newTable makes a table for the interface with that name. If floating is valid, the table chooses the interface whose
// subnet contains it, and the name is that of the interface in use so far.
func newTable(name string, floating netip.Addr) *table {
	return &table{name: name, floating: floating, links: map[int]knownLink{}, addrs: map[int]map[netip.Prefix]struct{}{}, gone: true}
}

// knownLink is what the kernel has told about one interface.
type knownLink struct {
	Link
	inner  bool   // it is loopback, by which nothing comes in
	kind   string // such as "bridge"
	master int    // the interface, such as a bridge, that it belongs to; 0 for none
}

// link handles one message of the link subscription.
func (t *table) link(u netlink.LinkUpdate) {
	// A bridge reports on its ports in the same message types. There,
	// RTM_DELLINK means that the port left the bridge, not that it is gone.
	if u.IfInfomsg.Family != unix.AF_UNSPEC {
		return
	}
	index := int(u.IfInfomsg.Index)
	if u.Header.Type == unix.RTM_DELLINK {
		delete(t.links, index)
		t.gone = t.gone || len(t.addrs[index]) > 0
		delete(t.addrs, index)
		return
	}
	l := t.links[index]
	// Wireless drivers send events as RTM_NEWLINK without a name or a MAC.
	if u.Link != nil && u.Link.Attrs().Name != "" {
		attrs := u.Link.Attrs()
		l.Name, l.HardwareAddr, l.kind, l.master = attrs.Name, attrs.HardwareAddr, u.Link.Type(), attrs.MasterIndex
	}
	l.Index, l.Up, l.inner = index, isUp(u.IfInfomsg.Flags), u.IfInfomsg.Flags&unix.IFF_LOOPBACK != 0
	t.links[index] = l
}

// uplinks are the ports that connect a bridge to the world outside of this board, and up says whether one of them is
// connected. A bridge that has only ports of the kinds that containers and virtual machines have may lead out by one
// of those, as it does inside of a container. Then uplinks returns none.
func (t *table) uplinks(bridge int) (ports []Port, up bool) {
	if t.links[bridge].kind != "bridge" {
		return nil, false
	}
	for index, port := range t.links {
		if port.master == bridge && port.kind != "veth" && port.kind != "tuntap" {
			ports = append(ports, Port{port.Name, index})
			up = up || port.Up
		}
	}
	sort.Slice(ports, func(i, j int) bool { return ports[i].Index < ports[j].Index })
	return ports, up
}

// isConnected reports whether an interface is up and connected to the world outside of this board.
func (t *table) isConnected(index int) bool {
	ports, up := t.uplinks(index)
	return t.links[index].Up && (len(ports) == 0 || up)
}

// isUp wants three flags: the administrator switched the interface on (IFF_UP),
// it has a carrier (IFF_LOWER_UP), and it is not waiting for something such as
// a Wi-Fi handshake (IFF_RUNNING: operstate is up, or unknown). Many USB
// adapters never report an operstate, so "up" itself must not be asked for.
func isUp(flags uint32) bool {
	const all = unix.IFF_UP | unix.IFF_LOWER_UP | unix.IFF_RUNNING
	return flags&all == all
}

// addr handles one message of the address subscription. A refreshed lifetime
// is such a message too, and changes nothing.
func (t *table) addr(u netlink.AddrUpdate) {
	prefix, ok := prefixOf(&u.LinkAddress)
	if !ok {
		return
	}
	if !u.NewAddr {
		delete(t.addrs[u.LinkIndex], prefix)
		t.gone = true
		return
	}
	if t.addrs[u.LinkIndex] == nil {
		t.addrs[u.LinkIndex] = map[netip.Prefix]struct{}{}
	}
	t.addrs[u.LinkIndex][prefix] = struct{}{}
}

// choose chooses the interface anew. The one in use stays if no other fits, since it may get its address back.
func (t *table) choose() (missing, ambiguous string) {
	if !t.floating.IsValid() {
		return "", ""
	}
	found, err := choose(t.floating, t.subnets(), t.name, t.defaultRoutes)
	switch {
	case err == nil:
		t.name = found.Name
	case t.name == "":
		missing = fmt.Sprintf("find the interface of %s: %v", t.floating, err)
	}
	return missing, found.Ambiguous
}

// subnets lists the host's addresses and their subnets, without those of loopback.
func (t *table) subnets() (all []subnet) {
	for index, prefixes := range t.addrs {
		link, known := t.links[index]
		if !known || link.Name == "" || link.inner {
			continue
		}
		for prefix := range prefixes {
			all = append(all, subnet{link.Name, index, len(link.HardwareAddr) == len(hardwareAddr{}), t.isConnected(index), prefix})
		}
	}
	return all
}

func (t *table) snapshot() Snapshot {
	var s Snapshot
	s.Missing, s.Ambiguous = t.choose()
	for index, link := range t.links {
		if link.Name == t.name {
			s.Present = true
			s.Link = link.Link
			s.Link.Up = t.isConnected(index)
			s.Link.Uplinks, _ = t.uplinks(index)
			s.Link.HardwareAddr = slices.Clone(link.HardwareAddr)
			s.Link.Addrs = slices.Collect(maps.Keys(t.addrs[index]))
			sort.Slice(s.Link.Addrs, func(i, j int) bool { return s.Link.Addrs[i].Compare(s.Link.Addrs[j]) < 0 })
		}
	}
	for index, link := range t.links {
		if !link.inner && !isDeviceName(link.Name) {
			s.Interfaces = append(s.Interfaces, index)
		}
	}
	sort.Ints(s.Interfaces)
	for _, index := range s.Interfaces {
		s.HardwareAddrs = append(s.HardwareAddrs, slices.Clone(t.links[index].HardwareAddr))
	}
	for index, prefixes := range t.addrs {
		for prefix := range prefixes {
			s.Local = append(s.Local, LocalAddr{Prefix: prefix, Index: index, Device: t.links[index].Name})
		}
	}
	sort.Slice(s.Local, func(i, j int) bool {
		a, b := s.Local[i], s.Local[j]
		return cmp.Or(a.Prefix.Compare(b.Prefix), a.Index-b.Index) < 0
	})
	return s
}

// LastAddr returns the last address of an IPv4 network, which is its broadcast address.
func LastAddr(network netip.Prefix) netip.Addr {
	last := network.Masked().Addr().As4()
	for i := network.Bits(); i < 32; i++ {
		last[i/8] |= 1 << (7 - i%8)
	}
	return netip.AddrFrom4(last)
}

// IsEdge reports whether an address is the first or the last one of a network. No machine has these (RFC 1122, section
// 3.2.1.3), except in networks of two addresses (RFC 3021).
func IsEdge(addr netip.Addr, network netip.Prefix) bool {
	return network.Bits() < 31 && (addr == network.Masked().Addr() || addr == LastAddr(network))
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
	t := newTable("", addr)
	if err := list(handle, t); err != nil {
		return Choice{}, fmt.Errorf("netio: find the interface of %s: %w", addr, err)
	}
	found, err := choose(addr, t.subnets(), "", func() []int { return defaultLinks(handle) })
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
