package bench

import (
	"context"
	"errors"
	"os"
	"testing"
	"time"

	"topdog/internal/lab/assert"
	"topdog/internal/lab/bench/report"
)

// TestRepeatDisturbed makes runs that were disturbed again, without any network.
func TestRepeatDisturbed(t *testing.T) {
	const fine, slow, still = time.Millisecond, 5 * time.Millisecond, 20 * time.Millisecond
	runs := func(n int, outage, late time.Duration) (list []report.Run) {
		for range n {
			list = append(list, report.Run{Outage: outage, Late: late})
		}
		return list
	}
	type attempt struct {
		runs []report.Run
		err  error
	}
	broken := errors.New("a cable is broken")
	for _, c := range []struct {
		name     string
		first    []report.Run
		repeats  int
		attempts []attempt // what each repetition gives
		made     int       // how many of them are made
		want     []report.Run
		err      error
	}{
		{"nothing was disturbed", runs(3, fine, still), 2, nil, 0, runs(3, fine, still), nil},
		{"missed, and not disturbed", runs(3, slow, 0), 2, nil, 0, runs(3, slow, 0), nil},
		{"the second time it is calm", runs(3, slow, still), 2, []attempt{{runs(3, fine, 0), nil}}, 1, runs(3, fine, 0), nil},
		{"the second time it is missed", runs(3, slow, still), 2, []attempt{{runs(3, slow, 0), nil}}, 1, runs(3, slow, 0), nil},
		{"disturbed all the time", runs(3, slow, still), 2, []attempt{{runs(3, slow+1, still), nil}, {runs(3, slow+2, still), nil}}, 2, runs(3, slow+2, still), nil},
		{"never again", runs(3, slow, still), 0, nil, 0, runs(3, slow, still), nil},
		{"it breaks off", runs(3, slow, still), 1, []attempt{{runs(2, fine, 0), broken}}, 1, runs(3, slow, still), broken},
	} {
		t.Run(c.name, func(t *testing.T) {
			null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
			assert.NoError(t, err)
			defer null.Close()
			s := &session{show: newProgress(null)}
			defer s.show.close()
			s.plan.repeats = c.repeats
			s.plan.systems = named(allSystems(), "topdog-100ms", "topdog-10ms")
			s.plan.events = named(allEvents(), report.Terminated, report.Killed)
			for _, sys := range s.plan.systems {
				s.report.Systems = append(s.report.Systems, sys.info())
				s.addRows(sys)
			}
			others := runs(3, fine, 0)
			fill := func(system, event string, runs []report.Run) {
				for i, f := range s.report.Failures {
					if f.System == system && f.Event == event {
						s.report.Failures[i].Runs = runs
					}
				}
			}
			fill("topdog-10ms", report.Terminated, others)
			fill("topdog-100ms", report.Killed, others)
			fill("topdog-100ms", report.Terminated, c.first)

			made := 0
			err = s.repeatDisturbed(t.Context(), func(_ context.Context, wanted choice) error {
				var chosen []string
				for _, sys := range s.plan.systems {
					for _, e := range s.plan.events {
						if wanted(sys, e) {
							chosen = append(chosen, sys.String()+" "+e.String())
						}
					}
				}
				assert.Equal(t, []string{"topdog-100ms sigterm"}, chosen, "run again")
				a := c.attempts[made]
				made++
				fill("topdog-100ms", report.Terminated, a.runs)
				return a.err
			})
			if !errors.Is(err, c.err) || made != c.made {
				t.Errorf("%d repetitions, %v; want %d, %v", made, err, c.made, c.err)
			}
			for _, f := range s.report.Failures {
				want := others
				switch {
				case f.System == "topdog-100ms" && f.Event == report.Terminated:
					want = c.want
				case f.System == "topdog-10ms" && f.Event == report.Killed:
					want = nil
				}
				assert.Equal(t, want, f.Runs, "%s, %s", f.System, f.Event)
			}
		})
	}
}
