// Package health judges how fit a board is to lead, by what is known of its checks, and by
// whether somebody has drained it.
//
// It decides nothing about the election. It says one of four grades, and why; the
// election prefers boards of a better grade. Time is a value: [Health.Deadline] says when the grade
// may change though nothing happens, and whoever waits calls [Health.Judge] then.
//
// # The rules
//
// A board is failing while a check that counts fails, and passing otherwise. A check with when = "leading" counts
// on the leader only, and there only when its grace is over.
//
// A board whose checks failed after they had passed has had a relapse. When they pass again, it is on probation for 5 s. Each further
// relapse doubles that, up to 10 min, and an hour without one forgets them. So a service that comes and goes does not
// drag the address along with it.
//
// When a check fails that counts on the leader only, the board hands over, and then nobody knows
// whether it would pass there. So the board stands back: it counts as failing for the time that would be its
// probation, and as passing afterwards. On probation it would be better than a board that fails, and the address would go
// from one board to the next without end if the check fails on all of them.
//
// A check that has not run yet counts as failing. For the first seconds, and until the checks
// have passed for the first time, that is called starting, and is neither a relapse nor a problem. One
// that a reload has added does not count until it has run, or has had the time to.
package health

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"topdog/internal/check"
	"topdog/wire"
)

// DefaultStartGrace is how long checks that have not passed yet are called starting. MaxStartGrace
// is as long as the slowest service of a small board takes.
const (
	DefaultStartGrace = 10 * time.Second
	MaxStartGrace     = 10 * time.Minute
)

// The probation.
const (
	firstProbation   = 5 * time.Second
	longestProbation = 10 * time.Minute
	forgottenAfter   = time.Hour
)

// never is a time that does not come.
const never time.Duration = 1<<63 - 1

// Health is what is known of one board.
type Health struct {
	startGrace time.Duration
	startedAt  time.Duration
	checks     []*Check

	leading    bool
	leadingAt  time.Duration // since when
	drained    bool
	unheld     bool // the kernel refuses the floating address
	unchecked  bool // the checks do not run
	passedOnce bool

	ok         bool          // the checks passed when they were looked at last
	byLeading  bool          // they failed only because this board led
	relapses   int           // that are not forgotten
	relapsedAt time.Duration // the last of them
	until      time.Duration // the end of the probation, or of standing back; 0 for none
	standsBack bool
}

// Check is what is known of one check.
type Check struct {
	check.Check
	State State
	Since time.Duration // when it got that state
	Text  string        // why it fails

	result  State         // what was reported: Starting, Passing or Failing
	counts  bool          // and that speaks against this board
	addedAt time.Duration // when a reload has added it; 0 if it was there from the start
}

// State is how a check stands.
type State uint8

// The states.
const (
	Starting  State = iota // it has not run yet
	Passing                // it passes
	Failing                // it fails, and counts
	Excused                // it fails, and does not count yet, since this board has begun to lead a short while ago
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
	Text     string        // why, for people
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

// Configure replaces the checks. What is known of those that were there before stays.
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
	if h.standsBack && !slices.ContainsFunc(h.checks, func(c *Check) bool { return c.When == check.Leading && c.addedAt < now }) {
		h.until, h.standsBack = 0, false // the check that has failed is gone
	}
	h.settle(now)
}

// Report takes what a check has come to. Text says why it fails.
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

// Lead says whether this board leads. What is known of the checks that count on the leader only is
// of no use from then on.
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

// Drain says whether somebody has drained this board.
func (h *Health) Drain(now time.Duration, drained bool) {
	h.drained = drained
	h.settle(now)
}

// Unheld says whether the kernel refuses the floating address to this board.
func (h *Health) Unheld(now time.Duration, unheld bool) {
	h.unheld = unheld
	h.settle(now)
}

// Uncheck says whether the checks do not run. Then nothing is known of them.
func (h *Health) Uncheck(now time.Duration, unchecked bool) {
	if h.unchecked = unchecked; unchecked {
		for _, c := range h.checks {
			c.result, c.Text = Starting, ""
		}
	}
	h.settle(now)
}

// Checks returns what is known of each check.
func (h *Health) Checks(now time.Duration) []Check {
	h.settle(now)
	all := make([]Check, len(h.checks))
	for i, c := range h.checks {
		all[i] = *c
	}
	return all
}

// Judge returns the grade.
func (h *Health) Judge(now time.Duration) Judgement {
	h.settle(now)
	bad := h.bad()
	switch {
	case h.unheld:
		return Judgement{Grade: wire.GradeFailing, Text: "the kernel refuses the address to this board"}
	case h.unchecked:
		return Judgement{Grade: wire.GradeFailing, Text: "its checks do not run"}
	case len(bad) > 0 && h.starts(now):
		return Judgement{Grade: wire.GradeFailing, Starting: true, Text: "its checks have not passed yet: " + described(bad)}
	case len(bad) > 0:
		return Judgement{Grade: wire.GradeFailing, Text: described(bad)}
	case h.standsBack:
		return Judgement{Grade: wire.GradeFailing, Until: h.until, Text: "it stands back, since a check has failed while it led"}
	case h.drained:
		return Judgement{Grade: wire.GradeDrained, Text: "somebody has drained it"}
	case h.until != 0:
		return Judgement{Grade: wire.GradeProbation, Until: h.until, Text: fmt.Sprintf("its checks pass again, after %s", relapses(h.relapses))}
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

// described says what is wrong with checks.
func described(bad []*Check) string {
	texts := make([]string, len(bad))
	for i, c := range bad {
		if texts[i] = c.Check.String() + ": " + c.Text; c.result == Starting {
			texts[i] = c.Check.String() + " has not run yet"
		}
	}
	return strings.Join(texts, "; ")
}
