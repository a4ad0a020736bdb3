package attack

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"topdog/election"
	"topdog/election/silence"
)

// beyond says in words which bounds of a scene a result is beyond: "moves 0 longest-ms 20". docs/security.md has the goals.
func (x Result) beyond(bounds []string) (missed []string, err error) {
	for pair := range slices.Chunk(bounds, 2) {
		unit := pair[0]
		if len(pair) < 2 || titles[unit] == "" {
			return nil, fmt.Errorf("there is no bound %q", strings.Join(pair, " "))
		}
		limit, err := strconv.ParseFloat(pair[1], 64)
		if err != nil {
			return nil, err
		}
		if v := x.Figures[unit]; v > limit {
			missed = append(missed, fmt.Sprintf("%s: %s, and not %s at most", titles[unit], words(unit, v), words(unit, limit)))
		}
	}
	return missed, nil
}

// moved reports whether the address was not where it should have been all the time.
func (x Result) moved() bool { return x.Figures["moves"] > 0 || x.Figures["two-ms"] > 0 }

// pauseMax is for how long this program, which runs with the priority of the daemons, may stand still in an attack
// that is judged. A leader that is late by more than its grace may be replaced, and rightly so.
var pauseMax = silence.DefaultGrace(election.DefaultInterval)

// mostLate is the part of the time for which it may do so in all, in percent.
const mostLate = 1

// disturbed reports whether this program itself stood still, once or in all: so may the boards have done, whoever attacks.
func (x Result) disturbed() bool {
	return x.Figures["late-ms"] > millis(pauseMax) || x.Figures["late-%"] > mostLate
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
			errs = append(errs, fmt.Errorf("%s: %s%s", x.Attack, missed, x.excuse()))
		}
	}
	return errors.Join(errs...)
}

// excuse says that other work may have been in the way, for whoever reads that a goal was missed.
func (x Result) excuse() string {
	if !x.disturbed() {
		return ""
	}
	return fmt.Sprintf(" (this program itself stood still for up to %s, in the last of %d attempts)", words("late-ms", x.Figures["late-ms"]), tries)
}
