package explore

import (
	"strings"
	"testing"
	"time"
)

// TestBugs holds that the explorer finds what is there: each seeded bug, with as few faults
// as it takes. It prints the steps that lead to it.
func TestBugs(t *testing.T) {
	for _, test := range []struct {
		bug   bug
		kinds fault
		most  int
		set   func(s *scope)
	}{
		{bugLeaseAfterSend, pauseDaemon, 2, nil},
		{bugStore, pauseDaemon, 1, nil},
		{bugResignFirst, pauseDaemon, 1, nil},
		{bugResignBefore, pauseDaemon | ask, 2, func(s *scope) { s.until = s.from + 66*time.Millisecond }},
		{bugNewestPlan, pauseDaemon | pauseSwitch, 2, func(s *scope) { s.from, s.until = s.from+60*time.Millisecond, s.from+70*time.Millisecond }},
		{bugNoSkip, pauseDaemon, 2, func(s *scope) { s.from, s.until = s.from+60*time.Millisecond, s.from+70*time.Millisecond }},
		{bugMonotonic, suspendBoard, 2, nil},
		{bugNoFence, freezeBoard, 2, func(s *scope) { s.judgeLease = false }},
		{bugNoSlack, pauseDaemon, 1, func(s *scope) { s.tolerance, s.drift = 0, []int{driftMost, driftMost, -driftMost} }},
	} {
		t.Run(test.bug.String(), func(t *testing.T) {
			t.Parallel()
			s := threeBoards()
			s.kinds, s.most, s.bug, s.judgeLease = test.kinds, test.most, test.bug, true
			s.tolerance = aMoment
			if test.set != nil {
				test.set(&s)
			}
			start := time.Now()
			r := explore(s)
			if r.violation == "" {
				t.Fatalf("not found with %d faults (%v)", test.most, &r)
			}
			t.Logf("found after %v, in %v:\n%s", &r, time.Since(start).Round(time.Millisecond), strings.Join(r.story, "\n"))
		})
	}
}
