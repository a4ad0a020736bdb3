package election

import (
	"errors"
	"fmt"
	"time"
	"topdog/election/clock"
	"topdog/wire"
)

// handover is how this board gives the lead to another one. It goes on while the board
// that has resigned is a follower already, or a candidate, until somebody leads.
type handover struct {
	successor wire.ID       // named in the last RESIGN
	named     int           // how many successors were, one after the other
	since     Instant       // when the first one was
	namedAt   Instant       // when the last one was
	pause     time.Duration // until the RESIGN is repeated; it doubles
	repeat    clock.Deadline
}

// How a RESIGN is repeated.
const (
	// resignRepeatMin is the time after which a RESIGN that no COORDINATOR answers is
	// repeated at first.
	resignRepeatMin = 5 * time.Millisecond
	// successorsMax is how many boards are named, one after the other, and only as long as the others
	// leave the lead to a board that was named.
	successorsMax = 3
	// successorTimeoutMax bounds how long a successor may take to answer.
	successorTimeoutMax = 500 * time.Millisecond
)

// errNoSuccessor says that a leader cannot hand over because it is alone.
var errNoSuccessor = errors.New("no other live board may lead, so there is nobody to hand over to")

// errNobodyFit says that the board which would lead would give the lead back at once.
var errNobodyFit = errors.New("no other board is fit to lead (each is drained, or its checks fail), and would give the lead back at once: stop this board, or drain it")

// errHighestLeads says that the leader would lead again at once.
var errHighestLeads = errors.New("with this algorithm the first in rank always leads, and this board would be back at once: stop it, or set its priority to 0")

// Resign hands the lead over because a person asks for it. The error says that this board
// does not lead, that there is no successor, or that this board would lead again at once.
func (c *Core) Resign(now Instant) ([]Effect, error) {
	c.enter(now)
	if c.role != Leader {
		return c.effects, fmt.Errorf("this board does not lead (it is a %v; the leader is %v)", c.role, c.leader)
	}
	heir, ok := c.successor()
	if !ok {
		return c.effects, errNoSuccessor
	}
	p := c.roster.Peer(heir)
	switch {
	case c.paused():
		return c.effects, errPaused
	case unfit(p.Grade) && p.Grade > c.fitness.told:
		return c.effects, errNobodyFit
	case c.definition.HighestLeads && c.supersedes(heir):
		return c.effects, errHighestLeads
	}
	c.resign(wire.Nobody, ReasonResigned)
	return c.effects, nil
}

// Stop makes the board leave the group. EffectFinished follows, at once or after
// some more calls, when its successor leads or has failed to answer.
func (c *Core) Stop(now Instant) []Effect {
	c.enter(now)
	if c.stopping {
		return c.effects
	}
	c.stopping = true
	switch c.role {
	case Isolated, Barred:
		c.emit(EffectFinished)
	case Leader:
		c.resign(wire.Nobody, ReasonStopping)
	default:
		c.multicast(wire.Message{Header: wire.Header{Type: wire.TypeResign}})
		c.emit(EffectFinished)
	}
	return c.effects
}

// resign releases the address first, and then names the successor: the heir,
// unless there is a reason for another one.
func (c *Core) resign(successor wire.ID, reason Reason) { c.handOver(successor, reason, successorsMax) }

// handOver resigns, and names so many successors at most, one after the other.
func (c *Core) handOver(successor wire.ID, reason Reason, most int) {
	if successor == wire.Nobody {
		successor, _ = c.successor()
	}
	c.handover.named, c.handover.since = successorsMax-most, c.now
	c.nameSuccessor(successor)
	c.becomeFollower(wire.Nobody, reason)
	// Whatever its rank, the board that resigned is the last one to claim.
	c.postpone(c.listenWindow())
	c.repeatResign()
}

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
	c.multicast(wire.Message{
		Header: wire.Header{Type: wire.TypeResign},
		Resign: wire.Resign{Successor: c.handover.successor},
	})
	if c.now >= until || c.handover.successor == wire.Nobody {
		if c.stopping {
			c.emit(EffectFinished)
		}
		return
	}
	c.handover.repeat = clock.Due(min(c.now+c.handover.pause, until))
	c.handover.pause *= 2
}

// SuccessorNamed tells that the RESIGN that was signed beforehand has left while this leader handed over: whoever it
// names has the lead from now on, and no other board must be named as long as that one may be busy.
func (c *Core) SuccessorNamed(id wire.ID) {
	if c.handover.repeat.Set {
		c.handover.successor = id
	}
}

// successorTimeout is how long a successor may take to answer. To name another one while
// the first is only busy makes two holders; and where people have chosen long intervals,
// their boards are slow.
func (c *Core) successorTimeout() time.Duration {
	return min(max(c.cfg.Interval/4, 2*resignRepeatMin), successorTimeoutMax)
}

// successorFirst is how long the others leave the lead to the board that was named.
func (c *Core) successorFirst() time.Duration { return c.cfg.Interval / 2 }

// successor returns the board that this one would hand over to; ok is false if there is none.
func (c *Core) successor() (id wire.ID, ok bool) { return c.roster.Heir(c.now, c.cfg.ID) }

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
	next, ok := c.successor()
	if p := c.roster.Peer(next); !ok || c.fitness.vain > 0 && p.Grade >= c.fitness.told {
		next = named
	}
	c.nameSuccessor(next)
}

// receiveResign receives a RESIGN: the leader hands over, or a board leaves.
func (c *Core) receiveResign(m *wire.Message) {
	if m.Priority == 0 {
		c.roster.Leaves(m.Sender)
	}
	named := m.Resign.Successor == c.cfg.ID
	switch {
	case c.role == Leader && named && c.leading.reclaimedAt != c.now: // else that has been done already
		c.acquire() // clients may have sent to that board until now
		c.reply()   // perhaps it has not heard the COORDINATOR
	case c.role == Follower || c.role == Candidate:
		c.hearLeaderResign(m, named)
	}
}

// hearLeaderResign is for a board without the lead that hears a RESIGN. If it is named it
// leads at once: one message after the RESIGN the address is back. Nothing is asked,
// since the only board that could object has just released it.
func (c *Core) hearLeaderResign(m *wire.Message, named bool) {
	mine := m.Sender == c.leader
	switch {
	case !mine && (c.leader != wire.Nobody || !named || m.Term < c.lastLeader.term):
		// It is not the leader of this board, nor one whose RESIGN this board awaits.
	case named && c.crossing(m):
		// Both have released the address in favour of the other. The higher rank acquires it.
		c.becomeFollower(wire.Nobody, ReasonResigned)
		c.postpone(c.successorFirst())
	case named && c.rank().Eligible():
		c.lead(ReasonHandover)
	case mine && m.Resign.Successor != wire.Nobody:
		c.becomeFollower(wire.Nobody, ReasonResigned)
		c.postpone(c.successorFirst())
	case mine:
		c.leaderless(ReasonResigned)
	}
}
