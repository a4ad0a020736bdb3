package election

import (
	"time"
	"topdog/wire"
)

// The grace is a value of the group. The leader announces it in every HEARTBEAT and
// COORDINATOR, and its lease has three quarters of it. The followers ask, claim and take
// turns by what their leader has announced.
//
// A follower claims no sooner than last + H + G, where last is when a heartbeat came and G
// what it announced (Earliest). A lease ends at sent + H + ¾ of the leader's own grace, where
// sent is not later than last. So a lease is over before a claim if the leader's own grace
// is at most G of the newest heartbeat that the claimant has heard. For that
//
//   - a raised grace is announced first. The lease has it an interval later, when two
//     heartbeats at least have said so: to have missed one of them does not matter.
//   - a lowered grace is first that of the lease. It is announced when the last lease that
//     was longer is over: an interval and the old grace later. Who misses that is only slow.
//   - a follower that has not heard what its leader announces, because it found it by
//     another message, supposes the longest grace that it would grant itself.
//   - without a leader there is no lease, and the default is enough.
//
// A claimant that has missed the newest heartbeats claims by an older one, whatever the
// grace is. Then it is not the lease that excludes a second holder.

// grace is the grace of the group as this board knows it.
type grace struct {
	// heard is what the leader has announced that this board follows; 0 is nothing yet.
	heard time.Duration
	// announced is what this leader says, and lease that of which its lease has three quarters.
	announced, lease    time.Duration
	raisedAt, loweredAt Instant // when announced became longer, and when lease became shorter
}

func (c *Core) defaultGrace() time.Duration { return DefaultGrace(c.cfg.Interval) }

// allow tells the detector which grace the leader has that this board watches.
func (c *Core) allow() {
	switch {
	case c.role == Leader:
		c.detector.Allow(c.grace.lease)
	case c.leader == wire.Nobody:
		c.detector.Allow(c.defaultGrace())
	case c.grace.heard > 0:
		c.detector.Allow(c.grace.heard)
	default:
		c.detector.Allow(c.patienceLimit())
	}
}

// allowAnother is for a board that has another leader than before, leads itself, or has none.
func (c *Core) allowAnother() {
	c.grace = grace{}
	c.patience.granted, c.patience.told = false, false
	if c.role == Leader {
		c.patience.halveAt = c.now + patienceRule.halfLife
		g := c.wantedGrace()
		c.grace = grace{announced: g, lease: g, raisedAt: c.now, loweredAt: c.now}
	}
	c.allow()
}

// wantedGrace is what this leader would announce if it could do so at once.
func (c *Core) wantedGrace() time.Duration {
	return max(c.patience.learned, c.defaultGrace())
}

// announceGrace returns the grace for a message from which the others count the time until
// the next heartbeat; 0 is the default. It brings the grace one step nearer to what is wanted.
func (c *Core) announceGrace() time.Duration {
	c.halvePatience()
	g := &c.grace
	switch want := c.wantedGrace(); {
	case g.lease > want:
		g.lease, g.loweredAt = want, c.now
	case g.announced < want:
		g.announced, g.raisedAt = want, c.now
	case g.lease < want && c.now >= g.raisedAt+c.cfg.Interval:
		g.lease = want
	case g.announced > want && c.now >= g.loweredAt+c.cfg.Interval+g.announced:
		g.announced = want
	}
	c.allow()
	return c.announcedGrace()
}

// announcedGrace is what this leader has announced, as messages have it.
func (c *Core) announcedGrace() time.Duration {
	if c.grace.announced == c.defaultGrace() || c.role != Leader {
		return 0
	}
	return c.grace.announced
}

// hearGrace receives what the leader of this board announces.
func (c *Core) hearGrace(h *wire.Heartbeat) {
	if c.grace.heard = h.Grace; h.Grace == 0 {
		c.grace.heard = DefaultGrace(h.Interval)
	}
	c.followPatience(max(h.Grace, c.defaultGrace()))
	c.allow()
}
