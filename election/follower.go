package election

import (
	"time"
	"topdog/election/clock"
	"topdog/wire"
)

// followerState is that of a follower.
type followerState struct {
	turn    clock.Deadline // the leader is late, or there is none, and it is this board's turn to act
	measure clock.Deadline // it measures the round trip to the leader
	preempt clock.Deadline // it asks a leader of lower rank for the lead
	// preemptFirst is when it asks for the first time if no other board outranks it.
	preemptFirst Instant
}

// lastLeader is what a board knows of the leader that it follows, or that it followed last.
type lastLeader struct {
	id          wire.ID // the board that this one follows or followed last
	incarnation wire.Incarnation
	term        wire.Term
	lastHeard   wire.Sequence // of the leader's newest HEARTBEAT
	lastNumber  uint8         // of the same
	measured    int           // how often the round trip to the leader was measured
	forgiven    bool          // the leader got a fresh interval since it was heard last
	// predecessor is the leader that resigned or restarted, until there is another one.
	predecessor wire.ID
}

// preemptIntervals is for how many intervals a board of higher rank follows before it asks
// for the lead, unless another delay is configured. A board that comes and goes must not move the
// address each time. It asks again after as many.
const preemptIntervals = 20

// becomeFollower is for a board that has found its leader, or awaits the one that
// was announced (leader is then wire.Nobody).
func (c *Core) becomeFollower(leader wire.ID, reason Reason) {
	old := c.leader
	if old != leader && leader != wire.Nobody {
		c.roster.DeclareDead(old) // it was replaced without a RESIGN, so it was silent; if it is alive, it is soon heard again
	}
	c.become(Follower, leader, reason)
	c.asking.forget()
	if leader == wire.Nobody {
		c.lastLeader.predecessor = old
		c.awaitTurn()
		return
	}
	c.coldStart = coldStart{}
	if old != leader {
		c.paths.multicastAt = c.now
	}
	c.lastLeader.id = leader
	c.fitness.vain = 0
	c.lastLeader.predecessor = wire.Nobody
	c.handover.repeat = clock.Deadline{}
	if c.stopping {
		c.emit(EffectFinished)
	}
	// The roster has no entry of the leader if it was dead for long and its place was needed.
	p := c.roster.Peer(leader)
	if p != nil && (leader != old || p.Incarnation != c.lastLeader.incarnation) {
		c.lastLeader.incarnation, c.lastLeader.lastHeard, c.lastLeader.measured = p.Incarnation, 0, 0
		c.detector.Follow(c.now, c.cfg.Interval)
		c.allowAnother()
	}
	c.following.measure = clock.Due(c.now + c.measureInterval())
	c.planPreemption()
	c.awaitTurn()
}

// followerHearsLeader finds out whether a leader that a follower hears is its own, its own
// after a restart, or a new one.
func (c *Core) followerHearsLeader(m *wire.Message) {
	leader := c.roster.Peer(c.leader)
	late := c.now >= c.detector.Freshness()
	switch {
	case m.Sender == c.leader:
		if c.lastLeader.incarnation != m.Incarnation {
			c.becomeFollower(m.Sender, ReasonRestarted)
		}
	case leader == nil, m.Term > c.lastLeader.term,
		m.Term == c.lastLeader.term && (late || c.above(c.rankOf(&m.Header), leader.Rank())):
		c.becomeFollower(m.Sender, ReasonProclaimed)
		c.leaderChanged()
	}
}

// awaitTurn sets the deadline for this board's turn: when the leader is late, or at
// once when there is none, and later by as much as the boards of higher rank
// need to act first.
func (c *Core) awaitTurn() {
	if !c.rank().Eligible() {
		c.following.turn = clock.Deadline{}
		return
	}
	from := c.now
	if c.leader != wire.Nobody {
		from = c.detector.Freshness()
	}
	c.following.turn = clock.Due(from + c.algorithm.TurnDelay())
}

// postpone gives a board of higher rank that acts the time to finish.
func (c *Core) postpone(by time.Duration) {
	if c.rank().Eligible() {
		c.following.turn = c.following.turn.After(c.now + by)
	}
}

// takeTurn has a follower act whose leader is late, or that has none.
func (c *Core) takeTurn() {
	reason := ReasonSilence
	if c.leader == wire.Nobody {
		reason = ReasonNoLeader
	}
	c.algorithm.Turn(reason)
}

// leaderless makes a follower or candidate wait for a new leader, since its own is gone.
// The first in the succession acts at once.
func (c *Core) leaderless(reason Reason) {
	c.becomeFollower(wire.Nobody, reason)
	if c.rank().Eligible() && c.algorithm.TurnDelay() == 0 {
		c.algorithm.Turn(reason)
	}
}

// succession is how many boards act before this one when the leader is gone: none, if they may not lead.
func (c *Core) succession() int {
	if c.aloneMayLead() {
		return 0
	}
	return c.roster.CountAbove(c.now, c.rank(), c.predecessor())
}

// predecessor is the leader that this board suspects or has lost, or Nobody.
func (c *Core) predecessor() wire.ID {
	if c.leader != wire.Nobody {
		return c.leader
	}
	return c.lastLeader.predecessor
}

// compareRanks is called when the rank of a follower or of its leader may have changed.
func (c *Core) compareRanks() {
	c.planPreemption()
	c.leaderChanged()
}

// planPreemption sets the deadline for asking for the lead, or clears it.
func (c *Core) planPreemption() {
	wants := c.cfg.Preempt && c.rank().Eligible() && c.supersedes(c.leader)
	switch {
	case !wants:
		c.following.preempt = clock.Deadline{}
	case !c.following.preempt.Set:
		c.following.preemptFirst = c.now + c.preemptDelay()
		c.following.preempt = clock.Due(c.following.preemptFirst)
	}
}

// preemptDelay is for how long this board follows before it asks for the lead.
func (c *Core) preemptDelay() time.Duration {
	if c.cfg.PreemptDelay == 0 {
		return preemptIntervals * c.cfg.Interval
	}
	return c.cfg.PreemptDelay
}

// preempt asks a leader of lower rank for a handover, and goes on asking. Boards that outrank this one may want the
// lead as well, and have waited since about the same time. They ask first, so that the address moves once.
func (c *Core) preempt() {
	if turn := c.following.preemptFirst + time.Duration(c.succession())*c.successorTimeout(); c.now < turn {
		c.following.preempt = clock.Due(turn)
		return
	}
	c.requestHandover()
	c.following.preempt = clock.Due(c.now + preemptIntervals*c.cfg.Interval)
}
