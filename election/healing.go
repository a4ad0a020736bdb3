package election

import (
	"math"
	"time"
	"topdog/election/clock"
	"topdog/election/silence"
	"topdog/wire"
)

// When a partition has healed, the address goes to the fitter leader, and of two that are as fit
// to the one that more boards have followed since the younger one of the two began to lead. Rosters remember followers for seconds, and
// followers change sides as soon as they hear a higher term, so nothing else tells who
// served. One of two leaders decides, and the other one obeys.

// settleRivalry receives a message of another leader. The one of the lower term decides, or the
// lower rank where the terms are equal. It knows its own reach, and is told the other one's.
func (c *Core) settleRivalry(m *wire.Message) {
	c.leading.reclaim = clock.Deadline{} // the board of the higher term is found
	lower := m.Term > c.term || m.Term == c.term && c.above(c.rankOf(&m.Header), c.rank())
	told := m.Type == wire.TypeRival && m.Rival.Rival == c.cfg.ID
	switch {
	case told && m.Rival.Decision == wire.DecisionYield:
		c.yield(m, ReasonRivalServed)
	case !lower:
		c.reply()
		rival := c.rival(m.Sender, c.reign())
		if told {
			rival = c.rival(m.Sender, min(c.reign(), m.Rival.Age))
			rival.Reply = true
		}
		c.send(m.Sender, rival)
	case m.Grade < c.fitness.told:
		c.yield(m, ReasonRivalFitter)
	case m.Grade > c.fitness.told:
		c.depriveRival(m)
	case c.reach(c.reign()) == 0, m.Type == wire.TypeCoordinator && !m.Reply:
		// Nobody has followed this board, or nobody can have since the other one began.
		c.yield(m, ReasonRivalServed)
	case !told, m.Rival.Age > c.reign() && !m.Reply:
		// It has not said what its reach is, or could not say it of this reign, the younger one.
		c.askRival(m.Sender)
	case c.reach(min(c.reign(), m.Rival.Age)) > int(m.Rival.Reach):
		c.depriveRival(m)
	default:
		c.yield(m, ReasonRivalServed)
	}
}

// depriveRival decides that another leader gives up the lead, and this one keeps it.
func (c *Core) depriveRival(m *wire.Message) {
	rival := c.rival(m.Sender, c.reign())
	rival.Rival.Decision = wire.DecisionYield
	c.send(m.Sender, rival)
	c.reclaim(m.Term)
}

// reign is for how long this board has led.
func (c *Core) reign() time.Duration { return c.now - c.leading.since }

// reach counts the boards that were heard following this leader within the last time of that
// length.
func (c *Core) reach(within time.Duration) int { return c.roster.Reach(c.now, within) }

// askRival asks another leader for its reach, but no more often than it can answer.
func (c *Core) askRival(rival wire.ID) {
	if c.now-c.rivals.askedAt >= silence.RoundTripMin {
		c.rivals.askedAt = c.now
		c.send(rival, c.rival(rival, c.reign()))
	}
}

// rival returns the RIVAL that tells another leader the reach of this one within that time. It
// is a reply if the younger one of the two reigns is known to have begun then.
func (c *Core) rival(other wire.ID, within time.Duration) wire.Message {
	return wire.Message{
		Header: wire.Header{Type: wire.TypeRival},
		Rival: wire.Rival{
			Rival: other, Reach: uint8(min(c.reach(within), math.MaxUint8)), Age: c.reign().Truncate(time.Millisecond),
		},
	}
}

// hearExceeded is for a leader that hears a board which knows of a higher term: somebody was
// elected meanwhile, and perhaps leads. A heartbeat at once makes that board answer if it
// does. If nobody does, this leader proclaims itself anew.
func (c *Core) hearExceeded(m *wire.Message) {
	if c.definition.HighestLeads {
		c.reclaim(m.Term)
		return
	}
	c.reply()
	c.leading.exceeded = max(c.leading.exceeded, m.Term)
	if !c.leading.reclaim.Set {
		c.leading.reclaim = clock.Due(c.now + max(c.defaultGrace(), c.detector.RoundTripBound()))
	}
}

// reclaimUnopposed proclaims this leader anew, since nobody else says that it leads.
func (c *Core) reclaimUnopposed() { c.reclaim(c.leading.exceeded) }
