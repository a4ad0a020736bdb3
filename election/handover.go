package election

import (
	"time"

	"topdog/election/clock"
	"topdog/wire"
)

// resign releases the address first, and then names the successor: the heir,
// unless there is a reason for another one.
func (c *Core) resign(successor wire.ID, reason Reason) { c.handOver(successor, reason, successorsMax) }

// handOver resigns, and names so many successors at most, one after the other.
func (c *Core) handOver(successor wire.ID, reason Reason, most int) {
	if successor == wire.Nobody {
		successor, _ = c.Successor(c.now)
	}
	c.handover.named, c.handover.since = successorsMax-most, c.now
	c.nameSuccessor(successor)
	c.becomeFollower(wire.Nobody, reason)
	// Whatever its rank, the board that resigned is the last one to claim.
	c.postpone(c.listenWindow())
	c.repeatResign()
}

// How a RESIGN is repeated.
const (
	// resignRepeatMin is the time after which a RESIGN that no COORDINATOR answers is
	// repeated at first.
	resignRepeatMin = 5 * time.Millisecond
	// successorsMax is how many boards are named, one after the other, and only as long as the others
	// leave the lead to a board that was named.
	successorsMax = 3
)

// successorFirst is how long the others leave the lead to the board that was named.
func (c *Core) successorFirst() time.Duration { return c.cfg.Interval / 2 }

// repeatResign repeats the RESIGN until the successor proclaims itself. A lost
// RESIGN would cost an interval.
func (c *Core) repeatResign() {
	// What this board did not run for does not count: the whole machine may have stood still, and the
	// successor with it.
	c.handover.namedAt += c.wokeLate
	until := c.handover.namedAt + c.successorTimeout()
	if c.now >= until && c.handover.named < successorsMax && c.now-c.handover.since < c.successorFirst() {
		c.nameNext()
		until = c.now + c.successorTimeout()
	}
	c.sendResign(c.handover.successor)
	if c.now >= until || c.handover.successor == wire.Nobody {
		if c.stopping {
			c.emit(EffectFinished)
		}
		return
	}
	c.handover.repeat = clock.Due(min(c.now+c.handover.pause, until))
	c.handover.pause *= 2
}

// nameSuccessor makes a board the successor.
func (c *Core) nameSuccessor(id wire.ID) {
	h := &c.handover
	h.successor, h.namedAt = id, c.now
	h.named++
	h.pause = max(min(c.detector.Questions().Spacing, c.cfg.Interval/4), resignRepeatMin)
}

// nameNext names another successor if there is one, since the first does not
// answer: it may have died without having been missed yet.
// An unfit leader has handed over to a fitter board, and names no other one that is not.
func (c *Core) nameNext() {
	named := c.handover.successor
	c.roster.DeclareDead(named)
	next, ok := c.Successor(c.now)
	if p := c.roster.Peer(next); !ok || c.fitness.vain > 0 && p.Grade >= c.fitness.told {
		next = named
	}
	c.nameSuccessor(next)
}

// SuccessorNamed tells that the RESIGN that was signed beforehand has left while this leader handed over: the board
// that it names has the lead from now on, and no other board must be named as long as the named one may merely be
// busy.
func (c *Core) SuccessorNamed(id wire.ID) {
	if c.handover.repeat.Set {
		c.handover.successor = id
	}
}

// yieldDoublings is how often the pause before a handover doubles, for an unfit leader that had to take the lead
// back the last time. Each try costs the time that a board which has resigned waits until it claims. With the
// default interval they are 2 s apart at first, and 16 s in the end: less than 2 % of the time.
const yieldDoublings = 3

// considerYield sets when an unfit leader hands over, if a fitter board is there: at once, or after
// a pause that doubles if nobody has taken the lead that it gave away.
func (c *Core) considerYield() {
	if c.role != Leader || !unfit(c.fitness.told) || c.leading.yield.Set || c.paused() {
		return
	}
	p := c.roster.Fitter(c.now, c.fitness.told)
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
	successor := c.roster.Fitter(c.now, c.fitness.told)
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

// claimAsNamed makes this board the leader, since the one that handed over has named it.
func (c *Core) claimAsNamed() {
	if c.rank().Eligible() {
		c.lead(ReasonHandover)
	}
}

// endHandover gives up waiting for the successor of this board, since there is an election.
// It reports whether the board was to stop, and has finished.
func (c *Core) endHandover() (finished bool) {
	pending := c.handover.repeat.Set
	c.handover.repeat = clock.Deadline{}
	if pending && c.stopping {
		c.emit(EffectFinished)
		return true
	}
	return false
}
