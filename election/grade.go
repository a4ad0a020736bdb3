package election

import (
	"topdog/election/clock"
	"topdog/wire"
)

// A board says in every message how fit it is to lead, see wire.Grade. Its owner finds that out.
// The grade comes before everything else that ranks are compared by, so a board of a better
// grade is before one of a lesser grade in all algorithms. A leader that is unfit hands over to
// a fitter board. If there is none, it leads on: an address that is held by a board whose service
// does not work is of more use than one that nobody holds.

// fitness is how fit this board is.
type fitness struct {
	set  wire.Grade // by the owner
	told wire.Grade // in messages
	vain int        // how often in a row it has handed over because it was unfit, and nobody took the lead
}

// Grade is how fit this board says it is. A candidate says later what SetGrade has told it.
func (c *Core) Grade() wire.Grade { return c.fitness.told }

// unfit reports whether a leader of that grade hands over to a fitter board. One that is on
// probation does its work. It does not ask for the lead, and it keeps it.
func unfit(grade wire.Grade) bool { return grade >= wire.GradeDrained }

// SetGrade tells how fit this board is to lead, which is GradePassing until it is called. A board
// whose link is down may be told before it comes up. The others learn of it at once. While boards compare ranks nobody's changes, so a candidate tells its new grade when its candidacy is over.
func (c *Core) SetGrade(now Instant, grade wire.Grade) []Effect {
	c.enter(now)
	c.fitness.set = min(grade, wire.MaxGrade)
	if c.role == Candidate || c.fitness.told == c.fitness.set {
		return c.effects
	}
	c.tellGrade()
	if c.role == Leader {
		c.considerYield()
		if c.leading.yield.Reached(c.now) {
			c.leading.yield = clock.Deadline{}
			c.yieldLead() // before the others learn of it: where the first in rank leads, they would hold elections
		}
	}
	c.sendHello()
	if c.role == Follower && c.leader != wire.Nobody {
		c.awaitTurn()
		c.compareRanks()
	}
	return c.effects
}

// endCandidacy tells the grade that a candidate has got meanwhile.
func (c *Core) endCandidacy() {
	if c.fitness.told != c.fitness.set {
		c.tellGrade()
		c.hello = clock.Due(c.now)
	}
}

// tellGrade has messages tell the grade from now on. When a board that passes fails again, it hands over at
// once: what was in vain is long ago.
func (c *Core) tellGrade() {
	c.fitness.told = c.fitness.set
	if c.fitness.told == wire.GradePassing {
		c.fitness.vain = 0
	}
}

// supersedes reports whether this board should have the lead instead of a living leader that does
// not hand over by itself: it comes before it, and it passes. Otherwise boards on probation, or all of whose
// services are dead, would move the address for nothing.
func (c *Core) supersedes(leader wire.ID) bool {
	return c.fitness.told == wire.GradePassing && c.outranks(leader)
}

// mayHaveLead reports whether a leader hands over to a board that asks for the lead.
func (c *Core) mayHaveLead(r Rank) bool {
	return r.Eligible() && r.Grade == wire.GradePassing && c.above(r, c.rank()) && !c.paused()
}

// fitter returns the first in rank of the boards that are fitter than this one, or nil.
func (c *Core) fitter() *Peer { return c.roster.Fitter(c.now, c.fitness.told) }

// yieldDoublings is how often the pause doubles after which an unfit leader hands over that had to take the lead
// back the last time. Each try costs the time that a board which has resigned waits until it claims. With
// the default interval they are 2 s apart at first, and 16 s in the end: less than 2 % of the time.
const yieldDoublings = 3

// considerYield sets when an unfit leader hands over, if a fitter board is there: at once, or after
// a pause that doubles if nobody has taken the lead that it gave away.
func (c *Core) considerYield() {
	if c.role != Leader || !unfit(c.fitness.told) || c.leading.yield.Set || c.paused() {
		return
	}
	p := c.fitter()
	if p == nil {
		return
	}
	at := c.now
	if p.Following == wire.Nobody {
		at = max(at, p.LastHeard+c.answerWithin()) // it may still listen, and know of no leader
	}
	if vain := c.fitness.vain; vain > 0 {
		at += preemptIntervals * c.cfg.Interval << min(vain-1, yieldDoublings)
	}
	c.leading.yield = clock.Due(at)
}

// yieldLead hands over to a fitter board, if this leader is unfit and there is one.
func (c *Core) yieldLead() {
	successor := c.fitter()
	if !unfit(c.fitness.told) || successor == nil || c.paused() {
		return
	}
	reason := ReasonFailing
	if c.fitness.told == wire.GradeDrained {
		reason = ReasonDrained
	}
	c.fitness.vain++
	c.resign(successor.ID, reason)
}
