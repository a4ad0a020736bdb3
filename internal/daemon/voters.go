package daemon

import (
	"fmt"
	"math"
	"slices"
	"time"

	"topdog/election"
	"topdog/internal/console"
)

// checkVoters looks for what is wrong with a list of voters and no fault of the file: which id
// this board has is known only now.
func (d *Daemon) checkVoters() {
	voters := d.cfg.Voters
	if len(voters) == 0 {
		return
	}
	if n := len(voters); n%2 == 0 {
		text := fmt.Sprintf("there are %d voters: no more of them may fail than of %d; add one, or remove one", n, n-1)
		d.reporter.warn(console.ProblemEvenVoters, text, forever)
	}
	if slices.Contains(voters, d.group.self) {
		d.reporter.solved(console.ProblemNoVoter)
		return
	}
	text := fmt.Sprintf("this board has the id %v, which is not among the voters, so it neither votes nor leads: give it its address back, or change the list on all boards", d.group.self)
	d.reporter.alert(console.ProblemNoVoter, text, forever)
}

const (
	// clockEvery is how often the rate of the clock is looked at. It is looked at when the loop is
	// awake anyway, and only if there are voters.
	clockEvery = 250 * time.Millisecond
	// clockTolerance is by how much the clocks of voters may be off: a quarter of the grace
	// is 2.3 % of a promise, between two clocks.
	clockTolerance = 0.01
	// clockRegained is how near to its rate the clock of a board must be that was off. A clock that is off by
	// about the tolerance would be one and the other by turns, and the address would move each time.
	clockRegained = clockTolerance / 2
)

// checkClock tells the core whether this board's clock runs at its rate. chrony may slew it by
// as much as 8 % (maxslewrate).
func (d *Daemon) checkClock() {
	if len(d.cfg.Voters) == 0 {
		d.clockOff = false // for when there are some
		return
	}
	if d.platform.ClockRate == nil || d.core == nil || d.now()-d.clockAt < clockEvery {
		return
	}
	d.clockAt = d.now()
	off, measured := d.platform.ClockRate()
	if !measured {
		return
	}
	tolerance := clockTolerance
	if d.clockOff {
		tolerance = clockRegained
	}
	text := clockOff(off, tolerance)
	d.clockOff = text != ""
	if !d.clockOff {
		d.reporter.solved(console.ProblemClockRate)
	} else {
		d.reporter.warn(console.ProblemClockRate, text, forever)
	}
	d.carryOut(d.core.ClockTrusted(d.now(), !d.clockOff))
}

// ClockOff says of a clock that is off its rate by such a share that no voter may have it, and what to do; "" if one may.
func ClockOff(off float64) string { return clockOff(off, clockTolerance) }

func clockOff(off, tolerance float64) string {
	if math.Abs(off) <= tolerance {
		return ""
	}
	return fmt.Sprintf("this board's clock runs %+.1f %% off its rate, and more than %g %% is too much for a voter: it neither votes nor leads until it is at most %g %% off; look at what adjusts the clock",
		100*off, 100*clockTolerance, 100*clockRegained)
}

// describeVoters fills in what the core knows of the voters.
func (d *Daemon) describeVoters(s *console.Status, core *election.Status, now time.Duration) {
	unheard := d.unheardVoters(now)
	s.MajorityUnheard = core.MajorityUnheard || len(core.Voters) > 0 && d.missesMajority(unheard)
	for _, v := range core.Voters {
		voter := console.Voter{Twice: v.Twice, Unheard: slices.Contains(unheard, v.ID)}
		voter.ID, voter.Name = d.idAndName(v.ID)
		if core.Role == election.Leader {
			voter.Supports = &v.Supports
		}
		s.Voters = append(s.Voters, voter)
	}
}
