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

// duplicate is another machine that also has this board's own address, for example a board with a copy of its card
// (RFC 5227 calls that a conflict). The kernel drops the packets of such a board, so neither hears the other, and when
// a leader ends both would take the floating address.
type duplicate struct {
	mac     net.HardwareAddr // nil for none
	heardAt time.Duration    // when it was heard last
	askedAt time.Duration    // when it was asked for last
	fromOwn uint64           // how many packets have come from this board's own address, at the last check
	speaks  time.Duration    // when they were last found to be more than before: it is a board of the group
	yields  bool             // this board takes no part, and leaves the group to the other one
}

const (
	// duplicateEvery is how often a duplicate is asked whether it is still there. After duplicateLasts without an
	// answer it is gone.
	duplicateEvery = 5 * time.Second
	duplicateLasts = 15 * time.Second
)

// due is when to check again if nothing happens. The last check was at lookedAt.
func (u *duplicate) due(lookedAt time.Duration) time.Duration {
	if u.mac == nil {
		return never
	}
	return lookedAt + firewallEvery
}

// probeOwn asks, in a task, whether another machine has this board's own address. Its kernel would answer.
func (d *Daemon) probeOwn() {
	d.duplicate.askedAt = d.now()
	announcer, local := d.address.announcer, d.link.local
	if announcer == nil {
		return
	}
	d.tasks.start(func(ctx context.Context) error {
		mac, found, err := announcer.Probe(ctx, local, 1, probeSpacing)
		if err == nil && found {
			d.tasks.tryPost(func() { d.rivalHeard(local, mac) })
		}
		return nil // a link that is down is reported elsewhere
	})
}

// duplicateHeard handles a packet of another machine with this board's own address.
func (d *Daemon) duplicateHeard(mac net.HardwareAddr) {
	if d.link.owns(mac) {
		return // another interface of this board
	}
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
	spoke := u.speaks > 0 && now-u.speaks < duplicateLasts
	switch {
	case u.mac == nil && !spoke:
		return
	case u.mac != nil && now-u.heardAt >= duplicateLasts && !spoke:
		*u = duplicate{fromOwn: u.fromOwn, yields: u.yields} // decided anew below
	case now-u.askedAt >= duplicateEvery:
		d.probeOwn()
	}
	d.decideDuplicate()
}

// decideDuplicate decides which of the two takes no part: of two boards of the group, the one with the lower Ethernet
// address. Unless a program in the kernel counts what the other one says, it may be any machine, and this board does
// not yield.
func (d *Daemon) decideDuplicate() {
	u, now := &d.duplicate, d.now()
	board := u.speaks > 0 && now-u.speaks < duplicateLasts
	yields := u.mac != nil && yieldsTo(d.link.state.HardwareAddr, u.mac, board)
	if yields == u.yields {
		d.reportDuplicate()
		return
	}
	u.yields = yields
	d.reopenLink()
}

// yieldsTo reports whether the board with the Ethernet address own takes no part because of a duplicate with the other
// one. board says that the duplicate is a board of the group.
func yieldsTo(own, other net.HardwareAddr, board bool) bool {
	return board && bytes.Compare(own, other) < 0
}

// JudgeDuplicate says that another machine has this board's own address, and reports whether a daemon would take no
// part because of it. speaks says that a board of the group speaks from that address.
func JudgeDuplicate(n Network, mac net.HardwareAddr, speaks bool) (text string, yields bool) {
	yields = yieldsTo(n.hardware, mac, speaks)
	return duplicated(mac, n.Local.Addr(), yields), yields
}

// duplicated says what is wrong, and what to do.
func duplicated(mac net.HardwareAddr, own netip.Addr, yields bool) string {
	text := fmt.Sprintf("%v has this board's own address %v as well: give one of the two another address; the copy of a card keeps a fixed address, and a DHCP identity", mac, own)
	if yields {
		text += ". Until then this board takes no part"
	}
	return text
}

// reportDuplicate warns of a duplicate, or ends the warning. It reports whether this board takes no part because of it.
func (d *Daemon) reportDuplicate() (yields bool) {
	u := &d.duplicate
	if u.mac == nil {
		d.reporter.solved(console.ProblemOwnAddress)
		return false
	}
	d.reporter.set(console.ProblemOwnAddress, duplicated(u.mac, d.link.local, u.yields))
	return u.yields
}
