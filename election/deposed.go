package election

import (
	"time"
	"topdog/election/clock"
	"topdog/election/silence"
	"topdog/wire"
)

// A leader that was silent may live: its frames were lost, or it is cut off. Until it hears that it was
// replaced it leads on. So the board that has replaced it tells it, and then looks for it among all. What
// the two learn from that is patience.

// deposed is the leader that a leader has replaced because it was silent.
type deposed struct {
	id          wire.ID
	incarnation wire.Incarnation
	due         Instant        // the heartbeat of it that was missed
	look        clock.Deadline // when it is told once more who leads
}

// depose notes whom this board replaces, before it becomes the leader.
func (c *Core) depose(reason Reason) deposed {
	if reason != ReasonUnanswered || c.leader == wire.Nobody {
		return deposed{}
	}
	return deposed{
		id: c.leader, incarnation: c.lastLeader.incarnation,
		due: c.now - c.detector.Age(c.now) + c.cfg.Interval,
	}
}

// planLook plans when to tell the board that was replaced once more. In the first interval that teaches
// how long a silence was that ended. Later that board may be cut off, and lead on until it hears
// of this one.
func (c *Core) planLook() {
	d := &c.leading.deposed
	silent := max(c.now-d.due, c.defaultGrace())
	next := d.due + time.Duration(silence.Rule.Look*float64(silent))
	if next >= d.due+c.cfg.Interval {
		next = c.laterLook()
	}
	if d.id != wire.Nobody && next > c.now {
		d.look = clock.Due(next)
	}
}

// laterLook is when to look for a board that has been silent for an interval; 0 for not any more.
// Where heartbeats follow each other as closely they tell it as soon. With votes only one
// of two leaders has the address, so the other one may wait for them.
func (c *Core) laterLook() Instant {
	next := c.now + max(lookSpacing, time.Duration(lookShare*float64(c.cfg.Interval)))
	if c.hooks.electorate != nil || next >= c.now+c.cfg.Interval || next > c.leading.since+lookFor {
		return 0
	}
	return next
}

const (
	// lookSpacing is the time between two such looks, and lookShare what it is at least of an interval. So two
	// leaders whose network has healed are one again within 50 ms, or half an interval if that is longer.
	lookSpacing = 40 * time.Millisecond
	lookShare   = 0.4
	// lookFor is how long a new leader looks. Bridges that speak the Rapid Spanning Tree Protocol miss a
	// neighbour after three Hello Times of 2 s (IEEE 802.1Q), and forward by another way soon after. It costs
	// 250 packets.
	lookFor = 10 * time.Second
)

// look tells the board that was replaced that this one leads. If it lives it answers. Later looks go to
// all, since the kernel may have forgotten by then where that board is, and would ask for it for up to a second
// before it sends anything. To the others a RIVAL only says who leads.
func (c *Core) look() {
	d := &c.leading.deposed
	if c.now < d.due+c.cfg.Interval {
		c.replyTo(d.id)
	} else {
		c.multicast(c.rival(d.id, c.reign()))
	}
	c.planLook()
}

// hearDeposed hears of the leader that this one has replaced, and looks for it no longer. If it is a
// rival it was not heard for so long although it leads.
func (c *Core) hearDeposed(m *wire.Message) {
	d := c.leading.deposed
	if m.Sender != d.id {
		return
	}
	c.leading.deposed = deposed{}
	if m.Leading && m.Incarnation == d.incarnation {
		silent := c.now - d.due
		c.needGrace(silent, silence.Lesson{Kind: silence.LessonReplaced, Board: m.Sender, Late: silent})
	}
}
