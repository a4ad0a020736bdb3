package election

import "topdog/wire"

// above reports whether the rank a comes before b: a board that may lead before one that may not,
// then the fitter one, then as the algorithm has it.
func (c *Core) above(a, b Rank) bool {
	return c.roster.Before(a, b)
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
