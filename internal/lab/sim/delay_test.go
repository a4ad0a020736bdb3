package sim_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"topdog/internal/lab/assert"
	"topdog/internal/lab/sim"
	"topdog/wire"
)

func TestParseDelayErrors(t *testing.T) {
	for text, want := range map[string]string{
		"":                   "no length of time",
		"200":                "no length of time",
		"-1ms":               "takes 0 to",
		"2h":                 "takes 0 to",
		"gauss:1ms,1ms":      `no distribution "gauss"`,
		"uniform:1ms":        "two numbers",
		"uniform:3ms-1ms":    "comes before",
		"normal:1ms":         "two numbers",
		"lognormal:1ms,-1":   "sigma",
		"lognormal:1ms,NaN":  "sigma",
		"lognormal:1ms,1e99": "sigma",
		"exp:":               "no length of time",
	} {
		_, err := sim.ParseDelay(text)
		assert.ErrorContains(t, err, want, "%q", text)
		assert.ErrorContains(t, err, "uniform:100us-3ms", "%q: what there is", text)
	}
}

// TestDelays measures how long heartbeats take: what a distribution is called after
// must show.
func TestDelays(t *testing.T) {
	const us = time.Microsecond
	for _, tc := range []struct {
		delay                       string
		least, median, mean, longer time.Duration // longer: one in a hundred takes more than that
	}{
		{"200us", 200 * us, 200 * us, 200 * us, 200 * us},
		{"constant:1ms", 1000 * us, 1000 * us, 1000 * us, 1000 * us},
		{"uniform:100us-300us", 100 * us, 200 * us, 200 * us, 298 * us},
		{"normal:1ms,100us", 0, 1000 * us, 1000 * us, 1233 * us},
		{"lognormal:1ms,0.5", 0, 1000 * us, 1133 * us, 3200 * us},
		{"exp:100us+200us", 100 * us, 239 * us, 300 * us, 1021 * us},
		{"exp:200us", 0, 139 * us, 200 * us, 921 * us},
	} {
		t.Run(tc.delay, func(t *testing.T) {
			delay, err := sim.ParseDelay(tc.delay)
			assert.NoError(t, err)
			lan := sim.New(1, sim.Wire{Delay: delay})
			var took []time.Duration
			var sum time.Duration
			lan.Arrivals = func(a sim.Arrival) {
				took = append(took, a.At-a.Sent)
				sum += a.At - a.Sent
			}
			for id := range wire.ID(3) {
				lan.Add(config(id+1, wire.AlgorithmHeir)).Start()
			}
			lan.Run(10 * time.Minute)
			slices.Sort(took)
			near := func(what string, got, want time.Duration) {
				if got < want*9/10 || got > want*11/10 {
					t.Errorf("the %s is %v, want about %v", what, got, want)
				}
			}
			near("median", took[len(took)/2], tc.median)
			near("mean", sum/time.Duration(len(took)), tc.mean)
			near("99th percentile", took[len(took)*99/100], tc.longer)
			if took[0] < tc.least {
				t.Errorf("one took only %v, want at least %v", took[0], tc.least)
			}
		})
	}
}

// story writes down all that happens on a LAN from now on.
func story(lan *sim.Sim) *strings.Builder {
	var b strings.Builder
	lan.Trace = func(e sim.Event) { b.WriteString(e.Text() + "\n") }
	return &b
}
