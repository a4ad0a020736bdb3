// Package clock has points in time and deadlines, as values. It reads no clock.
package clock

import "time"

// Instant is a point in time on the board's monotonic clock: the time since an
// origin that means nothing. It never jumps.
type Instant = time.Duration

// Deadline is when something is to be done. The zero one is not set.
type Deadline struct {
	At  Instant
	Set bool
}

// Due returns a deadline that is set.
func Due(at Instant) Deadline { return Deadline{at, true} }

// After makes a deadline that is set sooner, or not at all, come at that time.
func (d Deadline) After(at Instant) Deadline {
	if d.Set && d.At > at {
		return d
	}
	return Due(at)
}

// Before makes a deadline that is set later, or not at all, come at that time.
func (d Deadline) Before(at Instant) Deadline {
	if d.Set && d.At < at {
		return d
	}
	return Due(at)
}

// Reached reports whether the time of a deadline has come.
func (d Deadline) Reached(now Instant) bool { return d.Set && d.At <= now }

// Ahead reports whether a deadline is still to come.
func (d Deadline) Ahead(now Instant) bool { return d.Set && d.At > now }
