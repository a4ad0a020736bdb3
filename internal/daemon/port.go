package daemon

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/netip"
	"time"

	"topdog/internal/console"
	"topdog/netio"
)

// checkPort tells people as long as nothing arrives on this board's port.
func (d *Daemon) checkPort() {
	silent := d.core != nil && d.core.PortSilent()
	if silent {
		d.lan.excuseWitnesses()
	}
	text := ""
	if d.portDead = d.portSilent.update(d.now(), silent); d.portDead {
		text = fmt.Sprintf("nothing arrives on this board's port (%s), from no board and no other host, so it does not take the address: "+
			"look at its cable, and at its port of the switch (VLAN, spanning tree)", d.link.name)
	}
	d.reporter.set(console.ProblemPortSilent, text)
}

// firewall tells whether something on this board keeps the packets of the group from the daemon: the interface receives
// them, and the sockets do not. Such a board hears nobody, and would take the address from a leader that it does not hear.
type firewall struct {
	arrivals  netio.Arrivals // at the last look
	suspected bool           // some were missing then, but a daemon that has stood still may find them in its sockets
	blocks    bool
}

// FirewallLoss is how many packets must be missing while none is heard, twice in a row. A leader sends ten a second, a
// follower one.
const FirewallLoss = 3

// look compares the counts, and reports whether that has changed what is known.
func (f *firewall) look(a netio.Arrivals) (changed bool) {
	before, blocked := f.arrivals, f.blocks
	few := a.Seen < before.Seen+FirewallLoss
	switch {
	case !a.Counted || !before.Counted || a.Seen < before.Seen || a.Heard < before.Heard: // of other sockets than before
		f.suspected, f.blocks = false, f.blocks && a.Counted
	case a.Heard > before.Heard, a.Own > before.Own && few: // its own packets do not pass a reverse path filter
		f.suspected, f.blocks = false, false
	case few:
		return false // too few to tell; they count next time
	default:
		f.suspected, f.blocks = true, f.blocks || f.suspected
	}
	f.arrivals = a
	return f.blocks != blocked
}

// checkArrivals looks at what has arrived. A board that hears nobody behind its own firewall takes no part. It broadcasts
// a packet each time: it hears that itself when the firewall lets it, even if no other board lives.
func (d *Daemon) checkArrivals(now time.Duration) {
	arrivals, ok := d.group.arrivals()
	if !ok {
		return
	}
	d.checkDuplicate(now, arrivals)
	if d.firewall.look(arrivals) {
		d.reopenLink()
	}
	if d.firewall.blocks && d.link.seen.Link.Up {
		d.group.hearItself()
	}
}

// Blocked says what is wrong on a board behind its own firewall, and what to do.
func Blocked(iface string, port uint16) string {
	return fmt.Sprintf("the group's packets arrive on %s and do not reach this daemon, so a firewall on this board drops them, or its reverse path filter (rp_filter): "+
		"let UDP port %d in, with `ufw allow %[2]d/udp` or `firewall-cmd --permanent --add-port=%[2]d/udp` and `firewall-cmd --reload`. Until then this board takes no part", iface, port)
}

// staysOut tells people of a firewall and of a duplicate, or that they are gone. It reports whether this board takes no
// part because of one.
func (d *Daemon) staysOut() bool {
	blocked := ""
	if d.firewall.blocks {
		blocked = Blocked(d.link.name, d.cfg.Multicast.Port())
	}
	d.reporter.set(console.ProblemFirewall, blocked)
	return d.firewall.blocks || d.reportDuplicate()
}

// duplicate is another machine that also has this board's own address, for example a board with a copy of its card (RFC
// 5227 calls that a conflict). The kernel drops the packets of such a board, so neither hears the other, and when a leader
// ends both would take the floating address.
type duplicate struct {
	mac     net.HardwareAddr // nil for none
	heardAt time.Duration    // when it was heard last
	askedAt time.Duration    // when it was asked for last
	fromOwn uint64           // how many packets had come from this board's own address at the last check
	speaks  time.Duration    // when their number last grew: then a board of the group sends them
	yields  bool             // this board takes no part, and leaves the group to the other one
}

const (
	// duplicateEvery is how often a duplicate is asked whether it is still there. It is gone after duplicateLasts without
	// an answer.
	duplicateEvery = 5 * time.Second
	duplicateLasts = 15 * time.Second
)

// isBoard reports whether the other machine is a board of the group. Unless a program in the kernel counts what it says, it
// may be any machine.
func (u *duplicate) isBoard(now time.Duration) bool {
	return u.speaks > 0 && now-u.speaks < duplicateLasts
}

// probeOwn asks, in a task, whether another machine has this board's own address. Its kernel would answer.
func (d *Daemon) probeOwn() {
	d.duplicate.askedAt = d.now()
	announcer, local := d.address.announcer, d.link.local
	if announcer == nil {
		return
	}
	d.tasks.start(func(ctx context.Context) {
		mac, found, err := announcer.Probe(ctx, local, 1, probeSpacing)
		if err == nil && found { // a link that is down is reported elsewhere
			d.tasks.tryPost(func() { d.rivalHeard(local, mac) })
		}
	})
}

// duplicateHeard handles a packet of another machine with this board's own address.
func (d *Daemon) duplicateHeard(mac net.HardwareAddr) {
	known := bytes.Equal(d.duplicate.mac, mac)
	d.duplicate.mac, d.duplicate.heardAt = bytes.Clone(mac), d.now()
	if !known {
		d.decideDuplicate()
	}
}

// checkDuplicate looks at what has arrived, and forgets a duplicate that is gone.
func (d *Daemon) checkDuplicate(now time.Duration, a netio.Arrivals) {
	u := &d.duplicate
	if a.FromOwn > u.fromOwn {
		u.speaks = now
	}
	u.fromOwn = a.FromOwn
	switch {
	case u.mac == nil && !u.isBoard(now):
		return
	case u.mac != nil && now-u.heardAt >= duplicateLasts && !u.isBoard(now):
		*u = duplicate{fromOwn: u.fromOwn, yields: u.yields} // decided anew below
	case now-u.askedAt >= duplicateEvery:
		d.probeOwn()
	}
	d.decideDuplicate()
}

// decideDuplicate decides which of the two takes no part.
func (d *Daemon) decideDuplicate() {
	u := &d.duplicate
	yields := u.mac != nil && yieldsTo(d.link.seen.Link.HardwareAddr, u.mac, u.isBoard(d.now()))
	if yields == u.yields {
		d.reportDuplicate()
		return
	}
	u.yields = yields
	d.reopenLink()
}

// yieldsTo reports whether the board with the Ethernet address own takes no part because of a duplicate: of two boards of
// the group, the one with the lower Ethernet address.
func yieldsTo(own, other net.HardwareAddr, isBoard bool) bool {
	return isBoard && bytes.Compare(own, other) < 0
}

// JudgeDuplicate says that another machine has this board's own address, and reports whether a daemon would take no part
// because of it. speaks says that a board of the group speaks from that address.
func JudgeDuplicate(n Network, mac net.HardwareAddr, speaks bool) (text string, yields bool) {
	yields = yieldsTo(n.hardware, mac, speaks)
	return duplicated(mac, n.Local.Addr(), yields), yields
}

// duplicated says what is wrong, and what to do.
func duplicated(mac net.HardwareAddr, own netip.Addr, yields bool) string {
	text := fmt.Sprintf("%v has this board's own address %v as well: give one of the two another address; "+
		"the copy of a card keeps a fixed address, and a DHCP identity", mac, own)
	if yields {
		text += ". Until then this board takes no part"
	}
	return text
}

// reportDuplicate warns of a duplicate, or ends the warning. It reports whether this board takes no part because of it.
func (d *Daemon) reportDuplicate() (yields bool) {
	u, text := &d.duplicate, ""
	if u.mac != nil {
		text = duplicated(u.mac, d.link.local, u.yields)
	}
	d.reporter.set(console.ProblemOwnAddress, text)
	return u.yields
}
