package attack

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"topdog/election"
	"topdog/election/silence"
	"topdog/internal/lab/observe"
)

// The goals, beside that the address does not move. docs/security.md has them.
const (
	// mostOutage is for how long a flood may keep the client from an answer.
	mostOutage = 20 * time.Millisecond
	// mostDark is the part of the time for which forged ARP may do so.
	mostDark = 0.01
	// mostStatus is how long root may wait for `topdog status` while a user is a nuisance.
	mostStatus = 100 * time.Millisecond
	// mostReplaced is how long it may take until a leader that fails under a flood is replaced (95th percentile).
	mostReplaced = 250 * time.Millisecond
	// mostCloned is how long three clones that start together may take until one of them leads. It takes 0.6 to 0.8 s;
	// boards that do not decide at once need 6 s and more.
	mostCloned = 3 * time.Second
)

// goal says what an attack has done that it must not, or "".
type goal func(Result) string

// steady wants the client to be answered all the time.
func steady(r Result) string {
	if r.Longest > mostOutage {
		return "kept the client waiting for " + millis(r.Longest)
	}
	return ""
}

// bright wants the client to be answered most of the time.
func bright(r Result) string {
	if r.Outage.Seconds() > mostDark*r.For.Seconds() {
		return fmt.Sprintf("kept the client from the address for %s of %s", millis(r.Outage), millis(r.For))
	}
	return ""
}

// served wants root to be told the status each time, and soon.
func served(r Result) string {
	switch {
	case r.StatusFailed > 0:
		return fmt.Sprintf("kept root's `topdog status` from an answer %d times", r.StatusFailed)
	case r.StatusMost > mostStatus:
		return fmt.Sprintf("had root's `topdog status` take %s", millis(r.StatusMost))
	}
	return ""
}

// soon wants what takes time to come about as long as it is watched.
func soon(r Result) string {
	if r.Never {
		return "took longer than it was watched, " + millis(r.Took[0])
	}
	return ""
}

// within wants it to come about in a time.
func within(most time.Duration) goal {
	return func(r Result) string {
		if took := observe.Percentile(r.Took, 95); took > most && !r.Never {
			return fmt.Sprintf("took %s, and not %s at most", millis(took), millis(most))
		}
		return soon(r)
	}
}

// moved reports whether the address was not where it should have been all the time.
func (x Result) moved() bool { return x.Moves > 0 || x.Two > 0 }

// broken returns the goals that a result misses, in words.
func (a attack) broken(x Result) (missed []string) {
	if a.Defended && x.moved() {
		missed = append(missed, fmt.Sprintf("moved the address %d times, and two boards had it for %s", x.Moves, millis(x.Two)))
	}
	for _, g := range a.goals {
		if text := g(x); text != "" {
			missed = append(missed, text)
		}
	}
	return missed
}

// pauseMax is for how long this program, which runs with the priority of the daemons, may stand still in an attack
// that is judged. A leader that is late by more than its grace may be replaced, and rightly so.
var pauseMax = silence.DefaultGrace(election.DefaultInterval)

// disturbed reports whether this program itself stood still, once or in all: so may the boards have done, whoever attacks.
func (x Result) disturbed() bool {
	return x.Late > pauseMax || x.LateInAll.Seconds() > mostDark*x.For.Seconds()
}

// again reports whether an attack is made once more: something happened, and that may have other reasons than the attack.
func (a attack) again(x Result) bool {
	return x.Note == "" && x.disturbed() && (x.moved() || len(a.broken(x)) > 0)
}

// judge says which goals a build of topdog misses. Another build than this one is judged if it was attacked alone.
func (r *report) judge() error {
	judged := "topdog"
	if len(r.Systems) == 1 && r.Systems[0].Name == "before" {
		judged = "before"
	}
	var errs []error
	for _, x := range r.Results {
		i := slices.IndexFunc(r.Attacks, func(a attack) bool { return a.Key == x.Attack })
		switch {
		case x.System != judged:
		case x.Note != "":
			errs = append(errs, fmt.Errorf("%s: %s", x.Attack, x.Note))
		default:
			for _, missed := range r.Attacks[i].broken(x) {
				errs = append(errs, fmt.Errorf("%s %s: that must not be%s", x.Attack, missed, x.excuse()))
			}
		}
	}
	return errors.Join(errs...)
}

// excuse says that other work may have been in the way, for whoever reads that a goal was missed.
func (x Result) excuse() string {
	if !x.disturbed() {
		return ""
	}
	return fmt.Sprintf(" (this program itself stood still for up to %s, in the last of %d attempts)", millis(x.Late), tries)
}
