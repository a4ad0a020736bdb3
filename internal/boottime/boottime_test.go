package boottime

import (
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"

	"topdog/internal/lab/assert"
)

// TestNowIsBoottime: leases are told to the kernel and to other processes by this clock.
func TestNowIsBoottime(t *testing.T) {
	for range 1000 {
		before := Read(unix.CLOCK_BOOTTIME)
		now := time.Duration(Now())
		after := Read(unix.CLOCK_BOOTTIME)
		// The clocks were compared when the program began, while it may have been interrupted.
		const compared = time.Millisecond
		if now > after || now < before-compared {
			t.Fatalf("the clock shows %v, and the kernel's %v to %v", now, before, after)
		}
	}
}

// TestNowAfterSuspension has the machine suspended for a time that Go's clock does not count.
func TestNowAfterSuspension(t *testing.T) {
	c := newBootClock()
	total := time.Duration(c.suspended.Load())
	for _, test := range []struct {
		suspended time.Duration
		want      time.Duration
	}{
		{total + 100*time.Microsecond, 0}, // the two clocks were not read at the same moment
		{total + time.Hour, time.Hour},
		{total, time.Hour}, // time that has passed does not come back
		{total + time.Hour + time.Minute, time.Hour + time.Minute},
	} {
		c.notice(test.suspended)
		assert.Is(t, test.want, time.Duration(c.suspended.Load())-total, "suspended for %v, the clock moves by", test.suspended-total)
	}
}

// TestNowWhenTheDateJumps: the date is no time.
func TestNowWhenTheDateJumps(t *testing.T) {
	before := Now()
	clock.date.Add(int64(-365 * 24 * time.Hour))
	if passed := Now().Sub(before); passed < 0 || passed > time.Minute {
		t.Errorf("%v have passed when the date has jumped", passed)
	}
	if date := time.Duration(clock.date.Load()); date < 0 {
		t.Error("that the date has jumped was not noticed")
	}
}

func TestNowInABubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		before := Now()
		time.Sleep(time.Hour)
		assert.Is(t, time.Hour, Now().Sub(before), "after an hour of virtual time")
	})
}

func BenchmarkNow(b *testing.B) {
	for b.Loop() {
		Now()
	}
}
