package election

import (
	"time"
	"topdog/election/clock"
	"topdog/election/roster"
	"topdog/election/silence"
	"topdog/wire"
)

// Core is the election as one board takes part in it. Its methods are not safe for
// concurrent use. The effects that a method returns are good until the next call.
type Core struct {
	cfg        Config
	definition Definition
	algorithm  Algorithm
	hooks      hooks // what the algorithm has besides
	detector   silence.Detector

	now       Instant // of the present call
	startedAt Instant
	wokeLate  time.Duration // by how much the present call of Wake is late

	role   Role
	leader wire.ID // whom this board follows or suspects; itself when it leads
	term   wire.Term

	// The state of the present role. That of each other role is zero, see become.
	listening listenerState
	following followerState
	candidacy candidateState
	leading   leaderState
	barred    barredState

	// What outlives the roles. Each of these has its functions in a file of its own.
	roster     roster.Roster
	lastLeader lastLeader
	asking     asking
	coldStart  coldStart
	heartbeats heartbeats
	rivals     rivals
	grace      silence.Grace
	evidence   evidence
	paths      paths
	handover   handover
	conflict   conflict
	notices    notices
	score      score
	fitness    fitness
	pause      pause
	hello      clock.Deadline               // the next HELLO
	own        [ownDeadlines]clock.Deadline // of the algorithm
	stopping   bool                         // the board leaves the group

	timetable timetable
	next      clock.Deadline // the earliest one after the last call, if that is known
	nextKnown bool
	effects   []Effect
	counts    [reasonCount]uint64
}

// New returns the core of a board whose link is down. now is when its process started.
// The definition is that of the algorithm which cfg.Algorithm numbers on the wire.
func New(cfg Config, definition Definition, now Instant) (*Core, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	if err := cfg.checkVoters(definition); err != nil {
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
	for i := range duties {
		c.timetable[i] = duties[i].deadline(c)
	}
	c.algorithm = definition.New(&Board{c})
	c.hooks = hooksOf(c.algorithm)
	c.detector = c.detectorKind().New(cfg.Interval)
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
	next := c.earliest()
	return next.At, next.Set
}

// earliest returns the first deadline to come. Between two calls it stays the same.
func (c *Core) earliest() clock.Deadline {
	if !c.nextKnown {
		c.next, c.nextKnown = c.timetable.earliest(), true
	}
	return c.next
}

// enter begins every call: it receives the time, and notices if the board was
// not running while something was due.
func (c *Core) enter(now Instant) {
	next := c.missed()
	c.begin(now)
	late := c.overslept()
	if next.Set && c.now-next.At > c.doubtAfter() {
		c.suspended(c.now - next.At)
		// Once for each time: what has piled up meanwhile is received at this same moment.
		c.timetable.notBefore(c.now)
	}
	c.learnOverslept(late)
}

// missed returns the first deadline that tells how late this board is. Nobody waits for a look, and it comes
// more often than anything else, so it would have a leader doubt itself whose heartbeat is not late.
func (c *Core) missed() clock.Deadline {
	look := &c.leading.deposed.look
	if !look.Set || c.earliest() != *look {
		return c.earliest()
	}
	planned := *look
	*look = clock.Deadline{}
	next := c.timetable.earliest()
	*look = planned
	return next
}

// doubtAfter is how late this board may be for what is due. A leader has the grace that the
// others give it; the others have none but the default.
func (c *Core) doubtAfter() time.Duration {
	if c.role == Leader {
		return c.grace.Lease()
	}
	return c.defaultGrace()
}

// begin receives the time of a call.
func (c *Core) begin(now Instant) {
	c.now, c.wokeLate, c.nextKnown = max(c.now, now), 0, false
	c.effects = c.effects[:0]
}

// Wake is to be called when the deadline has come.
func (c *Core) Wake(now Instant) []Effect {
	next := c.earliest()
	c.enter(now)
	if next.Reached(c.now) {
		c.wokeLate = c.now - next.At
		c.detector.Woke(c.wokeLate)
	}
	for i, d := range c.timetable {
		if d.Reached(c.now) {
			*d = clock.Deadline{}
			duties[i].do(c)
		}
	}
	return c.effects
}

// Link tells that the link came up or was lost.
func (c *Core) Link(now Instant, up bool) []Effect {
	c.enter(now)
	switch {
	case up && c.role == Isolated:
		c.becomeListener(ReasonLinkUp, c.listenWindow())
	case !up && c.role != Isolated:
		c.becomeIsolated(ReasonLinkLost)
		if c.stopping {
			c.emit(EffectFinished)
		}
	}
	return c.effects
}

// DelayPreemption changes the delay before the board preempts, while it runs. It counts from when
// the board may have the lead. A board that waits goes on with the delay that it began with.
func (c *Core) DelayPreemption(delay time.Duration) { c.cfg.PreemptDelay = delay }

// Reprioritise changes the priority and whether the board preempts, while it runs.
func (c *Core) Reprioritise(now Instant, priority uint8, preempt bool) []Effect {
	c.enter(now)
	c.cfg.Priority, c.cfg.Preempt = min(priority, MaxPriority), preempt
	c.computeScore()
	switch c.role {
	case Leader:
		if priority == 0 {
			c.resign(wire.Nobody, ReasonNoPriority)
		}
	case Follower:
		c.awaitTurn()
		c.compareRanks()
	case Candidate:
		if priority == 0 {
			c.becomeFollower(c.leader, ReasonNoPriority)
		}
	}
	c.sendHello()
	return c.effects
}

// ClockTrusted tells whether this board's clock runs at its rate. It matters to the algorithm
// strict alone, whose leases and promises are measured by several clocks: there a board whose
// clock is more than 1 % off neither leads nor votes.
func (c *Core) ClockTrusted(now Instant, trusted bool) []Effect {
	c.enter(now)
	if c.hooks.electorate == nil || !c.hooks.electorate.ClockTrusted(trusted) {
		return c.effects
	}
	switch {
	case c.role == Leader:
		c.resign(wire.Nobody, ReasonClock)
	case c.role == Candidate && !trusted:
		c.becomeFollower(c.leader, ReasonClock)
	case c.role == Follower:
		c.awaitTurn()
		c.compareRanks()
	}
	c.sendHello()
	return c.effects
}

// Suspect tells that this board has learned, from elsewhere than its failure
// detector, that its leader is gone.
func (c *Core) Suspect(now Instant) []Effect {
	c.enter(now)
	if c.role == Follower && c.leader != wire.Nobody {
		c.algorithm.Turn(ReasonSilence)
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
	switch c.role {
	case Leader:
		// A takeover may be under way: yield to whoever made one.
		c.leading.doubtUntil = c.now + 2*c.cfg.Interval
		if late > max(c.cfg.Interval, c.grace.Lease()) {
			// There has been one, very likely. Release the address first, then ask.
			c.becomeFollower(wire.Nobody, ReasonSuspended)
			c.algorithm.Turn(ReasonSuspended)
		}
	case Follower:
		if !c.lastLeader.forgiven {
			c.detector.Forgive(c.now)
			c.awaitTurn()
		}
	case Candidate:
		if !c.lastLeader.forgiven {
			c.asking.round = 0
		}
	case Listener:
		if !c.lastLeader.forgiven {
			c.listening.end = clock.Due(c.now + c.listenWindow())
		}
	}
	// Once is enough until the leader is heard again: a board that is always late,
	// because it has too much to do, must still be able to take over.
	c.lastLeader.forgiven = true
}
