package explore

import (
	"flag"
	"strings"
	"testing"
	"time"
)

var (
	pairs      = flag.Bool("explore.pairs", false, "explore two faults in each run as well, which takes a minute, and not only one")
	moreFaults = flag.Int("explore.faults", 0, "explore up to so many faults in each run, instead of one or two")
	longer     = flag.Duration("explore.within", 0, "let things go wrong for so long, instead of a time in which that many faults can be explored")
	control    = flag.Bool("explore.control", false, "explore the worlds of the seeded bugs without them as well, to see that nothing else is found")
	everywhere = flag.Bool("explore.everywhere", false, "let what has stopped go on at any later step, instead of where it may make a difference")
)

// TestExhaustive explores all runs with so many faults of these kinds.
func TestExhaustive(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: this computes for seconds")
	}
	for _, test := range []struct {
		name   string
		kinds  fault
		most   int
		size   int
		within time.Duration
		// tolerance is for how long two boards may answer; for any time where only the lease is judged.
		tolerance time.Duration
		change    func(s *scope)
	}{
		{"strict, one fault", everyFault, 1, 3, 210 * ms, 0, votes},
		{"strict, one fault, leader's clock fast", everyFault, 1, 3, 210 * ms, 0, func(s *scope) { votes(s); fastLeader(s) }},
		{"strict, one fault in a handover", everyFault, 1, 3, 110 * ms, 0, handover},
		{"strict, two faults of the LAN", datagrams | paths, 2, 3, 4 * ms, 0, votes},
		{"strict, two faults of the LAN in a handover", datagrams | paths, 2, 3, 2 * ms, 0, handover},
		{"strict, pauses and mute boards in a handover", pauseDaemon | mute, 2, 3, 2 * ms, 0, func(s *scope) { handover(s); s.from = ms + s.latency }},
		{"strict, two faults of boards", freezeBoard | killDaemon | unplug, 2, 3, ms / 4, 0, votes},
		{"strict, two pauses", pauseDaemon | pauseSwitch, 2, 3, 2 * ms, 0, votes},

		{"strict with a second path, one fault", everyFault, 1, 3, 105 * ms, 0, func(s *scope) { votes(s); s.secondPath = true }},
		{"with a second path, one fault", everyFault, 1, 3, 105 * ms, 0, func(s *scope) { s.secondPath = true }},
		{"with a second path, two faults of paths", paths, 2, 3, 4 * ms, 0, func(s *scope) { s.secondPath = true }},
		{"strict with a second path, two faults of the LAN", datagrams | paths, 2, 3, 2 * ms, 0, func(s *scope) { votes(s); s.secondPath = true }},

		{"one fault", boards | datagrams | cut, 1, 3, 210 * ms, 0, nil},
		{"one fault, leader's clock slow", boards | datagrams | cut, 1, 3, 210 * ms, 0, slowLeader},
		{"one fault, leader's clock fast", boards | datagrams | cut, 1, 3, 210 * ms, 0, fastLeader},
		{"two boards, one fault", boards | datagrams, 1, 2, 210 * ms, 0, nil},
		{"two pauses", pauseDaemon | pauseSwitch, 2, 3, 2 * ms, aMoment, nil},
		{"two boards, two faults", boards | datagrams, 2, 2, 4 * ms, aMoment, nil},
		{"frozen board", freezeBoard | suspendBoard, 1, 3, 210 * ms, aMoment, nil},
		{"lease, one fault of any kind", everyFault, 1, 3, 210 * ms, time.Hour, nil},
	} {
		if test.most > 1 && !*pairs {
			continue
		}
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			within := test.within
			if *longer > 0 {
				within = *longer
			}
			s := group(t, test.size, within, test.change)
			s.kinds, s.most, s.tolerance, s.everywhere = test.kinds, test.most, test.tolerance, *everywhere
			s.judgeLease = !s.strict
			if *moreFaults > 0 {
				s.most = *moreFaults
			}
			if underRace {
				s.most = 1
			}
			start := time.Now()
			r := explore(s)
			t.Logf("%v, in %v", &r, time.Since(start).Round(ms))
			if r.violation != "" {
				t.Errorf("%s:\n%s", r.violation, strings.Join(r.story, "\n"))
			}
		})
	}
}
