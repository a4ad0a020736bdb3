package election

import (
	"errors"
	"fmt"
	"time"

	"topdog/election/clock"
	"topdog/election/lease"
	"topdog/election/silence"
	"topdog/wire"
)

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
	if !c.votes.needed() || c.votes.clockDistrusted == !trusted {
		return c.effects
	}
	c.votes.clockDistrusted = !trusted
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

// Grade is how fit this board says it is. A candidate says later what SetGrade has told it.
func (c *Core) Grade() wire.Grade { return c.fitness.told }

// SetGrade tells how fit this board is to lead, which is GradePassing until it is called. A board
// whose link is down may be told before it comes up. The others learn of it at once. While boards compare ranks
// nobody's changes, so a candidate tells its new grade when its candidacy is over.
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

// SetScore tells the score that the owner has found out, for ScoreFromCommand. The
// others learn of it at once.
func (c *Core) SetScore(now Instant, score uint32) []Effect {
	c.enter(now)
	if c.cfg.ScoreSource != ScoreFromCommand || c.score.set == score {
		return c.effects
	}
	c.score.set = score
	if c.role == Candidate {
		return c.effects // it goes out with the next HELLO
	}
	c.sendHello()
	if c.role == Follower {
		c.compareRanks()
	}
	return c.effects
}

// KeyDropped tells that this board does not accept a key any more. Somebody else may have that key, and one packet with a
// high sequence number in the name of a board makes everything late that the board itself says. So the sequence
// numbers that came with the key are forgotten. Those that came with the other key stay, because the network still delivers
// late what a board has said with that one.
//
// The promise of a voter (lease.Promise) keeps its sequence number. It may rest on a heartbeat that came with the key, and its
// end must not move back: without the number, a RESIGN that the leader sent before that heartbeat would release the promise
// when it comes late, while the leader counts on it. A number that is too high does no such harm. It only keeps
// the leader's own RESIGN from releasing the promise, so that this voter is free an interval and a grace after the last
// heartbeat. With its promise to another board it has another number.
func (c *Core) KeyDropped(now Instant, key wire.Fingerprint) []Effect {
	c.enter(now)
	c.roster.ForgetKey(key.Mark())
	var newest wire.Sequence
	if p := c.roster.Peer(c.lastLeader.id); p != nil && p.Incarnation == c.lastLeader.incarnation {
		newest = p.Newest()
	}
	// This is only compared with what others have heard. If it is too low, the next heartbeat corrects it.
	c.lastLeader.lastHeard = min(c.lastLeader.lastHeard, newest)
	return c.effects
}

// Resign hands the lead over because a person asks for it. The error says that this board does not lead, that nobody
// may take the lead or would keep it, or that this board would lead again at once.
func (c *Core) Resign(now Instant) ([]Effect, error) {
	c.enter(now)
	if c.role != Leader {
		return c.effects, fmt.Errorf("this board does not lead (it is a %v; the leader is %v)", c.role, c.leader)
	}
	heir, ok := c.Successor(c.now)
	p := c.roster.Peer(heir)
	switch {
	case !ok:
		return c.effects, errors.New("no other live board may lead, so there is nobody to hand over to")
	case c.paused():
		return c.effects, errors.New("the group is paused, so the address stays where it is: topdog unpause ends that")
	case unfit(p.Grade) && p.Grade > c.fitness.told:
		return c.effects, errors.New("no other board is fit to lead (each is drained, or its checks fail), " +
			"and would give the lead back at once: stop this board, or drain it")
	case c.definition.HighestLeads && c.supersedes(heir):
		return c.effects, errors.New("with this algorithm the first in rank always leads, " +
			"and this board would be back at once: stop it, or set its priority to 0")
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
		c.sendResign(wire.Nobody)
		c.emit(EffectFinished)
	}
	return c.effects
}

// Role returns what the board is at the moment.
func (c *Core) Role() Role { return c.role }

// Leader returns whom the board follows or suspects, or wire.Nobody.
func (c *Core) Leader() wire.ID { return c.leader }

// Peer returns what the board knows of another one; ok is false if that is nothing.
func (c *Core) Peer(id wire.ID) (p Peer, ok bool) {
	if found := c.roster.Peer(id); found != nil {
		return *found, true
	}
	return Peer{}, false
}

// Status is what a core can tell people.
type Status struct {
	Rank    Rank
	Role    Role
	Leader  wire.ID
	Term    wire.Term
	Heir    wire.ID // who takes over next, as this board sees it; Nobody if nobody could
	Peers   []Peer
	Quality silence.Quality
	// Patience is how late a leader may be, and why.
	Patience Patience
	Counts   map[Reason]uint64
	// Trust is the trusted set of the algorithm agents, ordered by id; else nil.
	Trust []wire.ID
	// Voters are those of the algorithm strict, ordered by id; else nil. MajorityUnheard says
	// that this leader does not hear the majority of them, so that its address is silent.
	Voters          []lease.VoterStatus
	MajorityUnheard bool
	// NoMulticast says that this board hears its leader, or as a leader any board, and not by multicast.
	NoMulticast bool
	// PortSilent says that nothing arrives on the port of this candidate, so that it claims nothing
	// and cannot know who leads.
	PortSilent bool
}

// Status returns a snapshot for people. It allocates; call it when somebody asks.
func (c *Core) Status(now Instant) Status {
	s := Status{
		Rank: c.toldRank(), Role: c.role, Leader: c.leader, Term: c.term, Heir: c.heirApparent(now),
		Peers: c.roster.Peers(), Quality: c.detector.Quality(), Patience: c.describePatience(),
		NoMulticast: c.getsNoMulticast(now), PortSilent: c.PortSilent(),
		Counts: make(map[Reason]uint64), Voters: c.votes.support.Status(c.now), MajorityUnheard: c.leading.fence.closed,
	}
	if a, ok := c.algorithm.(interface{ Trusted() []wire.ID }); ok {
		s.Trust = a.Trusted()
	}
	for r, n := range c.counts {
		if n > 0 {
			s.Counts[Reason(r)] = n
		}
	}
	return s
}

// heirApparent is who would take over if the leader were gone.
func (c *Core) heirApparent(now Instant) wire.ID {
	heir, ok := c.roster.Heir(now, c.leader)
	if c.role == Leader || !c.rank().Eligible() {
		return heir
	}
	if p := c.roster.Peer(heir); !ok || c.Above(c.rank(), p.Rank()) {
		return c.cfg.ID
	}
	return heir
}

// Patience is how late a leader of the group may be until it is replaced, and why.
type Patience struct {
	Grace, Default, Limit time.Duration
	// Lesson is from what a longer grace than the default was learned.
	Lesson silence.Lesson
	// HalveAt is when the grace is halved, if it is longer than the default and not needed until then.
	HalveAt Instant
}

func (c *Core) describePatience() Patience {
	p := Patience{Grace: c.detector.Grace(), Default: c.grace.Default(), Limit: c.grace.Limit}
	if c.role == Leader {
		p.Grace = c.grace.Announced
	}
	if p.Grace > p.Default {
		p.Lesson, p.HalveAt = c.grace.Lesson, c.grace.HalveAt
	}
	return p
}

// getsNoMulticast reports whether this board gets no multicast from a board that it hears: its
// leader, or any if it leads itself. Where nobody is heard, nothing shows that a path is lost.
func (c *Core) getsNoMulticast(now Instant) bool {
	if c.role == Leader {
		return c.paths.noMulticast && c.roster.Live(now) > 0
	}
	leader := c.roster.Peer(c.leader)
	return c.paths.noMulticast && leader != nil && leader.Live(now)
}
