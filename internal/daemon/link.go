package daemon

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"time"

	"topdog/internal/config"
	"topdog/internal/console"
	"topdog/netio"
)

// link is the group's interface as it is at the moment.
type link struct {
	shared
	floating []config.Address // never this board's own

	configured string // "": the interface whose subnet contains the floating address
	name       string // "" until the interface was found
	state      netio.Link
	present    bool
	missing    string                                 // why no interface was found, and what to do
	ambiguous  string                                 // which other interfaces fit as well, and what to do
	hardware   []net.HardwareAddr                     // the Ethernet addresses of this board
	elsewhere  string                                 // a floating address is in the network of another interface, and what to do
	crowds     func(index int, local netip.Addr) bool // whether another interface is in that network
	snapshots  chan netio.Snapshot                    // on their way to the loop; only the newest counts
	cover      func(netio.Snapshot)                   // is given each snapshot before the loop

	// open says that the sockets are open, for the address local and on the interface with this index.
	open   bool
	worked bool // they were open before, with this configuration
	local  netip.Addr
	index  int
	// crowded says that another interface is in the network of local, and that the sockets know it.
	crowded bool

	retryAt time.Duration // when to try again to open them
}

// retryEvery is how often opening the link is tried again while no change of the link comes.
const retryEvery = time.Second

// ethernetAddressBytes is the length of an Ethernet address, which Wi-Fi has as well. A tunnel has none.
const ethernetAddressBytes = 6

func newLink(s shared, cfg *config.Config) *link {
	return &link{
		shared: s, floating: cfg.Addresses, configured: cfg.Interface, name: cfg.Interface,
		snapshots: make(chan netio.Snapshot, 1), retryAt: never,
	}
}

// notes are what a person may not have meant.
func (l *link) notes() (notes []string) {
	if l.ambiguous != "" {
		notes = append(notes, l.ambiguous)
	}
	if l.elsewhere != "" {
		notes = append(notes, l.elsewhere)
	}
	for _, f := range l.floating {
		if !l.shares(f.IP) {
			notes = append(notes, fmt.Sprintf("%v is in none of the networks of %s (%s): only who has a route to it, or is in its network on the same cable, reaches it", f.IP, l.name, joined(l.networks())))
			continue
		}
		for _, p := range l.state.Addrs {
			if f.Bits != config.FromSubnet && f.Bits < p.Bits() && !p.IsSingleIP() && p.Contains(f.IP) {
				notes = append(notes, fmt.Sprintf("with %v/%d the leader takes all of %v for its neighbours, and the network of %s is %v: write %[1]v without a prefix length",
					f.IP, f.Bits, netip.PrefixFrom(f.IP, f.Bits).Masked(), l.name, p.Masked()))
			}
		}
	}
	return notes
}

// watch watches the group's interface, which need not exist.
func (l *link) watch(ctx context.Context) error {
	o := netio.WatchOptions{Interface: l.configured, Floating: l.floating[0].IP}
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

// update notes the state of the interface, and reports whether its Ethernet address has changed.
func (l *link) update(s netio.Snapshot) (readdressed bool) {
	readdressed = l.open && s.Present && s.Link.Index == l.index && !slices.Equal(s.Link.HardwareAddr, l.state.HardwareAddr)
	l.state, l.present, l.missing, l.ambiguous, l.crowds = s.Link, s.Present, s.Missing, s.Ambiguous, s.SharesNetwork
	l.hardware = s.HardwareAddrs
	if s.Present {
		l.name = s.Link.Name
	}
	l.elsewhere = l.findElsewhere(s)
	return readdressed
}

// findElsewhere says which floating address is only in the network of another interface. There, nobody would be told
// where the address is, and no board would notice that the interface is cut off.
func (l *link) findElsewhere(s netio.Snapshot) string {
	if len(l.ownNetworks()) == 0 {
		return "" // it is about to get its address
	}
	for _, f := range l.floating {
		if l.shares(f.IP) {
			continue
		}
		for _, other := range s.Local {
			p := other.Prefix
			if other.Index == s.Link.Index || !slices.Contains(s.Interfaces, other.Index) || p.IsSingleIP() || p.Addr() == f.IP || !p.Contains(f.IP) {
				continue
			}
			return fmt.Sprintf("%v is in the network of %s (%v), and this group is on %s: one group keeps addresses of one network. Choose another address, "+
				`write interface = %[2]q if all are in that network, or make a second group for it`, f.IP, other.Device, p, l.name)
		}
	}
	return ""
}

// refuses says why this board cannot keep the floating addresses on the link as it is, and what to do; "" if it can.
func (l *link) refuses() string {
	if len(l.state.HardwareAddr) != ethernetAddressBytes {
		return fmt.Sprintf("%s is no Ethernet and no Wi-Fi interface, so no other machine would learn where %v is: write another interface into the config", l.name, l.floating[0].IP)
	}
	for _, f := range l.floating {
		if l.reaches(f.IP) && !l.hasHost(f.IP) {
			return fmt.Sprintf("%v is not an address for a machine: it is the first or the last of the network of %s; choose another one, on all boards", f.IP, l.name)
		}
	}
	if !l.worked { // what works goes on working when another interface appears
		return l.elsewhere
	}
	return ""
}

// crowding reports whether another interface is in the network of the board's own address, and whether that has changed.
func (l *link) crowding() (crowded, changed bool) {
	crowded = l.open && l.crowds(l.index, l.local)
	changed = crowded != l.crowded
	l.crowded = crowded
	return crowded, changed
}

// owns reports whether an Ethernet address is one of this board's.
func (l *link) owns(mac net.HardwareAddr) bool {
	return slices.ContainsFunc(l.hardware, func(own net.HardwareAddr) bool { return slices.Equal(own, mac) })
}

// report warns that the interface was not found, or is one of several, or that a floating address belongs to another one.
func (l *link) report() {
	waits := l.missing
	if waits != "" {
		waits = "waiting for the interface: " + waits
	}
	l.reporter.set(console.ProblemInterface, waits)
	l.reporter.set(console.ProblemAddressElsewhere, l.elsewhere)
	l.reporter.set(console.ProblemInterfaceAmbiguous, l.ambiguous)
}

// opened notes that the sockets are open for one of the board's addresses.
func (l *link) opened(local netip.Addr) {
	l.open, l.worked, l.local, l.index, l.retryAt = true, true, local, l.state.Index, never
	l.crowded = false
}

// closed notes that they are closed, and when to try again to open them.
func (l *link) closed(retryAt time.Duration) { l.open, l.retryAt = false, retryAt }

// chooseLocal returns the board's own address on the interface, or says in words
// why there is none. It is the one used so far if that is still there, otherwise the one
// whose subnet contains the floating address, otherwise the first.
func (l *link) chooseLocal() (local netip.Addr, problem string) {
	if !l.present {
		return local, fmt.Sprintf("the interface %s does not exist (yet)", l.name)
	}
	var first netip.Addr
	for _, p := range l.state.Addrs {
		switch {
		case l.isFloating(p.Addr()):
		case p.Addr() == l.local:
			return p.Addr(), l.refuses()
		case p.Contains(l.floating[0].IP) && !local.IsValid():
			local = p.Addr()
		case !first.IsValid():
			first = p.Addr()
		}
	}
	if !local.IsValid() {
		local = first
	}
	if own := l.ownFloating(); !local.IsValid() && own.IsValid() {
		return local, fmt.Sprintf("%v is this board's own address on %s, and a floating address is one that no machine has for itself: choose another one, on all boards", own, l.name)
	}
	if !local.IsValid() {
		return local, fmt.Sprintf("the interface %s has no IPv4 address (yet)", l.name)
	}
	return local, l.refuses()
}

// ownFloating returns a floating address that somebody has given to the interface, with its subnet, as the board's own
// address.
func (l *link) ownFloating() (own netip.Addr) {
	for _, p := range l.state.Addrs {
		if l.isFloating(p.Addr()) && !p.IsSingleIP() {
			return p.Addr()
		}
	}
	return own
}

// iface is the name of the interface; "" until it is known.
func (l *link) iface() string { return l.name }

// firstFloating is the floating address that is asked for to find out who holds them all.
func (l *link) firstFloating() netip.Addr { return l.floating[0].IP }

func (l *link) floatingAddrs() (all []netip.Addr) {
	for _, f := range l.floating {
		all = append(all, f.IP)
	}
	return all
}

func (l *link) isFloating(addr netip.Addr) bool {
	return slices.ContainsFunc(l.floating, func(a config.Address) bool { return a.IP == addr })
}

// reaches reports whether an address belongs to the link's networks.
func (l *link) reaches(addr netip.Addr) bool {
	return slices.ContainsFunc(l.state.Addrs, func(p netip.Prefix) bool { return p.Contains(addr) })
}

// ownNetworks are the networks in which this board has an address of its own on the link.
func (l *link) ownNetworks() (all []netip.Prefix) {
	for _, p := range l.state.Addrs {
		if !p.IsSingleIP() && !l.isFloating(p.Addr()) {
			all = append(all, p)
		}
	}
	return all
}

// shares reports whether an address belongs to one of ownNetworks.
func (l *link) shares(addr netip.Addr) bool {
	return slices.ContainsFunc(l.ownNetworks(), func(p netip.Prefix) bool { return p.Contains(addr) })
}

// networks are the link's networks, each once.
func (l *link) networks() (all []netip.Prefix) {
	for _, p := range l.state.Addrs {
		if !p.IsSingleIP() && !slices.Contains(all, p.Masked()) {
			all = append(all, p.Masked())
		}
	}
	return all
}

// hasHost reports whether an address is one that a host of the link's networks may have.
func (l *link) hasHost(addr netip.Addr) bool {
	return l.reaches(addr) && !slices.ContainsFunc(l.state.Addrs, func(p netip.Prefix) bool { return netio.IsEdge(addr, p) })
}

// prefix returns a floating address with its prefix length. If none is configured, that is the
// length of the subnet that contains the address, or 32 if none does.
func (l *link) prefix(a config.Address) netip.Prefix {
	bits := a.Bits
	if bits <= 0 {
		bits = 32
		for _, p := range l.state.Addrs {
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
	if ports := l.state.Uplinks; len(ports) == 1 {
		return ports[0].Index
	}
	return l.state.Index
}

// isMixed reports whether some hosts of the link may be inside of this board: containers and virtual machines on a bridge.
func (l *link) isMixed() bool { return len(l.state.Uplinks) > 0 }

// noCarrier says what is wrong with an interface that is not up, and what to do; "" if it is.
func (l *link) noCarrier() string {
	if l.state.Up {
		return ""
	}
	if len(l.state.Uplinks) == 0 {
		return l.name + " has no carrier: check the cable"
	}
	names := make([]string, len(l.state.Uplinks))
	for i, port := range l.state.Uplinks {
		names[i] = port.Name
	}
	return fmt.Sprintf("%s has no carrier at %s, by which it leads out of this board: check the cable", l.name, strings.Join(names, " and "))
}
