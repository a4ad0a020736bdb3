package soak

import (
	"fmt"
	"net/netip"
	"strings"
	"time"

	"topdog/internal/lab/observe"
)

// verdict is a trial, and what came of it.
type verdict struct {
	trial
	onLeader []bool // whether a fault hit the leader, of each
	began    time.Time
	lasted   time.Duration // the faults
	settled  time.Duration // until all boards followed one leader, after the last fault
	lost     bool          // they never did

	moves  int
	outage time.Duration // the longest, as the client saw it
	two    overlap       // two holders, at one place
	at     netip.Addr    // of which they were two
	late   string        // what was late of this machine: the daemons, this program, the kernel

	problems     []string // why a judge does not accept it
	inconclusive string   // what a judge would not accept on a machine on which nothing was late
}

// fail notes why a judge does not accept a trial.
func (v *verdict) fail(format string, args ...any) {
	v.problems = append(v.problems, fmt.Sprintf(format, args...))
}

// needless is how many moves no fault of the trial justifies.
func (v *verdict) needless() int {
	rightful := 0
	for i, f := range v.faults {
		if v.onLeader[i] {
			rightful += f.cost.Moves
		}
	}
	return max(0, v.moves-rightful)
}

// judgeDefault holds a trial with one fault against the bounds of its kind. A leader that is late by more than its grace
// may be replaced, and rightly so: where something of this machine was late, too many moves are no verdict. What the
// address costs and who answers is judged all the same.
func (v *verdict) judgeDefault() {
	allowed := v.faults[0].cost
	if n := v.needless(); n > allowed.Needless {
		text := fmt.Sprintf("the address moved %d times: %d for nothing, and at most %d may be", v.moves, n, allowed.Needless)
		if v.late == "" {
			v.fail("%s", text)
		} else {
			v.inconclusive = fmt.Sprintf("%s; but %s", text, v.late)
		}
	}
	outage := allowed.Outage
	if allowed.Lasting {
		outage += v.lasted
	}
	if v.outage > outage {
		v.fail("nobody answered for %s: at most %s", observe.Millis(v.outage), observe.Millis(outage))
	}
	if d := v.two.duration(); d > allowed.Two {
		v.fail("boards %d and %d both answered at %v for %s: at most %s", v.two.boards[0], v.two.boards[1], v.at, observe.Millis(d), observe.Millis(allowed.Two))
	}
}

// judgeStrict holds a trial against the promise of the strict mode.
func (v *verdict) judgeStrict() {
	if d := v.two.duration(); d > 0 {
		v.fail("boards %d and %d both answered at %v for %s: that must never be", v.two.boards[0], v.two.boards[1], v.at, observe.Millis(d))
	}
}

// String is the line that is written about a trial.
func (v verdict) String() string {
	var what []string
	for i, f := range v.faults {
		where := ""
		if !f.all {
			where = " of " + f.it
			if v.onLeader[i] && f.it != "leader" {
				where += " (leader)"
			}
		}
		what = append(what, fmt.Sprintf("%s%s for %s", f.key, where, observe.Millis(f.lasts)))
	}
	return fmt.Sprintf("%4d  %s: moves %d, nobody answered for %s, two holders %s, settled after %s",
		v.number, strings.Join(what, " and "), v.moves, observe.Millis(v.outage), observe.Millis(v.two.duration()), observe.Millis(v.settled))
}
