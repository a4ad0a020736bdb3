package attack

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"topdog/election"
	"topdog/election/silence"
	"topdog/internal/lab/observe"
)

// bounded are the figures to which a scene can set a bound ("must"), and how people are told of one that is beyond it.
// docs/security.md has the goals.
var bounded = map[string]struct {
	of   func(Result) float64 // nanoseconds, or a number
	says string
}{
	"moves":         {func(x Result) float64 { return float64(x.Moves) }, "moved the address %s times"},
	"two":           {func(x Result) float64 { return float64(x.Two) }, "had two boards hold it for %s"},
	"longest":       {func(x Result) float64 { return float64(x.Longest) }, "kept the client waiting for %s"},
	"outage":        {func(x Result) float64 { return float64(x.Outage) }, "kept the client from the address for %s"},
	"status":        {func(x Result) float64 { return float64(x.StatusMost) }, "had root's `topdog status` take %s"},
	"status-failed": {func(x Result) float64 { return float64(x.StatusFailed) }, "kept root's `topdog status` from an answer %s times"},
	"took":          {func(x Result) float64 { return float64(observe.Percentile(x.Took, 95)) }, "took %s"},
	"never":         {neverOf, "did not come about as long as it was watched, %s times"},
}

func neverOf(x Result) float64 {
	if x.Never {
		return 1
	}
	return 0
}

// beyond says in words which bounds a result is beyond: "moves 0 two 0ms outage 1%", which is a part of the time.
func (x Result) beyond(bounds []string) (missed []string, err error) {
	for pair := range slices.Chunk(bounds, 2) {
		figure, known := bounded[pair[0]]
		if !known || len(pair) < 2 {
			return nil, fmt.Errorf("there is no bound %q", strings.Join(pair, " "))
		}
		words := func(v float64) string { return observe.Millis(time.Duration(v)) }
		limit, err := strconv.ParseFloat(strings.TrimSuffix(pair[1], "%"), 64)
		switch {
		case err != nil:
			var most time.Duration
			if most, err = time.ParseDuration(pair[1]); err != nil {
				return nil, err
			}
			limit = float64(most)
		case strings.HasSuffix(pair[1], "%"):
			limit *= float64(x.For) / 100
		default:
			words = func(v float64) string { return fmt.Sprint(v) }
		}
		if v := figure.of(x); v > limit {
			missed = append(missed, fmt.Sprintf(figure.says+": at most %s", words(v), words(limit)))
		}
	}
	return missed, nil
}

// moved reports whether the address was not where it should have been all the time.
func (x Result) moved() bool { return x.Moves > 0 || x.Two > 0 }

// pauseMax is for how long this program, which runs with the priority of the daemons, may stand still in an attack
// that is judged. A leader that is late by more than its grace may be replaced, and rightly so.
var pauseMax = silence.DefaultGrace(election.DefaultInterval)

// mostLate is the part of the time for which it may do so in all.
const mostLate = 0.01

// disturbed reports whether this program itself stood still, once or in all: so may the boards have done, whoever attacks.
func (x Result) disturbed() bool {
	return x.Late > pauseMax || x.LateInAll.Seconds() > mostLate*x.For.Seconds()
}

// again reports whether an attack is made once more: something happened, and that may have other reasons than the attack.
func (x Result) again() bool {
	return x.Note == "" && x.disturbed() && (x.moved() || len(x.Missed) > 0)
}

// judge says which goals a build of topdog misses. Another build than this one is judged if it was attacked alone.
func (r *report) judge() error {
	judged := "topdog"
	if len(r.Systems) == 1 && r.Systems[0].Name == "before" {
		judged = "before"
	}
	var errs []error
	for _, x := range r.Results {
		if x.System != judged {
			continue
		}
		if x.Note != "" {
			errs = append(errs, fmt.Errorf("%s: %s", x.Attack, x.Note))
			continue
		}
		for _, missed := range x.Missed {
			errs = append(errs, fmt.Errorf("%s %s%s", x.Attack, missed, x.excuse()))
		}
	}
	return errors.Join(errs...)
}

// excuse says that other work may have been in the way, for whoever reads that a goal was missed.
func (x Result) excuse() string {
	if !x.disturbed() {
		return ""
	}
	return fmt.Sprintf(" (this program itself stood still for up to %s, in the last of %d attempts)", observe.Millis(x.Late), tries)
}
