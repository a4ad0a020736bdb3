package soak

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"topdog/internal/lab/assert"
	"topdog/internal/lab/golden"
	"topdog/internal/lab/scene"
)

// draw draws trials, as scenes.
func draw(t *testing.T, c *chooser, trials int) string {
	t.Helper()
	var text strings.Builder
	for range trials {
		trial, err := c.next()
		assert.NoError(t, err)
		fmt.Fprintf(&text, "%sgap %v\n", trial.text(), trial.gap)
	}
	return text.String()
}

// The same seed gives the same faults, and another one gives others.
func TestSeed(t *testing.T) {
	const trials = 200
	first := draw(t, newChooser(7, allKinds(), 2), trials)
	if again := draw(t, newChooser(7, allKinds(), 2), trials); again != first {
		t.Error("the same seed gives other faults")
	}
	if other := draw(t, newChooser(8, allKinds(), 2), trials); other == first {
		t.Error("another seed gives the same faults")
	}
	golden.Compare(t, "testdata/trials.golden", draw(t, newChooser(7, allKinds(), 2), 12))
}

// All kinds come, on leaders and on others, for as long as they should, and every trial can be played.
func TestChoices(t *testing.T) {
	const trials = 2000
	for _, atOnce := range []int{1, 2} {
		kinds := withSecondPath(allKinds())
		c := newChooser(1, kinds, atOnce)
		came, two, onLeader, total := map[string]int{}, 0, 0, 0
		for range trials {
			trial, err := c.next()
			assert.NoError(t, err)
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
				if f.it == "leader" {
					onLeader++
				}
				if len(f.lines) < 1 || f.lasts < f.kind.lasts.Least {
					t.Errorf("%s lasts %v: %v", f.key, f.lasts, f.lines)
				}
			}
			_, err = scene.Parse("trial", trial.text())
			assert.NoError(t, err)
		}
		for _, k := range kinds {
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
	o, err := parse([]string{"--for", "90s", "--seed", "5", "--strict", "--faults", "cut,deafen"})
	if err != nil || o.lasts != 90*time.Second || o.seed != 5 || !o.strict || len(o.kinds) != 2 || o.kinds[1].key != "deafen" {
		t.Errorf("%+v, %v", o, err)
	}
	if o, err := parse([]string{"--second-path", "--faults", "pull-second"}); err != nil || !o.second || len(o.kinds) != 1 {
		t.Errorf("%+v, %v", o, err)
	}
	for args, want := range map[string]string{
		"--faults=rain":        `there is no "rain"`,
		"--faults=pull-second": `there is no "pull-second"`,
		"--faults=list":        "can be any of kill,",
		"--for=0s":             "must be positive",
		"now":                  `no argument "now"`,
	} {
		_, err := parse([]string{args})
		assert.ErrorContains(t, err, want, "%s", args)
	}
}
