package election

import (
	"time"

	"topdog/election/lease"
	"topdog/election/silence"
	"topdog/wire"
)

// Role returns what the board is at the moment.
func (c *Core) Role() Role { return c.role }

// Leader returns whom the board follows or suspects, or wire.Nobody.
func (c *Core) Leader() wire.ID { return c.leader }

// Successor returns the board that this one would hand over to; ok is false if
// there is none.
func (c *Core) Successor(now Instant) (id wire.ID, ok bool) {
	return c.roster.Heir(now, c.cfg.ID)
}

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
		Counts: make(map[Reason]uint64), Voters: c.votes.support.Status(c.now), MajorityUnheard: c.votes.fence.closed,
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
	p := Patience{Grace: c.detector.Grace(), Default: c.defaultGrace(), Limit: c.grace.Limit()}
	if c.role == Leader {
		p.Grace = c.grace.Announced()
	}
	if p.Grace > p.Default {
		p.Lesson, p.HalveAt = c.grace.Lesson(), c.grace.HalveAt
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
