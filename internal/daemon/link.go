package daemon

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"

	"topdog/internal/config"
	"topdog/internal/console"
	"topdog/netio"
)

// link is the group's interface as it is at the moment.
type link struct {
	shared
	floating []config.Address // never this board's own
	others   []netip.Addr     // floating addresses of its other groups, likewise
	first    netip.Addr       // the one of them that stands for all, of IPv4

	configured string               // "": the interface whose subnet contains the floating address
	name       string               // "" until the interface was found
	seen       netio.Snapshot       // what the watch saw last
	snapshots  chan netio.Snapshot  // on their way to the loop; only the newest counts
	cover      func(netio.Snapshot) // is given each snapshot before the loop

	// open says that the sockets are open, for the address local and on the interface with this index.
	open   bool
	worked bool // they were open before, with this configuration
	local  netip.Addr
	index  int
	// crowded says that another interface is in the network of local, and that the sockets know it.
	crowded bool

	retry bool // opening them failed, and is to be tried again
}

// ethernetAddressBytes is the length of an Ethernet address, which Wi-Fi has as well. A tunnel has none.
const ethernetAddressBytes = 6

func newLink(s shared, cfg *config.Config) *link {
	return &link{
		shared: s, floating: cfg.Addresses, others: cfg.OtherAddresses, first: cfg.FirstIPv4(), configured: cfg.Interface, name: cfg.Interface,
		snapshots: make(chan netio.Snapshot, 1),
	}
}

// watch watches the group's interface, which need not exist.
func (l *link) watch(ctx context.Context) error {
	o := netio.WatchOptions{Interface: l.configured, Floating: l.first}
	o.Problem = func(err error) { l.tasks.tryPost(func() { l.reporter.log.Warn(err) }) }
	return l.platform.Watch(ctx, o, func(s netio.Snapshot) {
		l.cover(s)
		select {
		case <-l.snapshots: // the loop is busy, and has not seen that one
		default:
		}
		l.snapshots <- s
	})
}

// update takes in the state of the interface, and reports whether its Ethernet address has changed.
func (l *link) update(s netio.Snapshot) (readdressed bool) {
	readdressed = l.open && s.Present && s.Link.Index == l.index && !slices.Equal(s.Link.HardwareAddr, l.seen.Link.HardwareAddr)
	l.seen = s
	if s.Present {
		l.name = s.Link.Name
	}
	return readdressed
}

// report warns that the interface was not found, or is one of several, or that a floating address cannot be there.
func (l *link) report() {
	waits := l.seen.Missing
	if waits != "" {
		waits = "waiting for the interface: " + waits
	}
	l.reporter.set(console.ProblemInterface, waits)
	l.reporter.set(console.ProblemAddressElsewhere, l.misplaced())
	l.reporter.set(console.ProblemInterfaceAmbiguous, l.seen.Ambiguous)
}

// notes describe what works but may not be intended.
func (l *link) notes() (notes []string) {
	for _, note := range []string{l.seen.Ambiguous, l.misplaced()} {
		if note != "" {
			notes = append(notes, note)
		}
	}
	for _, f := range l.floating {
		if l.isOwn(f.IP) {
			notes = append(notes, l.ownText(f.IP))
			continue
		}
		if !l.shares(f.IP) {
			kind := ""
			if f.IP.Is6() {
				kind = "IPv6 "
			}
			notes = append(notes, fmt.Sprintf("%v is in none of the %snetworks of %s (%s): only who has a route to it reaches it, or, where its prefix length is written, who is in its network on the same cable",
				f.IP, kind, l.name, cmp.Or(joined(l.networks(f.IP.Is6())), "it has none")))
			continue
		}
		for _, p := range l.seen.Link.Addrs {
			if f.Bits != config.FromSubnet && f.Bits < p.Bits() && !p.IsSingleIP() && p.Contains(f.IP) {
				notes = append(notes, fmt.Sprintf("with %v/%d the leader takes all of %v for its neighbours, and the network of %s is %v: write %[1]v without a prefix length",
					f.IP, f.Bits, netip.PrefixFrom(f.IP, f.Bits).Masked(), l.name, p.Masked()))
			}
		}
	}
	return notes
}

// misplaced says which floating address cannot be where this interface is, and what to do; "" if none. An IPv6 address keeps no
// board from holding the IPv4 one, so this is a note and a problem, and only for IPv4 a reason to wait.
func (l *link) misplaced() string {
	return cmp.Or(l.noMachine(netip.Addr.Is6), l.elsewhere(netip.Addr.Is4), l.elsewhere(netip.Addr.Is6))
}

// elsewhere says which floating address of a family is only in the network of another interface, and what to do; "" if none
// is. There, nobody would be told where the address is, and no board would notice that the interface is cut off.
func (l *link) elsewhere(ofFamily func(netip.Addr) bool) string {
	if !slices.ContainsFunc(l.ownNetworks(), func(p netip.Prefix) bool { return ofFamily(p.Addr()) }) {
		return "" // the interface is about to get its address
	}
	for _, f := range l.floating {
		if !ofFamily(f.IP) || l.shares(f.IP) {
			continue
		}
		for _, other := range l.seen.Local {
			p := other.Prefix
			if other.Index == l.seen.Link.Index || !slices.Contains(l.seen.Interfaces, other.Index) || p.IsSingleIP() || p.Addr() == f.IP || !p.Contains(f.IP) {
				continue
			}
			return fmt.Sprintf("%v is in the network of %s (%v), and this group is on %s: one group keeps addresses of one network. Choose another address, "+
				`write interface = %[2]q if all are in that network, or make a second group for it`, f.IP, other.Device, p, l.name)
		}
	}
	return ""
}

// noMachine says which floating address of a family no machine may have in the link's networks; "" if none is.
func (l *link) noMachine(ofFamily func(netip.Addr) bool) string {
	for _, f := range l.floating {
		if !ofFamily(f.IP) || !l.reaches(f.IP) || l.hasHost(f.IP) {
			continue
		}
		why := "is the first or the last of the network of " + l.name
		if f.IP.Is6() {
			why = fmt.Sprintf("is the first of the network of %s, which is that of all routers", l.name)
		}
		return fmt.Sprintf("%v is not an address for a machine: it %s; choose another one, on all boards", f.IP, why)
	}
	return ""
}

// refuses says why this board cannot keep the floating addresses on the link as it is, and what to do; "" if it can.
func (l *link) refuses() string {
	if len(l.floating) > 0 && len(l.seen.Link.HardwareAddr) != ethernetAddressBytes {
		return fmt.Sprintf("%s is no Ethernet and no Wi-Fi interface, so no other machine would learn where %v is: write another interface into the config",
			l.name, l.first)
	}
	if text := l.noMachine(netip.Addr.Is4); text != "" {
		return text
	}
	if !l.worked { // a board that works must go on working when another interface appears
		return l.elsewhere(netip.Addr.Is4)
	}
	return ""
}

// crowding reports whether another interface is in the network of the board's own address, and whether that has changed.
func (l *link) crowding() (crowded, changed bool) {
	crowded = l.open && l.seen.SharesNetwork(l.index, l.local)
	changed = crowded != l.crowded
	l.crowded = crowded
	return crowded, changed
}

// owns reports whether an Ethernet address is one of this board's.
func (l *link) owns(mac net.HardwareAddr) bool {
	return slices.ContainsFunc(l.seen.HardwareAddrs, func(own net.HardwareAddr) bool { return slices.Equal(own, mac) })
}

// opened notes that the sockets are open for one of the board's addresses.
func (l *link) opened(local netip.Addr) {
	l.open, l.worked, l.local, l.index, l.retry = true, true, local, l.seen.Link.Index, false
	l.crowded = false
}

// closed notes that they are closed, and whether to try again to open them.
func (l *link) closed(retry bool) { l.open, l.retry = false, retry }

// chooseLocal returns the board's own address on the interface, which is of IPv4 as the election is, or says in words why
// there is none. It keeps the present one while that exists. Otherwise it prefers the one whose subnet contains the floating
// address, and then the first.
func (l *link) chooseLocal() (local netip.Addr, problem string) {
	if !l.seen.Present {
		return local, fmt.Sprintf("the interface %s does not exist (yet)", l.name)
	}
	var first, floating netip.Addr
	for _, p := range l.seen.Link.Addrs {
		switch {
		case !p.Addr().Is4():
		case l.isFloating(p.Addr()):
			if l.isOwn(p.Addr()) {
				floating = p.Addr()
			}
		case l.isOthers(p.Addr()):
		case p.Addr() == l.local:
			return p.Addr(), l.refuses()
		case p.Contains(l.first) && !local.IsValid():
			local = p.Addr()
		case !first.IsValid():
			first = p.Addr()
		}
	}
	if !local.IsValid() {
		local = first
	}
	switch {
	case local.IsValid():
		return local, l.refuses()
	case floating.IsValid():
		return local, l.ownText(floating)
	}
	return local, fmt.Sprintf("the interface %s has no IPv4 address (yet)", l.name)
}

// isOwn reports whether somebody has given a floating address to the interface as the board's own one: topdog adds it alone.
func (l *link) isOwn(addr netip.Addr) bool {
	return slices.ContainsFunc(l.seen.Link.Addrs, func(p netip.Prefix) bool { return p.Addr() == addr && !p.IsSingleIP() })
}

// ownText says what to do about that.
func (l *link) ownText(addr netip.Addr) string {
	return fmt.Sprintf("%v is this board's own address on %s, and a floating address is one that no machine has for itself: choose another one, on all boards",
		addr, l.name)
}

// iface is the name of the interface; "" until it is known.
func (l *link) iface() string { return l.name }

// everywhere are all addresses that this board has, on any interface.
func (l *link) everywhere() []netio.LocalAddr { return l.seen.Local }

// firstFloating is the floating address that stands for all: whoever answers for it holds them all. It is of IPv4.
func (l *link) firstFloating() netip.Addr { return l.first }

func (l *link) floatingAddrs() []netip.Addr { return ipsOf(l.floating) }

func (l *link) isFloating(addr netip.Addr) bool {
	return slices.ContainsFunc(l.floating, func(a config.Address) bool { return a.IP == addr })
}

// isOthers reports whether an address is a floating address of this board's other groups.
func (l *link) isOthers(addr netip.Addr) bool { return slices.Contains(l.others, addr) }

// reaches reports whether an address belongs to the link's networks.
func (l *link) reaches(addr netip.Addr) bool {
	return slices.ContainsFunc(l.seen.Link.Addrs, func(p netip.Prefix) bool { return p.Contains(addr) })
}

// ownNetworks are the networks in which this board has an address of its own on the link.
func (l *link) ownNetworks() (all []netip.Prefix) {
	for _, p := range l.seen.Link.Addrs {
		if !p.IsSingleIP() && !l.isFloating(p.Addr()) && !l.isOthers(p.Addr()) {
			all = append(all, p)
		}
	}
	return all
}

// shares reports whether an address belongs to one of ownNetworks.
func (l *link) shares(addr netip.Addr) bool {
	return slices.ContainsFunc(l.ownNetworks(), func(p netip.Prefix) bool { return p.Contains(addr) })
}

// networks are the link's networks of IPv6, or of IPv4, each once.
func (l *link) networks(ofIPv6 bool) (all []netip.Prefix) {
	for _, p := range l.seen.Link.Addrs {
		if p.Addr().Is6() == ofIPv6 && !p.IsSingleIP() && !slices.Contains(all, p.Masked()) {
			all = append(all, p.Masked())
		}
	}
	return all
}

// hasHost reports whether an address is one that a host of the link's networks may have.
func (l *link) hasHost(addr netip.Addr) bool {
	return l.reaches(addr) && !slices.ContainsFunc(l.seen.Link.Addrs, func(p netip.Prefix) bool { return netio.IsEdge(addr, p) })
}

// prefix returns a floating address with its prefix length. If none is configured, that is the
// length of the subnet that contains the address, or that of the whole address if none does.
func (l *link) prefix(a config.Address) netip.Prefix {
	bits := a.Bits
	if bits <= 0 {
		bits = a.IP.BitLen()
		for _, p := range l.seen.Link.Addrs {
			if p.Contains(a.IP) && p.Addr() != a.IP {
				bits = p.Bits()
			}
		}
	}
	return netip.PrefixFrom(a.IP, bits)
}

// outside is the index of the interface at which frames from outside of this board arrive. On a bridge these are mixed
// with those of its containers, so it is the bridge's uplink, if there is only one.
func (l *link) outside() int {
	if ports := l.seen.Link.Uplinks; len(ports) == 1 {
		return ports[0].Index
	}
	return l.seen.Link.Index
}

// isMixed reports whether some hosts of the link may be inside of this board: containers and virtual machines on a bridge.
func (l *link) isMixed() bool { return len(l.seen.Link.Uplinks) > 0 }

// noCarrier says what is wrong with an interface that is not up, and what to do; "" if it is.
func (l *link) noCarrier() string {
	if l.seen.Link.Up {
		return ""
	}
	if len(l.seen.Link.Uplinks) == 0 {
		return l.name + " has no carrier: check the cable"
	}
	names := make([]string, len(l.seen.Link.Uplinks))
	for i, port := range l.seen.Link.Uplinks {
		names[i] = port.Name
	}
	return fmt.Sprintf("%s has no carrier at %s, by which it leads out of this board: check the cable", l.name, strings.Join(names, " and "))
}

// Network is what a daemon makes of the network of its board.
type Network struct {
	Interface string // "" if none is the one
	Index     int
	Local     netip.Prefix // this board's own address
	// Waits says why the daemon would wait, and what to do; "" if it would take part.
	Waits string
	Down  string   // likewise, of an interface without a carrier
	Notes []string // what works, and should be looked at

	hardware net.HardwareAddr
	owns     func(net.HardwareAddr) bool
}

// Owns reports whether an Ethernet address is one of this board's.
func (n *Network) Owns(mac net.HardwareAddr) bool { return n.owns != nil && n.owns(mac) }

// JudgeNetwork judges a state of the network as a daemon with that configuration does. What it refuses, the daemon waits for.
func JudgeNetwork(cfg *config.Config, s netio.Snapshot) Network {
	l := newLink(shared{}, cfg)
	l.update(s)
	n := Network{Interface: l.name, Index: s.Link.Index, Waits: s.Missing, hardware: s.Link.HardwareAddr, owns: l.owns}
	if n.Waits != "" {
		return n
	}
	n.Down = l.noCarrier()
	var local netip.Addr
	local, n.Waits = l.chooseLocal()
	for _, p := range s.Link.Addrs {
		if p.Addr() == local {
			n.Local = p
		}
	}
	if n.Waits == "" {
		n.Notes = l.notes()
	}
	return n
}
