package election

import (
	"time"
	"topdog/election/clock"
	"topdog/election/silence"
	"topdog/wire"
)

// leaderState is that of a leader.
type leaderState struct {
	heartbeat   clock.Deadline
	lapse       lapse
	sentAt      Instant        // the time of the call that sent the last heartbeat; a COORDINATOR is one
	answers     clock.Deadline // an election that it holds because it was called upon has gone unanswered
	reclaimedAt Instant        // when it proclaimed itself anew
	hearing     hearing
	deposed     deposed        // the leader that it has replaced
	since       Instant        // when it began to lead
	reclaim     clock.Deadline // nobody opposes it, although somebody has led in the term exceeded
	exceeded    wire.Term
	doubtUntil  Instant        // it was late, and yields to any higher term until then
	yield       clock.Deadline // it is unfit, and hands over
}

// heartbeats is what this board has sent as a leader. The numbers go on when it leads again,
// so that nobody takes an old one for a new one.
type heartbeats struct {
	number    uint8
	repliedAt Instant // when it last answered all who doubt that it lives
}

// lead makes this board the leader: at once, or when it has the votes that it needs.
func (c *Core) lead(reason Reason) {
	if c.hooks.electorate != nil {
		c.hooks.electorate.Elect(reason)
		return
	}
	c.becomeLeader(reason)
}

// becomeLeader acquires the address and proclaims it, in this order: a message
// that overtakes the address would send clients to a board that refuses them.
func (c *Core) becomeLeader(reason Reason) {
	deposed := c.depose(reason)
	c.term = nextTerm(c.term)
	if reason != ReasonHandover {
		c.roster.DeclareDead(c.leader) // it was asked often enough
	}
	c.become(Leader, c.cfg.ID, reason)
	c.leading.since = c.now
	c.leading.deposed = deposed
	c.planLook()
	c.handover.repeat = clock.Deadline{}
	c.coldStart.pending = false
	c.lastLeader.predecessor = wire.Nobody
	c.acquire()
	if reason == ReasonElected {
		c.sendHeartbeat(false) // the board that held the election has sent the COORDINATOR
	} else {
		c.proclaim()
	}
	c.considerYield() // it may have become unfit since it was named
}

// acquire has this leader acquire the address, or announce it once more. It is the only place
// that does. becomeLeader calls it, and so do reclaim and receiveResign: there a rival has
// given up, to which clients may still send. A leader that stops being one releases the
// address in become. A leader whose voters were not heard in time waits for them.
func (c *Core) acquire() {
	if c.hooks.electorate == nil || c.hooks.electorate.Supported() {
		c.emit(EffectAcquire)
	}
}

// announced is the interval and the grace that this board leads with.
func (c *Core) announced() (interval, grace time.Duration) {
	return c.cfg.Interval, c.grace.OnWire()
}

// nextTerm stops at the largest term instead of wrapping: between equal terms the
// rank decides, so nothing is lost, while a wrapped term would undo every claim.
func nextTerm(t wire.Term) wire.Term {
	return min(t+1, wire.MaxTerm)
}

// proclaim tells everybody who leads. It counts as the first heartbeat of this leader.
func (c *Core) proclaim() {
	c.heartbeats.number++
	c.announceGrace()
	m := c.coordinator()
	if c.hooks.candidates != nil {
		m.Coordinator.Candidates = c.hooks.candidates.Candidates()
	}
	c.tell(nil, m)
	c.beginInterval()
	if c.cfg.Fanout == FanoutUnicast {
		c.reply() // a rival, or a board that nobody has told this one of, must hear it too
	}
}

// coordinator returns a COORDINATOR with which this board proclaims itself.
func (c *Core) coordinator() wire.Message {
	return wire.Message{
		Header: wire.Header{Type: wire.TypeCoordinator},
		Coordinator: wire.Coordinator{
			Coordinator: c.cfg.ID, Interval: c.cfg.Interval, Number: c.heartbeats.number, Grace: c.grace.OnWire(), Score: c.score.told,
		},
	}
}

// sendHeartbeat sends a heartbeat to the group, on schedule or as a reply.
func (c *Core) sendHeartbeat(reply bool) {
	c.heartbeats.number++
	grace := c.announceGrace()
	c.multicast(wire.Message{
		Header:    wire.Header{Type: wire.TypeHeartbeat, Reply: reply},
		Heartbeat: wire.Heartbeat{Interval: c.cfg.Interval, Grace: grace, Number: c.heartbeats.number},
	})
	c.beginInterval()
	if !reply && c.hooks.heartbeat != nil {
		c.hooks.heartbeat.HeartbeatSent()
	}
}

// heartbeatDue sends a heartbeat on schedule.
func (c *Core) heartbeatDue() {
	c.sendHeartbeat(false)
	c.checkHearing()
}

// beginInterval begins the time until the next heartbeat, and with it the lease.
func (c *Core) beginInterval() {
	c.checkLapse()
	c.leading.sentAt = c.now
	c.leading.heartbeat = clock.Due(c.now + c.cfg.Interval)
}

// reply answers whoever doubts this leader. One multicast answers all who ask at
// the same time, so there is never need for more than one a millisecond.
func (c *Core) reply() {
	if c.now-c.heartbeats.repliedAt < silence.RoundTripMin {
		return
	}
	c.heartbeats.repliedAt = c.now
	c.sendHeartbeat(true)
}

// replyTo tells one board that this one leads. The others do not get this heartbeat, so it
// has the number of the one before.
func (c *Core) replyTo(board wire.ID) {
	c.send(board, wire.Message{
		Header:    wire.Header{Type: wire.TypeHeartbeat, Reply: true},
		Heartbeat: wire.Heartbeat{Interval: c.cfg.Interval, Grace: c.grace.OnWire(), Number: c.heartbeats.number},
	})
}
