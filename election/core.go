package election

import (
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"topdog/wire"
)

// Config is what a core must know of its board.
type Config struct {
	ID          wire.ID
	Incarnation wire.Incarnation
	Name        string // for people, printable UTF-8, at most wire.MaxName bytes

	// Priority is 1…MaxPriority; the higher one is preferred. 0 never leads.
	Priority uint8
	// Preempt makes a board ask a leader of lower rank for the lead. Without it
	// the incumbent stays, and the address moves only when it must.
	Preempt bool
	// Interval is the time between two heartbeats, H; see CheckInterval.
	Interval  time.Duration
	Algorithm wire.Algorithm

	// Detector is the failure detector; zero is the one that suits the algorithm.
	Detector DetectorKind
	// Fanout says how a message to several boards travels.
	Fanout Fanout
	// ScoreSource is what the algorithm score compares.
	ScoreSource ScoreSource
	// Members lists boards that belong to the group even if they have never been
	// heard. The literature assumes that all know all; without the list a board
	// knows those it has heard. At most wire.MaxBoards.
	Members []wire.ID
}

func (c *Config) validate() error {
	if err := CheckInterval(c.Interval); err != nil {
		return fmt.Errorf("election: the heartbeat interval %v %w", c.Interval, err)
	}
	switch {
	case c.ID == wire.Nobody:
		return errors.New("election: a board needs an id other than 0")
	case c.Priority > MaxPriority:
		return fmt.Errorf("election: the priority must be at most %d, is %d", MaxPriority, c.Priority)
	case len(c.Name) > wire.MaxName:
		return fmt.Errorf("election: the name %q is longer than %d bytes", c.Name, wire.MaxName)
	case len(c.Members) > wire.MaxBoards:
		return fmt.Errorf("election: a group has at most %d boards, not %d", wire.MaxBoards, len(c.Members))
	case c.Detector >= detectorCount, c.Fanout >= fanoutCount, c.ScoreSource >= scoreSourceCount:
		return errors.New("election: no such detector, fanout or measure")
	case !utf8.ValidString(c.Name) || strings.ContainsFunc(c.Name, unicode.IsControl):
		// A HELLO with it could not be sent, so nobody would know this board.
		return fmt.Errorf("election: the name %+q is not printable UTF-8", c.Name)
	}
	return nil
}

// The times that do not depend on the heartbeat interval, and multiples of those that do.
const (
	// listenHalves is how many half intervals a board listens before it speaks.
	// Every half interval it asks who leads, so even at 40 % loss it misses a
	// living leader less than once in a thousand times.
	listenHalves = 5
	// soundingsAtOnce is how often a follower times the way to a new leader, one
	// interval apart, and soundEvery the pause from then on.
	soundingsAtOnce = 4
	soundEvery      = 10 * time.Second
	// soundMin leaves the answer time to come back before the next one is asked for.
	soundMin = 50 * time.Millisecond
	// preemptAfter heartbeats of peace a board of higher rank asks for the lead:
	// a board that comes and goes must not drag the address with it.
	preemptAfter = 20
	// resignMin is the time after which a RESIGN that no COORDINATOR answers is
	// repeated; it doubles. successors is how many boards are named, one after the other.
	resignMin  = 5 * time.Millisecond
	successors = 3
	// slowMax bounds for how long a successor may be slow.
	slowMax = 500 * time.Millisecond
	// barredFor is how long a conflict must be unheard of to be over. HELLOs of a
	// small group come every second.
	barredFor = helloLosses * helloFloor
	// noticeEvery bounds how often the same notice is given.
	noticeEvery = time.Minute
	// probeRetryMin and probeRetryMax bound how long a board waits after it found
	// the address taken; the kernel lets go of a frozen holder's address within 2.5 s.
	probeRetryMin = time.Second
	probeRetryMax = 10 * time.Second
)

// Core is the mind of one board. Its methods are not safe for concurrent use.
// The effects that a method returns are good until the next call.
type Core struct {
	cfg        Config
	definition Definition
	algorithm  Algorithm
	hooks      hooks // what the algorithm has besides
	detector   Detector
	score      uint32 // this board's importance, as it last told the others
	measured   uint32 // the same as the owner has found it out, for ScoreFromCommand
	roster     Roster
	alarms     alarms
	effects    []Effect
	counts     [reasonCount]uint64

	now       Instant
	startedAt Instant
	role      Role
	leader    wire.ID // whom this board follows or suspects; itself when it leads
	term      wire.Term

	// Of a follower: what it knows of the reign it lives under.
	leaderIncarnation wire.Incarnation
	reignTerm         wire.Term
	lastHeard         wire.Sequence // of the leader's newest HEARTBEAT
	lastBeat          uint8         // its number
	absent            wire.ID       // the leader that resigned or restarted, until there is another

	forgiven  bool    // the leader got a fresh interval since it was heard last
	yieldedTo wire.ID // the rival that this board let go for last
	yieldedAt Instant
	soundings int // how often the way to the leader was timed

	// Of a candidate.
	cause Reason // why it became one
	round uint8  // how often it has asked
	cold  bool   // no leader was heard since this board began to listen
	begs  int    // how often it has asked a leader of lower rank to hand over
	probe probeState
	retry time.Duration // until the address is probed again; doubles

	// askedAt and askedLast are when the first and the last of the asked questions went
	// out, for the round trip.
	askedAt, askedLast Instant
	asked              int
	wokeLate           time.Duration // by how much this call of Wake is late

	// Of a leader.
	beat        uint8
	reclaimedAt Instant
	repliedAt   Instant
	rivalAt     Instant // when a rival was heard last
	rivalSince  Instant // when it was heard first, without a pause since
	doubtUntil  Instant // a leader that was late yields to any higher term until then

	successor wire.ID // named in the last RESIGN
	named     int     // how many successors were
	namedAt   Instant
	repeat    time.Duration // until the RESIGN is repeated
	stopping  bool
	noticed   map[Notice]Instant

	// conflictSince is when the present conflict broke out, and conflictAt when it
	// was last heard of.
	conflictSince, conflictAt Instant
}

// probeState says how far a candidate has come in finding out whether the
// address is free.
type probeState uint8

const (
	probeNone probeState = iota // not wanted: a leader's silence is no time to wait
	probePending
	probeFree
)

// New returns the core of a board whose link is down. now is when its process started.
// The definition is that of the algorithm which cfg.Algorithm numbers on the wire.
func New(cfg Config, definition Definition, now Instant) (*Core, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	c := &Core{
		cfg:        cfg,
		definition: definition,
		alarms:     newAlarms(),
		now:        now,
		startedAt:  now,
		role:       Isolated,
		repliedAt:  now - noticeEvery,
		noticed:    make(map[Notice]Instant),
		// Long ago, so that the first conflict is one that breaks out.
		conflictAt: now - barredFor,
	}
	c.algorithm = definition.New(&Board{c})
	c.hooks = hooksOf(c.algorithm)
	c.detector = c.detectorKind().build(cfg.Interval)
	c.weigh()
	for _, id := range cfg.Members {
		if id != cfg.ID && id != wire.Nobody {
			c.roster.Expect(id)
		}
	}
	return c, nil
}

// rank is the board's own. A stopping board has no claim to anything.
func (c *Core) rank() Rank {
	if c.stopping {
		return Rank{ID: c.cfg.ID}
	}
	return Rank{Priority: c.cfg.Priority, ID: c.cfg.ID, Score: c.score}
}

// Deadline returns when Wake must be called next; ok is false if there is nothing to wait for.
func (c *Core) Deadline() (at Instant, ok bool) {
	at = c.alarms.earliest()
	return at, at != never
}

// enter begins every call: it takes in the time, and notices if the board was
// asleep while something was due.
func (c *Core) enter(now Instant) {
	c.now, c.wokeLate = max(c.now, now), 0
	c.effects = c.effects[:0]
	if due := c.alarms.earliest(); due < c.now && c.now-due > Grace(c.cfg.Interval) {
		c.overslept(c.now - due)
		// Once for each time: what has piled up meanwhile is taken in at this same moment.
		c.alarms.notBefore(c.now)
	}
}

// Wake is to be called when the deadline has come.
func (c *Core) Wake(now Instant) []Effect {
	due := c.alarms.earliest()
	c.enter(now)
	if due <= c.now {
		c.wokeLate = c.now - due
		c.detector.Woke(c.wokeLate)
	}
	for a := range alarmCount {
		if c.alarms[a] <= c.now {
			c.alarms[a] = never
			c.ring(a)
		}
	}
	return c.effects
}

func (c *Core) ring(a alarm) {
	switch a {
	case alarmHeartbeat:
		c.sendHeartbeat(false)
	case alarmHello:
		c.sendHello()
	case alarmListen:
		c.algorithm.Turn(ReasonNoLeader)
	case alarmQuery:
		c.sendQuery()
	case alarmTurn:
		c.myTurn()
	case alarmSound:
		c.sound()
	case alarmResign:
		c.resignAgain()
	case alarmPreempt:
		c.askForLead()
	case alarmBarred:
		c.becomeListener(ReasonConflictOver, c.listenWindow())
	case alarmAsk:
		c.algorithm.Expired(AnswersDue)
	case alarmVerdict:
		c.algorithm.Expired(CoordinatorDue)
	default:
		c.algorithm.Expired(OwnDeadline + Deadline(a-alarmOwn))
	}
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

// listenWindow is how long a board hears before it speaks: for so long that a
// leader which died just before is missed, and the election of its successor is
// over. heir misses it within an interval and asks for a few milliseconds.
func (c *Core) listenWindow() time.Duration {
	window := listenHalves * c.cfg.Interval / 2
	if c.detectorKind() == DetectorAsk {
		return window
	}
	return max(window, c.silence()+c.algorithm.ElectionDuration()+c.cfg.Interval/2)
}

// silence is for how long a leader must be silent to be suspected.
func (c *Core) silence() time.Duration { return c.cfg.Interval + c.detector.Quality().Margin }

// Probed tells how the probe ended that EffectProbe asked for. taken means that a
// foreign machine has the address.
func (c *Core) Probed(now Instant, taken bool) []Effect {
	c.enter(now)
	if c.role != Candidate || c.probe != probePending {
		return c.effects // somebody else leads by now
	}
	if taken {
		c.probe = probeNone
		c.retry = min(max(2*c.retry, probeRetryMin), probeRetryMax)
		c.becomeListener(ReasonAddressInUse, c.retry)
		return c.effects
	}
	c.probe, c.retry = probeFree, 0
	c.algorithm.AddressFree()
	return c.effects
}

// Reprioritise changes the priority and whether the board preempts, while it runs.
func (c *Core) Reprioritise(now Instant, priority uint8, preempt bool) []Effect {
	c.enter(now)
	c.cfg.Priority, c.cfg.Preempt = min(priority, 254), preempt
	c.weigh()
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

// Suspect tells that this board has learned, from elsewhere than its failure
// detector, that its leader is gone.
func (c *Core) Suspect(now Instant) []Effect {
	c.enter(now)
	if c.role == Follower && c.leader != wire.Nobody {
		c.algorithm.Turn(ReasonSilence)
	}
	return c.effects
}

// overslept is called when something was due for longer than the grace: this
// process, or the whole board, was not running. A board must doubt itself before
// it accuses anybody, and before it goes on as if it still led.
func (c *Core) overslept(late time.Duration) {
	switch c.role {
	case Leader:
		// A takeover may be under way: yield to whoever made one.
		c.doubtUntil = c.now + 2*c.cfg.Interval
		if late > c.cfg.Interval {
			// There has been one, very likely. Let go first, then ask.
			c.becomeFollower(wire.Nobody, ReasonSuspended)
			c.algorithm.Turn(ReasonSuspended)
		}
	case Follower:
		if !c.forgiven {
			c.detector.Forgive(c.now)
			c.awaitTurn()
		}
	case Candidate:
		if !c.forgiven {
			c.round = 0
		}
	case Listener:
		if !c.forgiven {
			c.alarms[alarmListen] = c.now + c.listenWindow()
		}
	}
	// Once is enough until the leader is heard again: a board that is always late,
	// because it has too much to do, must still be able to take over.
	c.forgiven = true
}
