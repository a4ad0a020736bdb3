package election

import (
	"fmt"

	"topdog/wire"
)

// Rank is what boards are ordered by. [Core.Above] is their order.
type Rank struct {
	// Grade is how fit the board is. The fitter one comes first in all algorithms.
	Grade    wire.Grade
	Priority uint8
	ID       wire.ID
	// Score is what the algorithm score compares, and no other.
	Score uint32
}

// byPriority is the order of most algorithms: the higher priority, then the higher id.
func byPriority(a, b Rank) bool {
	if a.Priority != b.Priority {
		return a.Priority > b.Priority
	}
	return a.ID > b.ID
}

// Eligible reports whether a board of this rank may lead: priority 0 says never.
func (r Rank) Eligible() bool { return r.Priority > 0 }

func (r Rank) String() string { return fmt.Sprintf("%d/%s", r.Priority, r.ID) }

// above reports whether the rank a comes before b: a board that may lead before one that may not,
// then the fitter one, then as the algorithm has it.
func (c *Core) above(a, b Rank) bool {
	switch {
	case a.Eligible() != b.Eligible():
		return a.Eligible()
	case a.Grade != b.Grade:
		return a.Grade < b.Grade
	case c.definition.Order != nil:
		return c.definition.Order(a, b)
	default:
		return byPriority(a, b)
	}
}

// Above reports whether the rank a comes before b in the order of this group.
func (c *Core) Above(a, b Rank) bool { return c.above(a, b) }

// rankOf returns the rank of a message's sender. A score that the message does
// not tell is the one that the sender told last.
func (c *Core) rankOf(h *wire.Header) Rank {
	r := Rank{Grade: h.Grade, Priority: h.Priority, ID: h.Sender}
	if p := c.roster.Peer(h.Sender); p != nil && p.Incarnation == h.Incarnation {
		r.Score = p.Score
	}
	return r
}

// outranks reports whether this board comes before another one that it knows.
func (c *Core) outranks(id wire.ID) bool {
	p := c.roster.Peer(id)
	return p != nil && c.above(c.rank(), p.Rank())
}

// rank is the board's own as it counts in an election. During a pause only one board may lead.
func (c *Core) rank() Rank {
	r := c.toldRank()
	if c.pausedOut() {
		r.Priority = 0
	}
	return r
}

// toldRank is the board's own as the others know it. A stopping board has no claim to anything, and nor
// has one without a vote.
func (c *Core) toldRank() Rank {
	if c.stopping || c.hooks.electorate != nil && !c.hooks.electorate.MayLead() {
		return Rank{Grade: c.fitness.told, ID: c.cfg.ID}
	}
	return Rank{Grade: c.fitness.told, Priority: c.cfg.Priority, ID: c.cfg.ID, Score: c.score.told}
}
