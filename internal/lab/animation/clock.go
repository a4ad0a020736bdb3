package animation

import (
	"time"

	"topdog/internal/lab/demo"
)

const (
	// slowdown is how much slower the picture goes around an outage. A takeover of 70 ms then
	// lasts 1.4 s, which one can follow.
	slowdown = 20
	// slowBefore and slowAfter are how much before and after an outage is slow as well.
	slowBefore = 12 * time.Millisecond
	slowAfter  = 18 * time.Millisecond
)

// span is a time of the recording, or of the picture.
type span struct{ from, to time.Duration }

// clock turns times of the recording into times of the picture.
type clock struct {
	slow   []span // of the recording, in order and apart
	length time.Duration
}

func newClock(r *demo.Recording) clock {
	c := clock{length: r.Length}
	for _, g := range outages(r) {
		s := span{max(0, g.From-slowBefore), min(r.Length, g.To+slowAfter)}
		if n := len(c.slow); n > 0 && s.from <= c.slow[n-1].to {
			c.slow[n-1].to = s.to
			continue
		}
		c.slow = append(c.slow, s)
	}
	return c
}

// at returns when something of the recording is in the picture.
func (c clock) at(t time.Duration) time.Duration {
	shown := t
	for _, s := range c.slow {
		if t > s.from {
			shown += (slowdown - 1) * (min(t, s.to) - s.from)
		}
	}
	return shown
}

// span is at, for both ends.
func (c clock) span(s span) span { return span{c.at(s.from), c.at(s.to)} }

// total is how long the picture lasts.
func (c clock) total() time.Duration { return c.at(c.length) }

// outages are the gaps that a takeover or a handover made.
func outages(r *demo.Recording) (list []demo.RecordedGap) {
	for _, g := range r.Gaps {
		if g.Before != g.After {
			list = append(list, g)
		}
	}
	return list
}
