package election

import (
	"errors"
	"fmt"
	"time"

	"topdog/wire"
)

// proclaim tells everybody who leads. It counts as the first heartbeat of the reign.
func (c *Core) proclaim() {
	c.beat++
	m := c.coordinator()
	if c.hooks.candidates != nil {
		m.Coordinator.Candidates = c.hooks.candidates.Candidates()
	}
	c.tell(nil, m)
	c.alarms[alarmHeartbeat] = c.now + c.cfg.Interval
	if c.cfg.Fanout == FanoutUnicast {
		c.reply() // a rival, or a board that nobody has told this one of, must hear it too
	}
}

// coordinator returns a COORDINATOR with which this board proclaims itself.
func (c *Core) coordinator() wire.Message {
	return wire.Message{
		Header: wire.Header{Type: wire.TypeCoordinator},
		Coordinator: wire.Coordinator{
			Coordinator: c.cfg.ID, Interval: c.cfg.Interval, Number: c.beat, Score: c.score,
		},
	}
}

// sendHeartbeat sends a heartbeat to the group, on schedule or as a reply.
func (c *Core) sendHeartbeat(reply bool) {
	c.beat++
	c.multicast(wire.Message{
		Header:    wire.Header{Type: wire.TypeHeartbeat, Reply: reply},
		Heartbeat: wire.Heartbeat{Interval: c.cfg.Interval, Number: c.beat},
	})
	c.alarms[alarmHeartbeat] = c.now + c.cfg.Interval
	if !reply && c.hooks.heartbeat != nil {
		c.hooks.heartbeat.HeartbeatSent()
	}
}

// reply answers whoever doubts this leader. One multicast answers all who ask at
// the same time, so there is never need for more than one a millisecond.
func (c *Core) reply() {
	if c.now-c.repliedAt < roundTripMin {
		return
	}
	c.repliedAt = c.now
	c.sendHeartbeat(true)
}

// hearRival settles it between two leaders that hear each other, after a
// partition has healed: the lower rank lets go at once and says so, and the
// higher one then proclaims itself in a term above both (see hearOther).
func (c *Core) hearRival(m *wire.Message) {
	c.noticeOnce(Notice{Kind: NoticeRival, Board: m.Sender})
	rival := c.rankOf(&m.Header)
	overslept := c.now < c.doubtUntil && m.Term > c.term
	unheard := c.unheard(m)
	c.term = max(c.term, m.Term)
	yield := ReasonNone
	switch {
	case c.above(rival, c.rank()):
		yield = ReasonRival
	case overslept:
		yield = ReasonSuspended
	case unheard:
		yield = ReasonUnheard
	}
	if yield != ReasonNone {
		c.becomeFollower(m.Sender, yield)
		c.yieldedTo, c.yieldedAt = m.Sender, c.now
		c.multicast(wire.Message{
			Header: wire.Header{Type: wire.TypeResign},
			Resign: wire.Resign{Successor: m.Sender},
		})
		return
	}
	c.reply()
	if c.weighs() {
		c.sayHello(m.Sender) // a HEARTBEAT does not tell the importance, which the rival must know
	} else {
		c.assure(m.Sender) // perhaps multicast does not reach it
	}
}

// unheard reports whether this leader must think that nobody hears it: a rival
// of lower rank goes on leading although it was answered time and again, and
// no live board says that it follows this one. A rival that could hear would
// have let go within a round trip. If others do follow this leader, the rival is the
// one that is deaf, and to yield would give the address to a deaf board.
func (c *Core) unheard(m *wire.Message) bool {
	if c.now-c.rivalAt > 2*c.cfg.Interval {
		c.rivalSince = c.now
	}
	c.rivalAt = c.now
	return c.now-c.rivalSince > c.listenWindow() && !c.roster.Followed(c.now, c.cfg.ID, m.Sender)
}

// reclaim proclaims this leader anew, above a term that a former rival has used,
// and announces the address anew to clients that the rival had won over.
func (c *Core) reclaim(above wire.Term) {
	c.term = nextTerm(max(c.term, above))
	c.reclaimedAt = c.now
	c.emit(EffectAcquire)
	c.proclaim()
}

// ErrNoSuccessor says that a leader cannot hand over because it is alone.
var ErrNoSuccessor = errors.New("no other live board may lead, so there is nobody to hand over to")

// ErrBullies says that the leader would be back at once.
var ErrBullies = errors.New("with this algorithm the first in rank always leads, and this board would be back at once: stop it, or set its priority to 0")

// Resign hands the lead over because a person wants it. The error is
// ErrNoSuccessor or ErrBullies, or says that this board does not lead.
func (c *Core) Resign(now Instant) ([]Effect, error) {
	c.enter(now)
	if c.role != Leader {
		return c.effects, fmt.Errorf("this board does not lead (it is a %v; the leader is %v)", c.role, c.leader)
	}
	heir, ok := c.roster.Heir(c.now, c.cfg.ID, c.above)
	if !ok {
		return c.effects, ErrNoSuccessor
	}
	if c.definition.HighestLeads && c.outranks(heir) {
		return c.effects, ErrBullies
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

// resign lets go of the address first, and then names the successor: the heir,
// unless there is a reason for another one.
func (c *Core) resign(successor wire.ID, reason Reason) {
	if successor == wire.Nobody {
		successor, _ = c.roster.Heir(c.now, c.cfg.ID, c.above)
	}
	c.named = 0
	c.name(successor)
	c.becomeFollower(wire.Nobody, reason)
	// Whatever its rank, the board that resigned is the last one to claim.
	c.postpone(c.listenWindow())
	c.resignAgain()
}

// resignAgain repeats the RESIGN until the successor proclaims itself. A lost
// RESIGN would cost an interval.
func (c *Core) resignAgain() {
	due := c.namedAt + c.slow()
	if c.now >= due && c.named < successors {
		c.nameNext()
		due = c.now + c.slow()
	}
	c.multicast(wire.Message{
		Header: wire.Header{Type: wire.TypeResign},
		Resign: wire.Resign{Successor: c.successor},
	})
	if c.now >= due || c.successor == wire.Nobody {
		if c.stopping {
			c.emit(EffectFinished)
		}
		return
	}
	c.alarms[alarmResign] = min(c.now+c.repeat, due)
	c.repeat *= 2
}

// slow is how long a successor may take to answer. To name another one while the first
// is only busy makes two holders; and where people have chosen long intervals,
// their boards are slow.
func (c *Core) slow() time.Duration { return min(max(c.cfg.Interval/4, 2*resignMin), slowMax) }

// name makes a board the successor.
func (c *Core) name(successor wire.ID) {
	c.successor, c.namedAt = successor, c.now
	c.named++
	c.repeat = max(min(c.detector.Questions().Spacing, c.cfg.Interval/4), resignMin)
}

// nameNext names another successor if there is one, since the first does not
// answer: it may have died without having been missed yet.
func (c *Core) nameNext() {
	if p := c.roster.Peer(c.successor); p != nil {
		p.Gone = true
	}
	next, ok := c.roster.Heir(c.now, c.cfg.ID, c.above)
	if !ok {
		next = c.successor
	}
	c.name(next)
}
