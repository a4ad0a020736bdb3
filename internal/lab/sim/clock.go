package sim

import (
	"time"

	"topdog/election"
)

// Clock is a board's monotonic clock. No two of a real LAN agree: each counts from
// when its board was switched on, and runs as fast as its quartz does. The one of a
// Pi is within some 20 ppm.
type Clock struct {
	// Origin is what the clock shows when the simulation begins.
	Origin election.Instant
	// PPM is by how many millionths it runs fast, or slow if negative.
	PPM int
}

// MaxDrift bounds how wrong a clock may go: a tenth.
const MaxDrift = 100_000

// million is what a drift is measured in.
const million = 1_000_000

// Local returns what the clock shows at a moment of the simulation. The parts
// above and below a million are scaled apart, so that no run is too long.
func (c Clock) Local(at election.Instant) election.Instant {
	if c.PPM == 0 {
		return c.Origin + at
	}
	rate := time.Duration(million + c.PPM)
	return c.Origin + at/million*rate + at%million*rate/million
}

// Global returns the first moment of the simulation at which the clock shows that
// much, or more: a core is never woken before its time.
func (c Clock) Global(shows election.Instant) election.Instant {
	shows -= c.Origin
	if c.PPM == 0 || shows <= 0 {
		return shows
	}
	rate := time.Duration(million + c.PPM)
	return shows/rate*million + (shows%rate*million+rate-1)/rate
}
