package election

import (
	"time"

	"topdog/wire"
)

// Above reports whether the rank a comes before b in the order of this group, see [roster.Roster.Before].
func (c *Core) Above(a, b Rank) bool { return c.roster.Before(a, b) }

// rankOf returns the rank of a message's sender. A score that the message does
// not tell is the one that the sender told last.
func (c *Core) rankOf(h *wire.Header) Rank {
	r := Rank{Grade: h.Grade, Priority: h.Priority, ID: h.Sender}
	if p := c.roster.Peer(h.Sender); p != nil && p.Incarnation == h.Incarnation {
		r.Score = p.Score
	}
	return r
}

// outranks reports whether this board comes before another one that it knows.
func (c *Core) outranks(id wire.ID) bool {
	p := c.roster.Peer(id)
	return p != nil && c.Above(c.rank(), p.Rank())
}

// rank is the board's own as it counts in an election. During a pause only one board may lead.
func (c *Core) rank() Rank {
	r := c.toldRank()
	if c.pausedOut() {
		r.Priority = 0
	}
	return r
}

// toldRank is the board's own as the others know it. A stopping board has no claim to anything, and nor
// has one without a vote.
func (c *Core) toldRank() Rank {
	if c.stopping || !c.votes.mayLead(c.cfg.ID) {
		return Rank{Grade: c.fitness.told, ID: c.cfg.ID}
	}
	return Rank{Grade: c.fitness.told, Priority: c.cfg.Priority, ID: c.cfg.ID, Score: c.score.told}
}

// paused reports whether the address stays where it is.
func (c *Core) paused() bool { return c.pause.end.Set }

// pausedOut reports whether this board may not lead because of a pause.
func (c *Core) pausedOut() bool { return c.paused() && c.pause.leader != c.cfg.ID }

// aloneMayLead reports whether no other board may lead because of a pause. A board that stood still does not know yet
// that a pause has ended meanwhile, so the time counts.
func (c *Core) aloneMayLead() bool { return c.pause.end.Ahead(c.now) && c.pause.leader == c.cfg.ID }

// unfit reports whether a leader of that grade hands over to a fitter board. One that is on
// probation does its work. It does not ask for the lead, and it keeps it.
func unfit(grade wire.Grade) bool { return grade >= wire.GradeDrained }

// supersedes reports whether this board should have the lead instead of a living leader that does
// not hand over by itself: it comes before it, and it passes. Otherwise boards on probation, or all of whose
// services are dead, would move the address for nothing.
func (c *Core) supersedes(leader wire.ID) bool {
	return c.fitness.told == wire.GradePassing && c.outranks(leader)
}

// witnesses is how many followers answer a candidate that has missed a
// heartbeat which they have heard: enough to survive loss, and few enough that a
// lost heartbeat in a group of 255 is not followed by 254 answers.
const witnesses = 3

// succession is how many boards act before this one when the leader is gone: none, if they may not lead.
func (c *Core) succession() int {
	if c.aloneMayLead() {
		return 0
	}
	return c.roster.CountAbove(c.now, c.rank(), c.predecessor())
}

// Successor returns the board that this one would hand over to; ok is false if
// there is none.
func (c *Core) Successor(now Instant) (id wire.ID, ok bool) {
	return c.roster.Heir(now, c.cfg.ID)
}

// successorTimeout is how long a successor may take to answer. To name another one while
// the first is only busy makes two holders; and where people have chosen long intervals,
// their boards are slow.
func (c *Core) successorTimeout() time.Duration {
	return min(max(c.cfg.Interval/4, 10*time.Millisecond), 500*time.Millisecond)
}

// predecessor is the leader that this board suspects or has lost, or Nobody.
func (c *Core) predecessor() wire.ID {
	if c.leader != wire.Nobody {
		return c.leader
	}
	return c.lastLeader.predecessor
}

// reign is for how long this board has led.
func (c *Core) reign() time.Duration { return c.now - c.leading.since }

// nextTerm stops at the largest term instead of wrapping: between equal terms the
// rank decides, so nothing is lost, while a wrapped term would undo every claim.
func nextTerm(t wire.Term) wire.Term {
	return min(t+1, wire.MaxTerm)
}
