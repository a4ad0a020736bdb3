package election

import (
	"fmt"

	"topdog/wire"
)

// Rank is what boards are ordered by. The algorithm says how; [Rank.Above] is
// the order of most of them.
type Rank struct {
	Priority uint8
	ID       wire.ID
	// Score is what the algorithm score compares, and no other.
	Score uint32
}

// Above reports whether r outranks other: by priority first, then by id. Higher wins.
func (r Rank) Above(other Rank) bool {
	if r.Priority != other.Priority {
		return r.Priority > other.Priority
	}
	return r.ID > other.ID
}

// Eligible reports whether a board of this rank may lead: priority 0 says never.
func (r Rank) Eligible() bool { return r.Priority > 0 }

func (r Rank) String() string { return fmt.Sprintf("%d/%s", r.Priority, r.ID) }

// above reports whether the rank a comes before b in the order of the algorithm.
func (c *Core) above(a, b Rank) bool { return c.algorithm.Above(a, b) }

// Above reports whether the rank a comes before b in the order of this group's algorithm.
func (c *Core) Above(a, b Rank) bool { return c.above(a, b) }

// rankOf returns the rank of a message's sender. A score that the message does
// not tell is the one that the sender told last.
func (c *Core) rankOf(h *wire.Header) Rank {
	r := Rank{Priority: h.Priority, ID: h.Sender}
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

// rank is the board's own. A stopping board has no claim to anything, and nor
// has one without a vote.
func (c *Core) rank() Rank {
	if c.stopping || c.hooks.electorate != nil && !c.hooks.electorate.MayLead() {
		return Rank{ID: c.cfg.ID}
	}
	return Rank{Priority: c.cfg.Priority, ID: c.cfg.ID, Score: c.score.told}
}
