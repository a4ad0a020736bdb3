package soak

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"topdog/internal/lab/assert"
)

// draw writes down what a chooser draws, but for what is done: functions have no names.
func draw(c *chooser, trials int) string {
	var text strings.Builder
	for range trials {
		t := c.next()
		fmt.Fprintf(&text, "%d gap %v\n", t.number, t.gap)
		for _, f := range t.faults {
			fmt.Fprintf(&text, "\t%s %+v after %v for %v:", f.key, f.aim, f.after, f.lasts)
			for _, a := range f.plan {
				fmt.Fprintf(&text, " %v", a.at)
			}
			fmt.Fprintln(&text)
		}
	}
	return text.String()
}

// The same seed gives the same faults, and another one gives others.
func TestSeed(t *testing.T) {
	const trials = 200
	first := draw(newChooser(7, allKinds(), 2), trials)
	if again := draw(newChooser(7, allKinds(), 2), trials); again != first {
		t.Error("the same seed gives other faults")
	}
	if other := draw(newChooser(8, allKinds(), 2), trials); other == first {
		t.Error("another seed gives the same faults")
	}
}

// All kinds come, on leaders and on others, for as long as they should; the acts of a trial are in
// the order of time, and each fault is ended.
func TestChoices(t *testing.T) {
	const trials = 2000
	for _, atOnce := range []int{1, 2} {
		c := newChooser(1, allKinds(), atOnce)
		came, two, onLeader, total := map[string]int{}, 0, 0, 0
		for range trials {
			trial := c.next()
			if n := len(trial.faults); n < 1 || n > atOnce {
				t.Fatalf("%d faults at once, and at most %d are wanted", n, atOnce)
			}
			if len(trial.faults) == 2 {
				two++
				if trial.faults[0].key == trial.faults[1].key {
					t.Errorf("trial %d has %s twice", trial.number, trial.faults[0].key)
				}
			}
			for _, f := range trial.faults {
				came[f.key]++
				total++
				if f.leader {
					onLeader++
				}
				if f.lasts < f.shortest || f.lasts > f.longest {
					t.Errorf("%s lasts %v", f.key, f.lasts)
				}
				if len(f.plan) < 2 {
					t.Errorf("%s has the acts %v: it does not end", f.key, f.plan)
				}
			}
			at := time.Duration(0)
			for _, s := range trial.steps() {
				if s.at < at {
					t.Fatalf("trial %d: an act at %v comes after one at %v", trial.number, s.at, at)
				}
				at = s.at
			}
		}
		for _, k := range allKinds() {
			if came[k.key] == 0 {
				t.Errorf("%s never came", k.key)
			}
		}
		if share := float64(onLeader) / float64(total); share < 0.6 || share > 0.75 {
			t.Errorf("%.0f %% of the faults are on the leader", 100*share)
		}
		if atOnce == 2 && (two < trials/3 || two > trials*2/3) {
			t.Errorf("%d of %d trials have two faults", two, trials)
		}
	}
}

func TestFlags(t *testing.T) {
	o, err := parse([]string{"--for", "90s", "--seed", "5", "--strict", "--faults", "cut,deaf"})
	if err != nil || o.lasts != 90*time.Second || o.seed != 5 || !o.strict || len(o.kinds) != 2 || o.kinds[1].key != "deaf" {
		t.Errorf("%+v, %v", o, err)
	}
	for args, want := range map[string]string{
		"--faults=rain": `there is no "rain"`,
		"--faults=list": "can be any of cable-pulled,",
		"--for=0s":      "must be positive",
		"now":           `no argument "now"`,
	} {
		_, err := parse([]string{args})
		assert.ErrorContains(t, err, want, "%s", args)
	}
}
