package daemon

import (
	"fmt"
	"net"
	"net/netip"

	"topdog/internal/config"
	"topdog/netio"
)

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
	n := Network{Interface: l.name, Index: l.state.Index, Waits: l.missing, hardware: l.state.HardwareAddr, owns: l.owns}
	if n.Waits != "" {
		return n
	}
	n.Down = l.noCarrier()
	var local netip.Addr
	local, n.Waits = l.chooseLocal()
	for _, p := range l.state.Addrs {
		if p.Addr() == local {
			n.Local = p
		}
	}
	if n.Waits == "" {
		n.Notes = l.notes()
	}
	return n
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
