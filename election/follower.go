package election

import (
	"time"

	"topdog/election/clock"
	"topdog/election/silence"
	"topdog/wire"
)

// becomeFollower is for a board that has found its leader, or awaits the one that
// was announced (leader is then wire.Nobody).
func (c *Core) becomeFollower(leader wire.ID, reason Reason) {
	old := c.leader
	if c.missesAddress() && leader == old {
		c.pauseWatch()
	}
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
		c.second.vouched, c.second.vouches, c.second.heardAt = 0, 0, 0
		if c.second.present {
			c.second.heardAt = c.now
		}
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
		c.grace.Follow(true)
	}
	c.following.measure = clock.Due(c.now + c.measureInterval())
	c.planPreemption()
	c.awaitTurn()
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
		from = max(c.detector.Freshness(), c.vouchedUntil())
	}
	c.following.turn = clock.Due(from + c.algorithm.TurnDelay())
}

// turnCame has this board act, since the leader is late or there is none.
func (c *Core) turnCame() {
	if c.leader == wire.Nobody {
		c.turn(ReasonNoLeader)
	} else {
		c.turn(ReasonSilence)
	}
}

// postpone gives a board of higher rank that acts the time to finish.
func (c *Core) postpone(by time.Duration) {
	if c.rank().Eligible() {
		c.following.turn = c.following.turn.After(c.now + by)
	}
}

// leaderless makes a follower or candidate wait for a new leader, since its own is gone.
// The first in the succession acts at once.
func (c *Core) leaderless(reason Reason) {
	c.becomeFollower(wire.Nobody, reason)
	if c.rank().Eligible() && c.algorithm.TurnDelay() == 0 {
		c.turn(reason)
	}
}

// compareRanks is called when the rank of a follower or of its leader may have changed. A board that the leader has
// named claims anyway.
func (c *Core) compareRanks() {
	if c.named.Set {
		return
	}
	c.planPreemption()
	c.happens(EventLeader)
}

// preemptIntervals is for how many intervals a board of higher rank follows before it asks
// for the lead, unless another delay is configured. A board that comes and goes must not move the
// address each time. It asks again after as many.
const preemptIntervals = 20

// planPreemption sets the deadline for asking for the lead, or clears it.
func (c *Core) planPreemption() {
	wants := c.cfg.Preempt && c.rank().Eligible() && c.supersedes(c.leader)
	switch {
	case !wants:
		c.following.preempt = clock.Deadline{}
	case !c.following.preempt.Set:
		delay := c.cfg.PreemptDelay
		if delay == 0 {
			delay = preemptIntervals * c.cfg.Interval
		}
		c.following.preemptFirst = c.now + delay
		c.following.preempt = clock.Due(c.following.preemptFirst)
	}
}

// preempt asks a leader of lower rank for a handover, and goes on asking. Boards that outrank this one may want the
// lead as well, and have waited since about the same time. They ask first, so that the address moves once.
func (c *Core) preempt() {
	if turn := c.following.preemptFirst + time.Duration(c.succession())*c.successorTimeout(); c.now < turn {
		c.following.preempt = clock.Due(turn)
		return
	}
	c.send(c.leader, query(wire.PurposeHandover, 0))
	c.following.preempt = clock.Due(c.now + preemptIntervals*c.cfg.Interval)
}

// A follower measures the round trip to a new leader as often as roundTripMeasurements, one
// interval apart but never less than measureMin, so that the answer has time to come back
// before the next one is asked for. From then on it does so every measureEvery.
const (
	roundTripMeasurements = 4
	measureMin            = 50 * time.Millisecond
	measureEvery          = 10 * time.Second
)

func (c *Core) measureInterval() time.Duration {
	if c.lastLeader.measured < roundTripMeasurements {
		return max(c.cfg.Interval, measureMin)
	}
	return measureEvery
}

// measureRoundTrip measures how far away the leader is, so that a candidate knows how long
// an answer may take. Only those boards do it that are next in the succession.
func (c *Core) measureRoundTrip() {
	if c.detectorKind() != silence.DetectorAsk {
		return // nobody waits for as long as an answer takes
	}
	c.lastLeader.measured++
	c.following.measure = clock.Due(c.now + c.measureInterval())
	if c.leader == wire.Nobody || !c.rank().Eligible() || c.succession() >= witnesses {
		return
	}
	c.asking.forget()
	c.asking.ask(c.now)
	c.second.askedAt = c.now
	c.send(c.leader, query(wire.PurposeJoin, 0))
}

// answersQuestion reports whether a HEARTBEAT that is a reply may answer a question of this
// board. Candidates are answered by multicast, with a new number. A board that measures
// the round trip is answered alone, with the number of the heartbeat before, and must
// not take an answer to others for its own.
func (c *Core) answersQuestion(m *wire.Message, heartbeat wire.Heartbeat) bool {
	return m.Reply && c.asking.count > 0 && (c.role == Candidate || heartbeat.Number == c.lastLeader.lastNumber)
}

// timeAnswer learns the round trip from an answer. One that comes very late answers
// the question of another board, and the own one was lost.
func (c *Core) timeAnswer() {
	if late := c.now - c.asking.last; late <= max(c.cfg.Interval, measureMin) {
		c.detector.Answered(late, c.now-c.asking.first)
	}
	c.asking.forget()
}

// notePath learns from a heartbeat of this board's leader by which way it came.
func (c *Core) notePath() {
	p := &c.paths
	switch {
	case !p.direct:
		p.multicastAt, p.noMulticast = c.now, false
	case !p.noMulticast && c.now-p.multicastAt > multicastMissed*c.cfg.Interval:
		p.noMulticast = true
		c.notify(Notice{Kind: NoticeNoMulticast, Board: c.cfg.ID})
		c.sendHello()
	}
}
