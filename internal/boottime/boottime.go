// Package boottime reads the clock that all processes of a machine share. No other package reads it.
package boottime

import (
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// Instant is a moment on the kernel's CLOCK_BOOTTIME, in nanoseconds since the machine was started. One process may
// tell it to another. It is not a time.Duration, so that the compiler refuses to compare it with a time that is counted
// from another moment, such as the start of a process.
type Instant int64

// Add returns the moment that is d later.
func (i Instant) Add(d time.Duration) Instant { return i + Instant(d) }

// Sub returns how much later the moment is than another one.
func (i Instant) Sub(earlier Instant) time.Duration { return time.Duration(i - earlier) }

// Now reads the kernel's CLOCK_BOOTTIME: the time since the machine was started. All
// processes of a machine agree on it, and so do the programs that run in its kernel. It never
// jumps, whatever NTP or an administrator does to the date (a Raspberry Pi has no clock
// battery and jumps by years when NTP first arrives). It goes on while the machine is
// suspended, so that a leader that wakes up knows that its lease has ended. The result is never
// ahead of the kernel's clock. So if the kernel gets a deadline that was computed from the
// result, it never acts too late.
//
// Now costs no system call, although reading that clock is one for a Go program: it uses Go's own
// monotonic clock, which is read from memory and stands still while the machine is suspended. It
// asks for the length of the suspension only when the date has moved against that clock, as it
// does in a suspension.
//
// In a testing/synctest bubble it follows the bubble's virtual time.
func Now() Instant {
	t := time.Now()
	awake := t.Sub(clock.origin)
	date := time.Duration(t.UnixNano()) - awake
	if moved := date - time.Duration(clock.date.Load()); moved > dateMoves || moved < -dateMoves {
		clock.notice(suspended())
		clock.date.Store(int64(date)) // last: a thread that reads this date must find the suspension stored
	}
	return Instant(awake + clock.zero + time.Duration(clock.suspended.Load()))
}

// dateMoves is how far the date must move against the monotonic clock before a suspension is
// looked for. NTP changes the rate of the date, by half a millisecond per second at most.
const dateMoves = time.Millisecond

// bootClock computes CLOCK_BOOTTIME from Go's monotonic clock.
type bootClock struct {
	origin    time.Time     // carries a reading of the monotonic clock
	zero      time.Duration // what CLOCK_BOOTTIME would have shown then, had the machine never been suspended
	suspended atomic.Int64  // how long the machine has been suspended in all
	date      atomic.Int64  // how far the date was ahead of the monotonic clock at the last look
}

// clock is the one bootClock of this process.
var clock = newBootClock()

func newBootClock() *bootClock {
	c := &bootClock{origin: time.Now()}
	// An interrupted comparison takes long, so the shortest of several is used. The later
	// reading of Go's clock is subtracted, so that the result is never ahead.
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

// notice stores how long the machine has been suspended. A difference below a millisecond is
// not a suspension: the two clocks are not read at the same moment.
func (c *bootClock) notice(now time.Duration) {
	for {
		before := c.suspended.Load()
		if int64(now)-before <= int64(time.Millisecond) || c.suspended.CompareAndSwap(before, int64(now)) {
			return
		}
	}
}

// suspended returns how long the machine has been suspended since it was started.
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
	// All clocks that topdog reads exist on every Linux from 2.6.39 on, so there is no error.
	_ = unix.ClockGettime(id, &t)
	return time.Duration(t.Nano())
}
