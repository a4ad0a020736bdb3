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

// duplicate is another machine that has this board's own address as well, as a copy of its card does (RFC 5227 calls it a conflict). The
// kernel drops what such a board says, and so neither hears the other: after the leader's end both would take the address.
type duplicate struct {
	mac     net.HardwareAddr // nil for none
	heardAt time.Duration    // when it was heard last
	askedAt time.Duration    // when it was asked for last
	fromOwn uint64           // what has come from this board's own address, as it was looked at last
	speaks  time.Duration    // when that was more than before: it is a board of the group
	yields  bool             // this board leaves the group to that one
}

const (
	// duplicateEvery is how often a duplicate is asked whether it is there still, and duplicateLasts how long it is believed without an answer.
	duplicateEvery = 5 * time.Second
	duplicateLasts = 15 * time.Second
)

// due is when to look again though nothing happens, if it was looked then.
func (u *duplicate) due(lookedAt time.Duration) time.Duration {
	if u.mac == nil {
		return never
	}
	return lookedAt + firewallEvery
}

// probeOwn asks, beside the loop, whether another machine has this board's own address. Its kernel answers.
func (d *Daemon) probeOwn() {
	d.duplicate.askedAt = d.now()
	announcer, local := d.address.announcer, d.link.local
	d.tasks.start(func(ctx context.Context) error {
		mac, found, err := announcer.Probe(ctx, local, 1, probeSpacing)
		if err == nil && found {
			d.tasks.tryPost(func() { d.rivalHeard(local, mac) })
		}
		return nil // a link that is down is reported elsewhere
	})
}

// duplicateHeard is told of another machine with this board's own address.
func (d *Daemon) duplicateHeard(mac net.HardwareAddr) {
	if d.link.owns(mac) {
		return // by another interface of this board
	}
	known := bytes.Equal(d.duplicate.mac, mac)
	d.duplicate.mac, d.duplicate.heardAt = bytes.Clone(mac), d.now()
	if !known {
		d.decideDuplicate()
	}
}

// checkDuplicate takes in what has arrived, and forgets a duplicate that is gone.
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
		*u = duplicate{fromOwn: u.fromOwn, yields: u.yields} // until that is decided, below
	case now-u.askedAt >= duplicateEvery && d.address.announcer != nil:
		d.probeOwn()
	}
	d.decideDuplicate()
}

// decideDuplicate decides which of the two takes no part: of two boards of the group, the one whose Ethernet address is the lower one.
// Where no program in the kernel counts what the other says, it may be any machine, and nobody gives way.
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

// yieldsTo reports whether the board with the first Ethernet address takes no part while a duplicate has the second one, which is a board.
func yieldsTo(own, other net.HardwareAddr, board bool) bool {
	return board && bytes.Compare(own, other) < 0
}

// JudgeDuplicate says that another machine has this board's own address, and reports whether a daemon would take no part because of it. speaks
// says that a board of the group speaks from that address.
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

// reportDuplicate tells people of a duplicate, or that it is gone, and reports whether this board takes no part because of it.
func (d *Daemon) reportDuplicate() (yields bool) {
	u := &d.duplicate
	if u.mac == nil {
		d.reporter.solved(console.ProblemOwnAddress)
		return false
	}
	d.reporter.warn(console.ProblemOwnAddress, duplicated(u.mac, d.link.local, u.yields), forever)
	return u.yields
}
