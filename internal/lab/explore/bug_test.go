package explore

import (
	"strings"
	"testing"
	"time"

	"topdog/internal/lab/assert"
)

// TestBugs holds that the explorer finds what is there: each seeded bug, with as few faults
// as it takes. It prints the steps that lead to it. Those that take seconds are sought with -explore.pairs.
func TestBugs(t *testing.T) {
	plain := func(s *scope) { s.tolerance, s.judgeLease = aMoment, true }
	// Long enough for the switch of a leader that stands still to read the word. What comes after that is
	// a handover, in which one more pause is enough for two holders without any bug.
	const untilItFires = 7600 * time.Microsecond
	// Between the arrival of a heartbeat and the answers.
	atArrival := func(s *scope) { votes(s); s.from = s.latency }
	// The leader whose switch has fired is the leader again while its switch stands still.
	backSoon := func(s *scope) { votes(s); s.resigns = []time.Duration{52 * ms} }
	for _, test := range []struct {
		bug    bug
		kinds  fault
		most   int
		within time.Duration
		change func(s *scope)
		slow   bool
	}{
		{bugLeaseAfterSend, pauseDaemon, 2, untilItFires, plain, true},
		{bugStore, pauseDaemon, 2, untilItFires, plain, true},
		{bugResignFirst, pauseDaemon | pauseSwitch, 2, untilItFires, plain, true},
		{bugResignBefore, pauseDaemon | ask, 2, 2 * ms, plain, false},
		{bugNewestPlan, pauseDaemon | pauseSwitch, 2, 10 * ms, backSoon, true},
		{bugNoFence, freezeBoard | mute, 2, untilItFires, func(s *scope) { s.tolerance = aMoment }, false},
		{bugNoSlack, pauseDaemon, 1, 210 * ms, slowLeader, false},

		{bugStore, freezeBoard, 2, 10 * ms, votes, false},
		{bugResignBefore, pauseDaemon, 1, 2 * ms, handover, false},
		{bugMonotonic, suspendBoard, 1, 10 * ms, votes, false},
		{bugNoFence, mute, 1, 10 * ms, votes, false},
		{bugNoSlack, mute, 1, 10 * ms, votes, false},
		{bugPromiseBack, freezeBoard, 2, 210 * ms, votes, true},
		{bugPromiseRole, mute | unplug, 2, 4 * ms, atArrival, false},
		{bugPromiseLink, mute | unplug, 2, 4 * ms, atArrival, true},
		{bugVotesAtOnce, mute | killDaemon, 2, 4 * ms, atArrival, true},
		{bugLeaseFromReceipt, late | mute, 2, 10 * ms, votes, true},
		{bugFirstLease, mute | pauseDaemon, 2, 2 * ms, func(s *scope) { handover(s); s.from = ms + s.latency }, true},
		{bugAnySequence, hold | mute, 2, 10 * ms, votes, true},
		{bugOwnVote, mute, 1, 10 * ms, handover, false},
		{bugVotesTwice, hold | mute, 2, 10 * ms, handover, false},
		{bugOtherVoters, cut, 2, 110 * ms, votes, false},
	} {
		if underRace && test.most > 1 || test.slow && !*pairs {
			continue
		}
		t.Run(string(test.bug), func(t *testing.T) {
			t.Parallel()
			s := group(t, 3, test.within, func(s *scope) { test.change(s); s.bug = test.bug })
			s.kinds, s.most = test.kinds, test.most
			start := time.Now()
			r := explore(s)
			if r.violation == "" {
				t.Fatalf("not found with %d faults (%v)", test.most, &r)
			}
			if *control {
				s.bug = noBug
				assert.Is(t, "", explore(s).violation, "found without the bug")
			}
			t.Logf("found after %v, in %v:\n%s", &r, time.Since(start).Round(ms), strings.Join(r.story, "\n"))
		})
	}
}
