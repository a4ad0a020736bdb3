package daemon

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"topdog/election"
	"topdog/internal/console"
	"topdog/wire"
)

// checkVoters looks for mistakes in the list of voters that show only now, when this board knows its id.
func (d *Daemon) checkVoters() {
	voters := d.cfg.Voters
	if len(voters) == 0 {
		return
	}
	if n := len(voters); n%2 == 0 {
		d.reporter.set(console.ProblemEvenVoters,
			fmt.Sprintf("there are %d voters: no more of them may fail than of %d; add one, or remove one", n, n-1))
	}
	if slices.Contains(voters, d.group.self) {
		d.reporter.solved(console.ProblemNoVoter)
		return
	}
	d.reporter.alert(console.ProblemNoVoter, fmt.Sprintf("this board has the id %v, which is not among the voters, "+
		"so it neither votes nor leads: give it its address back, or change the list on all boards", d.group.self))
}

// checkMajority tells people when nobody can lead because too few voters are there, as far as this board hears. The core
// notices it if a leader does not hear enough of them.
func (d *Daemon) checkMajority() {
	if d.core == nil || len(d.cfg.Voters) == 0 {
		return
	}
	now := d.now()
	unheard := d.unheardVoters(now)
	misses := d.missesMajority(unheard)
	kind := console.ProblemKind(election.NoticeMajorityUnheard.Identifier())
	switch long := d.majorityMissed.update(now, misses); {
	case d.portDead:
		d.reporter.solved(kind) // the port is the reason
	case long:
		d.reporter.set(kind, d.describeMajority(unheard))
	case misses, d.core.Role() == election.Leader && d.leaseEnd() <= now:
		// It may be over soon; or the core has told people, and it is not over.
	default:
		d.reporter.solved(kind)
	}
}

// describeMajority says which voters are missing, what follows from that, and what to do.
func (d *Daemon) describeMajority(unheard []wire.ID) string {
	names := make([]string, len(unheard))
	for i, id := range unheard {
		names[i] = d.called(id)
	}
	voters := len(d.cfg.Voters)
	return fmt.Sprintf("this board hears %d of the %d voters, not %s; nobody takes the address without %d of them: "+
		"look at the power, the cables and the switch of those, and of this board",
		voters-len(unheard), voters, strings.Join(names, " and not "), voters/2+1)
}

// unheardVoters are the voters that this board does not hear.
func (d *Daemon) unheardVoters(now time.Duration) (ids []wire.ID) {
	for _, id := range d.cfg.Voters {
		if id != d.group.self && !d.hears(id, now) {
			ids = append(ids, id)
		}
	}
	return ids
}

// missesMajority reports whether this board waits for a leader in vain because too few of the voters are there to elect
// one, as far as it hears.
func (d *Daemon) missesMajority(unheard []wire.ID) bool {
	waits := d.core.Role() == election.Candidate || d.missesLeader()
	return waits && 2*len(unheard) >= len(d.cfg.Voters)
}

const (
	// clockEvery is how often the rate of the clock is looked at: when the loop is awake anyway, and only if there are
	// voters.
	clockEvery = 250 * time.Millisecond
	// clockTolerance is by how much the clocks of voters may be off: a quarter of the grace is 2.3 % of a promise, between
	// two clocks.
	clockTolerance = 0.01
	// clockRegained is how near to its rate a clock that was off has to come back. A clock that is off by about the
	// tolerance would otherwise be good and bad by turns, and the address would move each time.
	clockRegained = clockTolerance / 2
)

// checkClock tells the core whether this board's clock runs at its rate. chrony may slew it by as much as 8 %
// (maxslewrate).
func (d *Daemon) checkClock() {
	if len(d.cfg.Voters) == 0 {
		d.clockOff = false // in case voters are configured later
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
	d.reporter.set(console.ProblemClockRate, text)
	d.carryOut(d.core.ClockTrusted(d.now(), !d.clockOff))
}

// ClockOff says that a clock is so far off its rate, by that share, that no voter may have it, and what to do. It is "" if
// a voter may.
func ClockOff(off float64) string { return clockOff(off, clockTolerance) }

func clockOff(off, tolerance float64) string {
	if math.Abs(off) <= tolerance {
		return ""
	}
	return fmt.Sprintf("this board's clock runs %+.1f %% off its rate, and more than %g %% is too much for a voter: "+
		"it neither votes nor leads until it is at most %g %% off; look at what adjusts the clock",
		100*off, 100*clockTolerance, 100*clockRegained)
}
