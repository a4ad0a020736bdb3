// Package boottime reads the clock that all processes of a machine have in common, and is the only one that does.
package boottime

import (
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// Instant is a moment on the kernel's CLOCK_BOOTTIME, in nanoseconds since the machine was started. One process may
// tell it to another. It is no time.Duration, so that the compiler refuses to compare it with a time that is counted
// from anything else, such as the beginning of a process.
type Instant int64

// Add returns the moment that is d later.
func (i Instant) Add(d time.Duration) Instant { return i + Instant(d) }

// Sub returns how much later it is than another moment.
func (i Instant) Sub(earlier Instant) time.Duration { return time.Duration(i - earlier) }

// Now reads the kernel's CLOCK_BOOTTIME: the time since the machine was started. All
// processes of a machine agree on it, and so do the programs that run in its kernel. It never
// jumps, whatever NTP or an administrator does to the date (a Raspberry Pi has no clock
// battery and jumps by years when NTP first arrives). It goes on while the machine is
// suspended, so that a leader that wakes up knows that its lease has ended. It is never
// ahead of the kernel's, so that what it says to end later has not ended there.
//
// It costs no system call, which a reading of that clock is for a Go program: Go's own
// monotonic clock is read from memory, and stands still while the machine is suspended. For
// how long it was is asked only when the date has moved against it, as it then has.
//
// In a testing/synctest bubble it follows the bubble's virtual time.
func Now() Instant {
	t := time.Now()
	awake := t.Sub(clock.origin)
	date := time.Duration(t.UnixNano()) - awake
	if moved := date - time.Duration(clock.date.Load()); moved > dateMoves || moved < -dateMoves {
		clock.notice(suspended())
		clock.date.Store(int64(date)) // last: who sees no move must know of the suspension
	}
	return Instant(awake + clock.zero + time.Duration(clock.suspended.Load()))
}

// dateMoves is by how much the date must move against the monotonic clock to be looked
// into. NTP slows and speeds the date, by half a millisecond in a second at most.
const dateMoves = time.Millisecond

// bootClock is what makes CLOCK_BOOTTIME of Go's monotonic clock.
type bootClock struct {
	origin    time.Time     // carries a reading of the monotonic clock
	zero      time.Duration // what CLOCK_BOOTTIME would have shown then, had the machine never been suspended
	suspended atomic.Int64  // for how long the machine has been suspended, in all
	date      atomic.Int64  // by how much the date was ahead of the monotonic clock when that was looked into
}

// clock is that of this process.
var clock = newBootClock()

func newBootClock() *bootClock {
	c := &bootClock{origin: time.Now()}
	// A comparison that was interrupted takes long, and the shortest of some is used. The
	// reading before the other one is the earlier one, so the result is never ahead.
	shortest := time.Hour
	for range 8 {
		before := time.Since(c.origin)
		boot := Read(unix.CLOCK_BOOTTIME)
		after := time.Since(c.origin)
		if took := after - before; took < shortest {
			shortest = took
			c.zero = boot - after
		}
	}
	asleep := suspended()
	c.zero -= asleep
	c.suspended.Store(int64(asleep))
	return c
}

// notice enters for how long the machine has been suspended. Nothing less than a millisecond
// is a suspension: the two clocks are not read at the same moment.
func (c *bootClock) notice(now time.Duration) {
	for {
		before := c.suspended.Load()
		if int64(now)-before <= int64(time.Millisecond) || c.suspended.CompareAndSwap(before, int64(now)) {
			return
		}
	}
}

// suspended is for how long the machine has been suspended since it was started.
func suspended() (total time.Duration) {
	shortest := time.Hour
	for range 8 {
		before := Read(unix.CLOCK_MONOTONIC)
		boot := Read(unix.CLOCK_BOOTTIME)
		after := Read(unix.CLOCK_MONOTONIC)
		if took := after - before; took < shortest {
			shortest, total = took, boot-after
		}
		if shortest < time.Millisecond/10 {
			break // good enough for what counts as a suspension
		}
	}
	return total
}

// Read reads a clock of the kernel.
func Read(id int32) time.Duration {
	var t unix.Timespec
	// All that topdog reads exist on every Linux from 2.6.39 on, so there is no error.
	_ = unix.ClockGettime(id, &t)
	return time.Duration(t.Nano())
}
