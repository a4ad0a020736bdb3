// Package health judges how fit a board is to lead, from the results of its checks and from
// whether somebody has drained it.
//
// It decides nothing about the election. It returns one of four grades and the reason for it, and the
// election prefers boards of a better grade. Nothing here reads a clock: the caller says what time it
// is, as the time since some fixed moment. The grade may change even if nothing happens, so the caller calls
// [Health.Judge] again from time to time.
//
// # The rules
//
// A board is failing while a check that counts fails, and passing otherwise. A check with
// when = "leading" counts only on the leader, and there only after its grace period.
//
// It is a relapse if the board passed and now fails. When it passes again, the board is on probation
// for 5 s. Each further relapse doubles this time, up to 10 min, and an hour without a relapse clears
// the count. So a service that comes and goes does not drag the address along with it.
//
// If a check that counts only on the leader fails, the board hands over. From then on nobody knows
// whether the check would pass on this board. So the board stands back: for as long as its probation
// would last it counts as failing, and then as passing. Probation is not enough: a board on probation
// is better than one that fails, so if the check fails on all boards, the address would go from one
// board to the next without end.
//
// A check that has not run yet counts as failing. At the start of a board, until the checks have
// passed for the first time or the start grace is over, this is called starting, and is neither a
// relapse nor a problem. A check that a reload has added does not count until it has run, or has had
// the time to run.
package health

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"topdog/internal/check"
	"topdog/wire"
)

// The start grace is how long checks that have not passed yet are called starting. MaxStartGrace
// is as long as the slowest service of a small board takes to start.
const (
	DefaultStartGrace = 10 * time.Second
	MaxStartGrace     = 10 * time.Minute
)

const (
	firstProbation   = 5 * time.Second
	longestProbation = 10 * time.Minute
	forgottenAfter   = time.Hour // without a relapse
)

// Health is what is known of one board.
type Health struct {
	Drained bool // somebody has drained this board
	Unheld  bool // the kernel refuses the floating address to it

	startGrace time.Duration
	startedAt  time.Duration
	checks     []*Check

	leading    bool
	leadingAt  time.Duration // when leading last changed
	unchecked  bool          // the checks do not run
	passedOnce bool

	ok         bool          // the checks passed when they were last looked at
	byLeading  bool          // all checks that failed count only on the leader
	relapses   int           // those that are not forgotten
	relapsedAt time.Duration // when the last of them was
	until      time.Duration // the end of the probation, or of standing back; 0 for none
	standsBack bool
}

// Check is what is known of one check.
type Check struct {
	check.Check
	State State
	Since time.Duration // when it came into that state
	Text  string        // why it fails

	result  State         // the last report: Starting, Passing or Failing
	counts  bool          // it speaks against this board
	addedAt time.Duration // when a reload added it; 0 if it was there from the start
}

// State says how a check stands.
type State uint8

// The states.
const (
	Starting  State = iota // it has not run yet
	Passing                // it passes
	Failing                // it fails, and counts
	Excused                // it fails but does not count yet, because this board has only just begun to lead
	NotJudged              // it is for the leader, and this board does not lead
)

// String returns the identifier of a state.
func (s State) String() string {
	return [...]string{"starting", "passing", "failing", "excused", "not_judged"}[s]
}

// Judgement is how fit the board is, and why.
type Judgement struct {
	Grade    wire.Grade
	Starting bool          // it fails only because its checks have not passed yet
	Text     string        // the reason, for people
	Until    time.Duration // when the grade ends by itself; 0 if it does not
}

// New returns the health of a board that starts now.
func New(now, startGrace time.Duration, checks []check.Check) *Health {
	h := &Health{startGrace: startGrace, startedAt: now}
	for _, c := range checks {
		h.checks = append(h.checks, &Check{Check: c, Since: now})
	}
	h.settle(now)
	return h
}

// Configure replaces the checks. What is known of checks that stay is kept.
func (h *Health) Configure(now, startGrace time.Duration, checks []check.Check) {
	before := h.checks
	h.startGrace, h.checks = startGrace, nil
	for _, c := range checks {
		i := slices.IndexFunc(before, func(known *Check) bool { return known.ID() == c.ID() })
		if i >= 0 {
			h.checks = append(h.checks, before[i])
		} else {
			h.checks = append(h.checks, &Check{Check: c, Since: now, addedAt: now})
		}
	}
	judgedBefore := func(c *Check) bool { return c.When == check.Leading && c.addedAt < now }
	if h.standsBack && !slices.ContainsFunc(h.checks, judgedBefore) {
		h.until, h.standsBack = 0, false // the check that failed is gone
	}
	h.settle(now)
}

// Report takes the result of a check. Text says why the check fails.
func (h *Health) Report(now time.Duration, id string, passing bool, text string) {
	for _, c := range h.checks {
		if c.ID() != id || c.When == check.Leading && !h.leading {
			continue
		}
		c.Text, c.result = text, Failing
		if passing {
			c.result = Passing
		}
	}
	h.settle(now)
}

// Lead says whether this board leads. When that changes, it forgets the earlier results of the checks
// that count only on the leader: they say nothing about the present.
func (h *Health) Lead(now time.Duration, leading bool) {
	if leading == h.leading {
		return
	}
	h.leading, h.leadingAt = leading, now
	for _, c := range h.checks {
		if c.When == check.Leading {
			c.result, c.Text = Starting, ""
		}
	}
	h.settle(now)
}

// Uncheck says whether the checks have stopped running. If so, nothing is known of them.
func (h *Health) Uncheck(now time.Duration, unchecked bool) {
	if h.unchecked = unchecked; unchecked {
		for _, c := range h.checks {
			c.result, c.Text = Starting, ""
		}
	}
	h.settle(now)
}

// Checks returns what is known of each check, in the order of the configuration.
func (h *Health) Checks(now time.Duration) []Check {
	h.settle(now)
	all := make([]Check, len(h.checks))
	for i, c := range h.checks {
		all[i] = *c
	}
	return all
}

// Judge returns the grade and the reason for it.
func (h *Health) Judge(now time.Duration) Judgement {
	h.settle(now)
	bad := h.bad()
	switch {
	case h.Unheld:
		return Judgement{Grade: wire.GradeFailing, Text: "the kernel refuses the address to this board"}
	case h.unchecked:
		return Judgement{Grade: wire.GradeFailing, Text: "its checks do not run"}
	case len(bad) > 0 && h.starts(now):
		return Judgement{Grade: wire.GradeFailing, Starting: true, Text: "its checks have not passed yet: " + described(bad)}
	case len(bad) > 0:
		return Judgement{Grade: wire.GradeFailing, Text: described(bad)}
	case h.standsBack:
		return Judgement{Grade: wire.GradeFailing, Until: h.until, Text: "it stands back, since a check has failed while it led"}
	case h.Drained:
		return Judgement{Grade: wire.GradeDrained, Text: "somebody has drained it"}
	case h.until != 0:
		text := fmt.Sprintf("its checks pass again, after %s", relapses(h.relapses))
		return Judgement{Grade: wire.GradeProbation, Until: h.until, Text: text}
	case len(h.checks) == 0:
		return Judgement{Text: "it has no checks"}
	}
	return Judgement{Text: "its checks pass"}
}

func relapses(n int) string {
	if n == 1 {
		return "a relapse"
	}
	return fmt.Sprintf("%d relapses", n)
}

// described says what is wrong with some checks.
func described(bad []*Check) string {
	texts := make([]string, len(bad))
	for i, c := range bad {
		if texts[i] = c.Check.String() + ": " + c.Text; c.result == Starting {
			texts[i] = c.Check.String() + " has not run yet"
		}
	}
	return strings.Join(texts, "; ")
}

// settle brings the state of the checks, relapses and probation up to the present.
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
		onAllBoards := func(c *Check) bool { return c.When != check.Leading }
		h.byLeading = len(bad) > 0 && !slices.ContainsFunc(bad, onAllBoards)
	}
	h.ok, h.passedOnce = ok, h.passedOnce || ok
}

// stateOf returns the state of a check, and whether it speaks against this board.
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

// countsAt returns the time from which a check counts if it does not pass: for a check for the leader,
// the end of its grace period; for one that a reload has added and that has not run yet, the end of
// the start grace after the reload; for all others, at once.
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

// relapse notes that checks that had passed now fail.
func (h *Health) relapse(now time.Duration) {
	if now-h.relapsedAt >= forgottenAfter {
		h.relapses = 0
	}
	h.relapses++
	h.relapsedAt = now
	h.until, h.standsBack = 0, false
}

// probation returns how long the next probation lasts.
func (h *Health) probation() time.Duration {
	d := firstProbation
	for range h.relapses - 1 {
		if d *= 2; d >= longestProbation {
			return longestProbation
		}
	}
	return d
}

// starts reports whether checks that do not pass are called starting.
func (h *Health) starts(now time.Duration) bool {
	return !h.passedOnce && now < h.startedAt+h.startGrace
}
