package daemon

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"topdog/election"
	"topdog/gpio"
	"topdog/netio"
	"topdog/wire"
)

// act carries out what the core wants done, in order. The order is what keeps
// the address from having two holders: it is released before the RESIGN leaves. What
// only people want to know comes last: to tell the log, the light and systemd takes
// longer than the takeover itself.
func (n *Node) act(effects []election.Effect) {
	for i := range effects {
		e := &effects[i]
		n.trace.carries(e)
		if claims(e) && n.fired() {
			continue
		}
		switch e.Kind {
		case election.EffectSend:
			n.send(e.To, &e.Message)
			n.trace.transmitted(e.To, &e.Message)
		case election.EffectAcquire:
			n.take()
		case election.EffectRelease:
			n.release()
		case election.EffectProbe:
			n.probe()
		case election.EffectFinished:
			n.finished = true
		}
		if beats(e) {
			n.watchOver()
		}
	}
	for i := range effects {
		switch e := &effects[i]; e.Kind {
		case election.EffectChange:
			n.changed(e.Change)
		case election.EffectNotice:
			n.noticed(e.Notice)
		}
	}
	n.rouse() // what this slice says is done with, so the core may be called again
}

// send sends a message of the core.
func (n *Node) send(to wire.ID, m *wire.Message) {
	if to == wire.Nobody {
		n.transmit(m, netip.AddrPort{})
		return
	}
	way, ok := n.wayTo(to)
	if !ok {
		n.unaddressed(to)
		return
	}
	n.transmit(m, way)
}

// wayTo returns where a board is reached: where it was last heard from, or, if
// it was not heard, where its id says, since an id is an address unless somebody
// configured another one. Such an address must be one that a board of this group
// could have: what is meant for the link must not be sent beyond it.
func (n *Node) wayTo(id wire.ID) (netip.AddrPort, bool) {
	if way, ok := n.paths[id]; ok && way.addr.IsValid() {
		return way.addr, true
	}
	addr := id.Addr()
	possible := slices.Contains(n.cfg.Peers, addr) && !n.isFloating(addr)
	for _, p := range n.link.snapshot.Link.Addrs {
		possible = possible || p.Contains(addr) && !n.isFloating(addr)
	}
	return netip.AddrPortFrom(addr, n.cfg.Port), possible
}

// unaddressed counts a message to a board that was never heard and whose id is no
// address. To send it to everybody instead would have others act upon it; the
// algorithms live with a lost message.
func (n *Node) unaddressed(id wire.ID) {
	n.counts.unaddressed++
	text := fmt.Sprintf("the address of board %v is not known: nothing is sent to it until it is heard", id)
	if n.news.trouble("address", text, time.Minute) {
		n.log.Warn(text)
	}
}

// changed tells everybody who cares of a change of role or leader.
func (n *Node) changed(c election.Change) {
	n.light()
	n.news.changed(c, n.lastSeen(c))
	if c.NewLeader != wire.Nobody {
		n.news.over("probe") // the machine that had the address was a board of the group, or has given it up
	}
	n.console.Changed()
	if n.observe != nil {
		n.observe(c)
	}
	if n.followed != nil && c.LeaderChanged() && c.NewLeader != wire.Nobody && c.NewLeader != n.self {
		n.followed <- n.called(c.NewLeader)
		n.followed = nil
	}
	text := n.describe(c)
	if routine(c) {
		n.log.Debug(text)
	} else {
		n.log.Info(text)
	}
	if c.To != election.Candidate {
		n.report("tell systemd", n.notifier.Status(n.statusLine(c)))
	}
}

// lastSeen is when the leader that was replaced was heard last.
func (n *Node) lastSeen(c election.Change) time.Duration {
	if c.From == election.Isolated || c.From == election.Listener || c.From == election.Leader {
		return 0
	}
	p, _ := n.core.Peer(c.OldLeader)
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

func (n *Node) noticed(notice election.Notice) {
	text := notice.String()
	n.news.trouble("notice "+notice.Board.String(), text, time.Minute)
	switch notice.Kind {
	case election.NoticeDuplicateID, election.NoticeOtherAlgorithm:
		n.log.Error(text) // one of the boards stays out until somebody mends it
	default:
		n.log.Warn(text)
	}
	if notice.Kind == election.NoticeRival {
		n.counts.rivals++
		n.news.rivalAt = n.now()
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
func (n *Node) light() {
	if n.core == nil {
		n.led.show(gpio.Fault)
		return
	}
	role := n.core.Role()
	if role == election.Leader && !n.holding.taken {
		n.led.show(gpio.Fault)
		return
	}
	n.led.show(patterns[role])
}

func isLinkDown(err error) bool { return errors.Is(err, netio.ErrLinkDown) }
