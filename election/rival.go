package election

import "topdog/wire"

// rivals is what this board knows of other leaders that it has heard while it led.
type rivals struct {
	yieldedTo  wire.ID // the last one for which this board released the address
	yieldedAt  Instant
	heardAt    Instant // when one was heard last
	heardSince Instant // when it was heard first, without a pause since
	askedAt    Instant // when one was last told the reach of this leader
}

// hearRival decides between two leaders that hear each other, after a partition has healed. If
// the highest rank always leads, the other one releases the address at once and resigns, and the
// higher one then proclaims itself in a term above both (see hearOther). Otherwise who served
// keeps the address, see settleRivalry.
func (c *Core) hearRival(m *wire.Message) {
	if c.hooks.electorate != nil {
		c.hooks.electorate.RivalHeard(m)
		return
	}
	c.notify(Notice{Kind: NoticeRival, Board: m.Sender})
	rival := c.rankOf(&m.Header)
	suspended := c.now < c.leading.doubtUntil && m.Term > c.term
	unheard := c.unheard(m)
	switch {
	case c.definition.HighestLeads && c.above(rival, c.rank()):
		c.yield(m, ReasonRival)
	case suspended:
		c.yield(m, ReasonSuspended)
	case unheard:
		c.yield(m, ReasonUnheard)
	case !c.definition.HighestLeads:
		c.settleRivalry(m)
	default:
		c.term = max(c.term, m.Term)
		if m.Type != wire.TypeRival { // one that looks for this board may do so 25 times a second; an answer to it alone is enough
			c.reply()
		}
		if c.definition.ComparesScores {
			c.sayHello(m.Sender) // a HEARTBEAT does not tell the score, which the rival must know
		} else {
			c.replyTo(m.Sender) // perhaps multicast does not reach it
		}
	}
}

// yield releases the address for a rival, and resigns in its favour.
func (c *Core) yield(m *wire.Message, reason Reason) {
	c.term = max(c.term, m.Term)
	c.becomeFollower(m.Sender, reason)
	c.rivals.yieldedTo, c.rivals.yieldedAt = m.Sender, c.now
	c.multicast(wire.Message{
		Header: wire.Header{Type: wire.TypeResign},
		Resign: wire.Resign{Successor: m.Sender},
	})
}

// unheard reports whether this leader must think that nobody hears it: a rival
// of lower rank goes on leading although it was answered time and again, and
// no live board says that it follows this one. A rival that could hear would
// have released the address within a round trip. If others do follow this leader, it is
// the rival that hears nobody, and to yield would give it the address.
func (c *Core) unheard(m *wire.Message) bool {
	if c.now-c.rivals.heardAt > 2*c.cfg.Interval {
		c.rivals.heardSince = c.now
	}
	c.rivals.heardAt = c.now
	return c.now-c.rivals.heardSince > c.listenWindow() && !c.roster.Followed(c.now, c.cfg.ID, m.Sender)
}

// reclaim proclaims this leader anew, above a term that a former rival has used,
// and announces the address anew to clients that have sent to the rival.
func (c *Core) reclaim(above wire.Term) {
	c.term = nextTerm(max(c.term, above))
	c.leading.reclaimedAt = c.now
	c.acquire()
	c.proclaim()
}

// crossing reports whether a RESIGN in favour of this board has crossed one that
// this board has sent in favour of a sender of higher rank.
func (c *Core) crossing(m *wire.Message) bool {
	return m.Sender == c.rivals.yieldedTo && c.now-c.rivals.yieldedAt < c.cfg.Interval && c.above(c.rankOf(&m.Header), c.rank())
}
