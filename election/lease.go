package election

import (
	"time"

	"topdog/wire"
)

// A leader may be frozen while it leads. Its owner can have a lease watched, from one
// heartbeat to the next, by something that is not frozen with it: when the lease runs
// out, that lets go of the address, sends the will, and the leader is told when it is
// back (LeaseExpired).

// Lease is for how long, counted from its last heartbeat, this leader can be sure
// that nobody has deposed it; 0 means for ever, since no live board could. It supposes
// that the others have the detector that this board has.
func (c *Core) Lease() time.Duration {
	if _, ok := c.roster.Heir(c.now, c.cfg.ID, c.above); !ok {
		return 0
	}
	// A quarter of the grace is left for letting go. Where suspicion is not asked about
	// first, what counts is the silence that the others wait for; they see the same
	// network, but each with its own eyes.
	lease := c.cfg.Interval + Grace(c.cfg.Interval)*3/4
	if c.detectorKind() != DetectorAsk {
		lease = max(lease, c.silence()-c.cfg.Interval/2)
	}
	return lease
}

// PresignedResign is the RESIGN that this leader would send if it had to go now, as one that
// stops; ok is false if it does not lead or nobody could follow it. The owner fills in
// incarnation and sequence, and the sequence must be one that comes after
// everything that is sent before the will is.
func (c *Core) PresignedResign() (m wire.Message, ok bool) {
	if c.role != Leader {
		return m, false
	}
	heir, ok := c.roster.Heir(c.now, c.cfg.ID, c.above)
	m.Header = c.Signature()
	m.Type, m.Leading, m.Priority = wire.TypeResign, false, 0
	m.Resign.Successor = heir
	return m, ok
}

// lastWords is how long after a lapse the will may still be said: what is lost of it is
// repeated, and a word of this board that came before it would make it a late one.
const lastWords = 25 * time.Millisecond

// LeaseExpired tells that the lease of this leader has run out, and that its will was
// sent. Whatever its rank, it is the last one to claim then.
func (c *Core) LeaseExpired(now Instant) []Effect {
	// As enter, but for the doubts: what this board missed is known, and it must not hold
	// an election, as one that overslept does, before it has let go.
	c.now, c.wokeLate = max(c.now, now), 0
	c.effects = c.effects[:0]
	c.alarms.notBefore(c.now)
	if c.role != Leader {
		return c.effects
	}
	c.becomeFollower(wire.Nobody, ReasonLeaseExpired)
	c.postpone(c.listenWindow())
	c.alarms[alarmHello] = c.now + lastWords // the will said that this board has gone
	return c.effects
}
