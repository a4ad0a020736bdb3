package election

import (
	"time"

	"topdog/election/clock"
	"topdog/election/roster"
	"topdog/election/silence"
	"topdog/wire"
)

// lead makes this board the leader: at once, or when it has the votes that it needs.
func (c *Core) lead(reason Reason) {
	if c.votes.needed() {
		c.elect(reason)
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

// depose notes whom this board replaces, before it becomes the leader.
func (c *Core) depose(reason Reason) deposed {
	if reason != ReasonUnanswered || c.leader == wire.Nobody {
		return deposed{}
	}
	return deposed{
		id: c.leader, incarnation: c.lastLeader.incarnation,
		due: c.detector.Due(),
	}
}

// acquire has this leader acquire the address, or announce it once more. It is the only place
// that does. becomeLeader calls it, and so do reclaim and receiveResign: there a rival has
// given up, to which clients may still send. A leader that stops being one releases the
// address in become. A leader whose voters were not heard in time waits for them.
func (c *Core) acquire() {
	if c.votes.supported(c.now) {
		c.emit(EffectAcquire)
	}
}

// proclaim tells everybody who leads. It counts as the first heartbeat of this leader.
func (c *Core) proclaim() {
	c.heartbeats.number++
	c.grace.Announce(c.now)
	m := c.coordinator()
	c.algorithm.Step(Event{Kind: EventProclaim, Message: &m})
	c.tell(nil, m)
	c.beginInterval()
	if c.cfg.Fanout == FanoutUnicast {
		c.reply() // a rival, or a board that nobody has told this one of, must hear it too
	}
}

// sendHeartbeat sends a heartbeat to the group, on schedule or as a reply.
func (c *Core) sendHeartbeat(reply bool) {
	c.heartbeats.number++
	c.grace.Announce(c.now)
	c.multicast(c.heartbeat(reply))
	if e := &c.effects[len(c.effects)-1]; !reply {
		e.SecondPath = c.beatBySecondPath()
	}
	c.beginInterval()
	if !reply {
		c.happens(EventHeartbeat)
	}
}

// heartbeatDue sends a heartbeat on schedule, and looks whether the followers are heard, so that nobody is woken
// for that. With votes a leader misses the majority before that.
func (c *Core) heartbeatDue() {
	c.sendHeartbeat(false)
	if !c.votes.needed() && !c.leading.hearing.again.Set && !c.paused() && !c.hearsFollowers() {
		c.leading.hearing = hearing{since: c.now}
		c.askHearing()
	}
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
func (c *Core) replyTo(board wire.ID) { c.send(board, c.heartbeat(true)) }

const (
	// hearingQuestions is how often a leader asks before it takes its port for dead: at 40 %
	// loss, three followers and a witness that answer are all unheard less than once in a million times.
	hearingQuestions = 4
	// helloLate is how late the HELLOs of the followers may be at least, for boards that are slow.
	helloLate = 100 * time.Millisecond
)

// hearsFollowers reports whether the followers were heard of late. A message may fail to come
// because its sender has gone; so this board doubts itself only when all are missed, and if
// it could have heard anybody else: one of two boards alone never does.
func (c *Core) hearsFollowers() bool {
	due, live := c.roster.NextHello(c.now)
	due = max(due, c.evidence.at+roster.HelloFloor)
	others := live > 1 || c.evidence.foreign && live > 0
	return !others || c.now < due+max(c.cfg.Interval, helloLate)
}

// askHearing asks the followers and the LAN, and believes the silence when that was often enough.
func (c *Core) askHearing() {
	h := &c.leading.hearing
	switch {
	case c.evidence.at > h.since && !h.answers, c.evidence.answeredAt > h.since:
		h.answers = false
		return
	case h.asked >= hearingQuestions:
		c.unansweredOnFirstPath()
		return
	}
	h.asked++
	h.receives = wire.Nobody // what was so before the last question may be so no more
	c.multicast(query(wire.PurposeJoin, h.asked))
	c.askLAN()
	again := max(c.cfg.Interval/hearingQuestions, c.answerWithin())
	if h.answers {
		again = max(c.grace.Lease/2, c.answerWithin()) // the others wait for the address
	}
	h.again = clock.Due(c.now + again)
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

// planLook plans when to tell the board that was replaced once more. In the first interval that teaches
// how long a silence was that ended. Later that board may be cut off, and lead on until it hears
// of this one.
func (c *Core) planLook() {
	d := &c.leading.deposed
	silent := max(c.now-d.due, c.grace.Default())
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
	if c.votes.needed() || next >= c.now+c.cfg.Interval || next > c.leading.since+lookFor {
		return 0
	}
	return next
}

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
