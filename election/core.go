package election

import (
	"time"

	"topdog/election/clock"
	"topdog/election/roster"
	"topdog/election/silence"
	"topdog/wire"
)

// New returns the core of a board whose link is down. now is when its process started.
// The definition is that of the algorithm which cfg.Algorithm numbers on the wire.
func New(cfg Config, definition Definition, now Instant) (*Core, error) {
	if err := cfg.validate(definition.votes); err != nil {
		return nil, err
	}
	c := &Core{
		cfg:        cfg,
		definition: definition,
		now:        now,
		roster:     roster.New(definition.Order),
		startedAt:  now,
		heartbeats: heartbeats{repliedAt: now - time.Minute},
		conflict:   conflict{at: now - barredFor}, // so that the first conflict is one that breaks out
		notices:    make(notices),
		grace:      silence.NewGrace(cfg.Interval, cfg.Patience),
	}
	c.timetable = c.duties()
	if definition.votes {
		c.votes = newVoting(&cfg, c.grace.Limit, now)
	}
	c.algorithm = definition.New(&Board{c})
	c.detector = c.detectorKind().New(cfg.Interval, &c.grace)
	c.computeScore()
	for _, id := range cfg.Members {
		if id != cfg.ID && id != wire.Nobody {
			c.roster.Expect(id, DefaultPriority)
		}
	}
	return c, nil
}

// Deadline returns when Wake must be called next; ok is false if there is nothing to wait for.
func (c *Core) Deadline() (at Instant, ok bool) {
	next := c.timetable.earliest(nil)
	return next.At, next.Set
}

// enter begins every call: it receives the time, and notices if the board was not running while something
// was due. A late look (see deposed) does not count: nobody waits for it. It comes so often that it would
// make a leader doubt itself whose heartbeat is not late.
func (c *Core) enter(now Instant) {
	next := c.timetable.earliest(&c.leading.deposed.look)
	c.begin(now)
	late, doubtAfter := c.overslept(), c.grace.Default()
	if c.role == Leader {
		doubtAfter = c.grace.Lease // the others give it that
	}
	if next.Set && c.now-next.At > doubtAfter {
		c.suspended(c.now - next.At)
		// Once for each time: what has piled up meanwhile is received at this same moment.
		c.timetable.notBefore(c.now)
	}
	c.learnOverslept(late)
}

// begin receives the time of a call.
func (c *Core) begin(now Instant) {
	c.now, c.wokeLate = max(c.now, now), 0
	c.effects = c.effects[:0]
}

// Wake is to be called when the deadline has come.
func (c *Core) Wake(now Instant) []Effect {
	next := c.timetable.earliest(nil)
	c.enter(now)
	if next.Reached(c.now) {
		c.wokeLate = c.now - next.At
		c.detector.Woke(c.wokeLate)
	}
	for _, duty := range &c.timetable {
		if duty.deadline.Reached(c.now) {
			*duty.deadline = clock.Deadline{}
			duty.do(c)
		}
	}
	return c.effects
}

// readsFirst is for a deadline by which others would have been heard. If it came late, perhaps the whole board stood
// still, and what they have said is waiting to be read: then it is given a little more time, and readsFirst reports that.
// Once is enough, as waited says: a board that is always late must be able to go on.
func (c *Core) readsFirst(waited *bool, d *clock.Deadline) bool {
	if c.wokeLate < silence.RoundTripMin || *waited {
		return false
	}
	*waited, *d = true, clock.Due(c.now+silence.RoundTripMin)
	return true
}

// duties returns the timetable of this core.
func (c *Core) duties() timetable {
	return timetable{
		{&c.named, (*Core).claimAsNamed},
		{&c.leading.heartbeat, (*Core).heartbeatDue},
		{&c.leading.lapse.over, (*Core).lapseOver},
		{&c.leading.reclaim, func(c *Core) { c.reclaim(c.leading.exceeded) }},
		{&c.leading.hearing.again, (*Core).askHearing},
		{&c.leading.yield, (*Core).yieldLead},
		{&c.hello, (*Core).sendHello},
		{&c.listening.end, func(c *Core) { c.turn(ReasonNoLeader) }},
		{&c.listening.query, (*Core).sendQuery},
		{&c.following.turn, (*Core).turnCame},
		{&c.following.missed, func(c *Core) { c.addressMissed(c.now - c.wokeLate) }},
		{&c.candidacy.address.ask, (*Core).askAddress},
		{&c.candidacy.address.silent, (*Core).addressUnanswered},
		{&c.candidacy.askLAN, (*Core).missEvidence},
		{&c.candidacy.second, (*Core).reconsiderClaim},
		{&c.candidacy.incumbent, (*Core).incumbentLate},
		{&c.answers, func(c *Core) { c.happens(AnswersDue) }},
		{&c.candidacy.coordinator, func(c *Core) { c.happens(CoordinatorDue) }},
		{&c.following.measure, (*Core).measureRoundTrip},
		{&c.handover.repeat, (*Core).repeatResign},
		{&c.following.preempt, (*Core).preempt},
		{&c.leading.deposed.look, (*Core).look},
		{&c.pause.end, (*Core).pauseChanged},
		{&c.barred.end, func(c *Core) { c.becomeListener(ReasonConflictOver, c.listenWindow()) }},
		{&c.votes.promiseEnds, (*Core).vote},
		{&c.leading.fence.repeat, (*Core).repeatHeartbeat},
		{&c.leading.fence.leaseEnds, (*Core).leaseEnded},
		{&c.own[0], func(c *Core) { c.happens(OwnDeadline) }},
		{&c.own[1], func(c *Core) { c.happens(OwnDeadline + 1) }},
		{&c.own[2], func(c *Core) { c.happens(OwnDeadline + 2) }},
	}
}

// Link tells that the link came up or was lost.
func (c *Core) Link(now Instant, up bool) []Effect {
	c.enter(now)
	switch {
	case up && c.role == Isolated:
		c.becomeListener(ReasonLinkUp, c.listenWindow())
	case !up && c.role != Isolated:
		successor := wire.Nobody
		if c.role == Leader {
			successor, _ = c.Successor(c.now)
		}
		c.becomeIsolated(ReasonLinkLost)
		c.nameByOtherPath(successor)
		if c.stopping {
			c.emit(EffectFinished)
		}
	}
	return c.effects
}

// Suspect tells that this board has learned, from elsewhere than its failure
// detector, that its leader is gone.
func (c *Core) Suspect(now Instant) []Effect {
	c.enter(now)
	if c.role == Follower && c.leader != wire.Nobody {
		c.turn(ReasonSilence)
	}
	return c.effects
}

// LostPackets tells that packets have come for which this board had no room. One may have been the leader's: this
// board was deaf, as one that stood still for a moment is.
func (c *Core) LostPackets(now Instant) []Effect {
	c.enter(now)
	c.suspended(0)
	return c.effects
}

// suspended is called when something was due for longer than the grace: this
// process, or the whole board, was not running. What the board knows may be out of date.
// A follower must not suspect its leader for that, nor may a leader go on as if nothing
// had happened.
func (c *Core) suspended(late time.Duration) {
	c.detector.StoodStill(c.now, late)
	// Once is enough until the leader is heard again: a board that is always late,
	// because it has too much to do, must still be able to take over.
	again := c.lastLeader.forgiven
	c.lastLeader.forgiven = true
	switch {
	case c.role == Leader:
		// A takeover may be under way: yield to whoever made one.
		c.leading.doubtUntil = c.now + 2*c.cfg.Interval
		if late > max(c.cfg.Interval, c.grace.Lease) {
			// There has been one, very likely. Release the address first, then ask.
			c.becomeFollower(wire.Nobody, ReasonSuspended)
			c.turn(ReasonSuspended)
		}
	case again:
	case c.role == Follower:
		c.detector.Forgive(c.now)
		c.awaitTurn()
	case c.role == Candidate:
		c.asking.round = 0
	case c.role == Listener:
		c.listening.end = clock.Due(c.now + c.listenWindow())
	}
}

// sendQuery asks who leads.
func (c *Core) sendQuery() {
	c.asking.ask(c.now)
	m := query(wire.PurposeJoin, c.asking.count)
	if !c.algorithm.Step(Event{Kind: EventAsk, Message: &m}) {
		c.multicast(m) // to everybody, known or not
		if c.asking.count > 1 {
			c.sendFloating(m) // nobody has answered that
		}
	}
	again := c.cfg.Interval / 2
	if c.coldStart.retry > 0 {
		again = max(again, probeRetryMin) // a foreign machine has the address: there is no hurry, and everybody listens
	}
	c.listening.query = clock.Due(c.now + again)
}
