package bench

import (
	"errors"
	"io"
	"testing"

	"topdog/internal/lab/assert"
)

// TestRepeatDisturbed makes runs that were disturbed again, without any network.
func TestRepeatDisturbed(t *testing.T) {
	const fine, slow, still = 1, 5, 20
	runs := func(system, event string, n int, outage, late float64) (list []sample) {
		for range n {
			of := labels{"system": system, "event": event}
			list = append(list, sample{failover, of, map[string]float64{"outage-ms": outage, "late-ms": late}})
		}
		return list
	}
	stop := func(n int, outage, late float64) []sample { return runs("topdog-100ms", "sigterm", n, outage, late) }
	broken := errors.New("a cable is broken")
	for _, c := range []struct {
		name     string
		first    []sample
		repeats  int
		attempts [][]sample // what each repetition gives
		err      error      // of the last one
		want     []sample
	}{
		{"nothing was disturbed", stop(3, fine, still), 2, nil, nil, stop(3, fine, still)},
		{"missed, and not disturbed", stop(3, slow, 0), 2, nil, nil, stop(3, slow, 0)},
		{"the second time it is calm", stop(3, slow, still), 2, [][]sample{stop(3, fine, 0)}, nil, stop(3, fine, 0)},
		{"the second time it is missed", stop(3, slow, still), 2, [][]sample{stop(3, slow, 0)}, nil, stop(3, slow, 0)},
		{"disturbed all the time", stop(3, slow, still), 2, [][]sample{stop(3, slow+1, still), stop(3, slow+2, still)}, nil,
			stop(3, slow+2, still)},
		{"never again", stop(3, slow, still), 0, nil, nil, stop(3, slow, still)},
		{"it breaks off", stop(3, slow, still), 1, [][]sample{stop(2, fine, 0)}, broken, stop(3, slow, still)},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := &session{show: newProgress(io.Discard), plan: plan{repeats: c.repeats}}
			defer s.show.close()
			s.plan.systems = named(allSystems(), "topdog-100ms", "topdog-10ms")
			s.plan.events = named(allEvents(), "sigterm", "sigkill")
			s.add(runs("topdog-10ms", "sigterm", 3, fine, 0)...)
			s.add(runs("topdog-100ms", "sigkill", 3, fine, 0)...)
			s.add(c.first...)
			made := 0
			err := s.repeatDisturbed(t.Context(), func(again *session, wanted choice) error {
				var chosen []string
				for _, sys := range s.plan.systems {
					for _, e := range s.plan.events {
						if wanted(sys, e) {
							chosen = append(chosen, sys.String()+" "+e.String())
						}
					}
				}
				assert.Equal(t, []string{"topdog-100ms sigterm"}, chosen, "run again")
				again.add(c.attempts[made]...)
				made++
				if made == len(c.attempts) {
					return c.err
				}
				return nil
			})
			if !errors.Is(err, c.err) || made != len(c.attempts) {
				t.Errorf("%d repetitions, %v; want %d, %v", made, err, len(c.attempts), c.err)
			}
			got := s.record.series(failover, labels{"system": "topdog-100ms", "event": "sigterm"})[0].samples
			assert.Equal(t, len(c.want), len(got), "runs")
			assert.Equal(t, c.want[0].values, got[0].values, "the runs")
			for system, event := range map[string]string{"topdog-10ms": "sigterm", "topdog-100ms": "sigkill"} {
				of := labels{"system": system, "event": event}
				assert.Equal(t, 3, len(s.record.series(failover, of)[0].samples), "%s, %s", system, event)
			}
		})
	}
}
