package daemon

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"topdog/election"
	"topdog/gpio"
	"topdog/internal/console"
	"topdog/netio"
	"topdog/wire"
)

// act carries out what the core wants done, in order. The order is what keeps
// the address from having two holders: it is released before the RESIGN leaves. What
// only people want to know comes last: to tell the log, the light and systemd takes
// longer than the takeover itself.
func (d *Daemon) act(effects []election.Effect) {
	for i := range effects {
		e := &effects[i]
		d.trace.carries(e)
		if claims(e) && d.fired() {
			continue
		}
		switch e.Kind {
		case election.EffectSend:
			d.send(e.To, &e.Message)
			d.trace.transmitted(e.To, &e.Message)
		case election.EffectAcquire:
			d.take()
		case election.EffectRelease:
			d.release()
		case election.EffectProbe:
			d.probe()
		case election.EffectFinished:
			d.finished = true
		}
		if beats(e) {
			d.watchOver()
		}
	}
	for i := range effects {
		switch e := &effects[i]; e.Kind {
		case election.EffectChange:
			d.changed(e.Change)
		case election.EffectNotice:
			d.noticed(e.Notice)
		}
	}
	d.rouse() // what this slice says is done with, so the core may be called again
}

// send sends a message of the core.
func (d *Daemon) send(to wire.ID, m *wire.Message) {
	if to == wire.Nobody {
		d.transmit(m, netip.AddrPort{})
		return
	}
	way, ok := d.wayTo(to)
	if !ok {
		d.unaddressed(to)
		return
	}
	d.transmit(m, way)
}

// wayTo returns where a board is reached: where it was last heard from, or, if
// it was not heard, where its id says, since an id is an address unless somebody
// configured another one. Such an address must be one that a board of this group
// could have: what is meant for the link must not be sent beyond it.
func (d *Daemon) wayTo(id wire.ID) (netip.AddrPort, bool) {
	if way, ok := d.paths[id]; ok && way.addr.IsValid() {
		return way.addr, true
	}
	addr := id.Addr()
	possible := slices.Contains(d.cfg.Peers, addr) && !d.isFloating(addr)
	for _, p := range d.link.snapshot.Link.Addrs {
		possible = possible || p.Contains(addr) && !d.isFloating(addr)
	}
	return netip.AddrPortFrom(addr, d.cfg.Multicast.Port()), possible
}

// unaddressed counts a message to a board that was never heard and whose id is no
// address. To send it to everybody instead would have others act upon it; the
// algorithms live with a lost message.
func (d *Daemon) unaddressed(id wire.ID) {
	d.counts.unaddressed++
	text := fmt.Sprintf("the address of board %v is not known: nothing is sent to it until it is heard", id)
	if d.news.trouble(console.ProblemNoRoute, text, time.Minute) {
		d.log.Warn(text)
	}
}

// changed tells everybody who cares of a change of role or leader.
func (d *Daemon) changed(c election.Change) {
	d.light()
	d.news.changed(c, d.lastSeen(c))
	if c.NewLeader != wire.Nobody {
		d.news.over(console.ProblemAddressNotFree) // the machine that had the address was a board of the group, or has given it up
	}
	d.console.Changed()
	if d.observe != nil {
		d.observe(c)
	}
	if d.followed != nil && c.LeaderChanged() && c.NewLeader != wire.Nobody && c.NewLeader != d.self {
		d.followed <- d.called(c.NewLeader)
		d.followed = nil
	}
	text := d.describe(c)
	if routine(c) {
		d.log.Debug(text)
	} else {
		d.log.Info(text)
	}
	if c.To != election.Candidate {
		d.report("tell systemd", d.notifier.Status(d.statusLine(c)))
	}
}

// lastSeen is when the leader that was replaced was heard last.
func (d *Daemon) lastSeen(c election.Change) time.Duration {
	if c.From == election.Isolated || c.From == election.Listener || c.From == election.Leader {
		return 0
	}
	p, _ := d.core.Peer(c.OldLeader)
	return p.LastHeard
}

// routine reports whether a change is of no interest to a person: a question
// that was asked, and answered or given up.
func routine(c election.Change) bool {
	switch {
	case c.To == election.Candidate:
		return true
	case c.From == election.Candidate && c.To == election.Follower:
		return !c.LeaderChanged()
	case c.To == election.Follower:
		return !c.LeaderChanged() || c.NewLeader == wire.Nobody
	}
	return false
}

func (d *Daemon) noticed(notice election.Notice) {
	text := notice.String()
	d.news.troubleWith(console.ProblemKind(notice.Kind.Identifier()), notice.Board, text, time.Minute)
	switch notice.Kind {
	case election.NoticeDuplicateID, election.NoticeOtherAlgorithm:
		d.log.Error(text) // one of the boards stays out until somebody mends it
	default:
		d.log.Warn(text)
	}
	if notice.Kind == election.NoticeRival {
		d.counts.rivals++
		d.news.rivalAt = d.now()
	}
}

// patterns says what the light shows in each role.
var patterns = map[election.Role]gpio.Pattern{
	election.Isolated:  gpio.Fault,
	election.Listener:  gpio.Election,
	election.Follower:  gpio.Follower,
	election.Candidate: gpio.Election,
	election.Leader:    gpio.Leader,
	election.Barred:    gpio.Fault,
}

// light shows the role. A board that leads without the address shows a fault:
// the light must not lie.
func (d *Daemon) light() {
	if d.core == nil {
		d.led.show(gpio.Fault)
		return
	}
	role := d.core.Role()
	if role == election.Leader && !d.holding.taken {
		d.led.show(gpio.Fault)
		return
	}
	d.led.show(patterns[role])
}

func isLinkDown(err error) bool { return errors.Is(err, netio.ErrLinkDown) }
