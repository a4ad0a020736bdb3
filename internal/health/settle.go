package health

import (
	"time"

	"topdog/internal/check"
)

// settle brings everything up to the present.
func (h *Health) settle(now time.Duration) {
	for _, c := range h.checks {
		state, counts := h.stateOf(c, now)
		if c.counts = counts; state != c.State {
			c.State, c.Since = state, now
		}
	}
	if h.until != 0 && now >= h.until {
		h.until, h.standsBack = 0, false
	}
	bad := h.bad()
	ok := len(bad) == 0 && !h.unchecked
	switch {
	case h.ok && !ok:
		h.relapse(now)
	case !h.ok && ok && h.passedOnce:
		h.until = now + h.probation()
		h.standsBack = h.byLeading && !h.leading
	}
	if !ok {
		h.byLeading = onlyLeading(bad)
	}
	h.ok, h.passedOnce = ok, h.passedOnce || ok
}

// stateOf returns how a check stands, and whether that speaks against this board.
func (h *Health) stateOf(c *Check, now time.Duration) (state State, counts bool) {
	switch {
	case c.When == check.Leading && !h.leading:
		return NotJudged, false
	case c.result == Passing:
		return Passing, false
	case now >= h.countsAt(c):
		return c.result, true
	case c.result == Failing:
		return Excused, false
	}
	return Starting, false
}

// countsAt is when a check counts that does not pass: one for the leader when its grace is
// over, one that a reload has added when it has had the time to run, and others always.
func (h *Health) countsAt(c *Check) time.Duration {
	switch {
	case c.When == check.Leading:
		return h.leadingAt + c.Grace
	case c.result == Starting && c.addedAt != 0:
		return c.addedAt + h.startGrace
	}
	return 0
}

// bad returns the checks that speak against this board.
func (h *Health) bad() (bad []*Check) {
	for _, c := range h.checks {
		if c.counts {
			bad = append(bad, c)
		}
	}
	return bad
}

// onlyLeading reports whether these are checks that count on the leader only.
func onlyLeading(bad []*Check) bool {
	for _, c := range bad {
		if c.When != check.Leading {
			return false
		}
	}
	return len(bad) > 0
}

// relapse is called when the checks fail after they had passed.
func (h *Health) relapse(now time.Duration) {
	if now-h.relapsedAt >= forgottenAfter {
		h.relapses = 0
	}
	h.relapses++
	h.relapsedAt = now
	h.until, h.standsBack = 0, false
}

// probation is how long the next one lasts.
func (h *Health) probation() time.Duration {
	d := firstProbation
	for range h.relapses - 1 {
		if d *= 2; d >= longestProbation {
			return longestProbation
		}
	}
	return d
}

// starts reports whether it is no wonder that the checks have not passed yet.
func (h *Health) starts(now time.Duration) bool {
	return !h.passedOnce && now < h.startedAt+h.startGrace
}

// Deadline is when the grade, or the reason for it, may change though nothing is reported. There is none if it is
// not true.
func (h *Health) Deadline(now time.Duration) (at time.Duration, ok bool) {
	at = never
	sooner := func(t time.Duration) {
		if t > now {
			at = min(at, t)
		}
	}
	sooner(h.until)
	if h.starts(now) {
		sooner(h.startedAt + h.startGrace)
	}
	for _, c := range h.checks {
		if c.State == Starting || c.State == Excused {
			sooner(h.countsAt(c))
		}
	}
	return at, at != never
}
