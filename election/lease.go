package election

import (
	"time"

	"topdog/wire"
)

// A leader may be frozen while it leads. Its owner can have a lease watched, from one
// heartbeat to the next, by something that is not frozen with it: when the lease runs
// out, that lets go of the address, sends the will, and the leader is told when it is
// back (Lapsed).

// Lease is for how long, counted from its last heartbeat, this leader can be sure
// that nobody has deposed it; 0 means for ever, since no live board could.
func (c *Core) Lease() time.Duration {
	if _, ok := c.roster.Heir(c.now, c.cfg.ID, c.above); !ok {
		return 0
	}
	// A quarter of the grace is left for letting go. Where suspicion is not asked about
	// first, what counts is the silence that the others wait for; they see the same
	// network, but each with its own eyes.
	lease := c.cfg.Interval + Grace(c.cfg.Interval)*3/4
	if c.cfg.Detector.For(c.cfg.Algorithm) != DetectorAsk {
		lease = max(lease, c.silence()-c.cfg.Interval/2)
	}
	return lease
}

// Will is the RESIGN that this leader would send if it had to go now, as one that
// stops; ok is false if it does not lead or nobody could follow it. The owner fills in
// incarnation and sequence, and the sequence must be one that comes after
// everything that is sent before the will is.
func (c *Core) Will() (m wire.Message, ok bool) {
	if c.role != Leader {
		return m, false
	}
	heir, ok := c.roster.Heir(c.now, c.cfg.ID, c.above)
	m.Header = c.Signature()
	m.Type, m.Leading, m.Priority = wire.TypeResign, false, 0
	m.Resign.Successor = heir
	return m, ok
}

// Lapsed tells that the lease of this leader has run out, and that its will was
// sent. Whatever its rank, it is the last one to claim then.
func (c *Core) Lapsed(now Instant) []Effect {
	c.enter(now)
	if c.role == Leader {
		c.becomeFollower(wire.Nobody, ReasonLapsed)
		c.postpone(c.listenWindow())
	}
	// The will said that this board has gone.
	c.sendHello()
	return c.effects
}
