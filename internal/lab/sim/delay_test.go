package sim_test

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"topdog/internal/lab/assert"
	"topdog/internal/lab/sim"
	"topdog/wire"
)

func TestParseDelay(t *testing.T) {
	for _, tc := range []struct {
		text, back string // as it is written again
	}{
		{"200us", "200µs"},
		{"constant:1ms", "1ms"},
		{"uniform:100us-3ms", "uniform:100µs-3ms"},
		{"normal:1ms,200us", "normal:1ms,200µs"},
		{"lognormal:1ms,0.5", "lognormal:1ms,0.5"},
		{"exp:2ms", "exp:2ms"},
		{"exp:1ms+2ms", "exp:1ms+2ms"},
	} {
		d, err := sim.ParseDelay(tc.text)
		assert.NoError(t, err)
		assert.Is(t, tc.back, d.String(), "%s", tc.text)
		again, err := sim.ParseDelay(tc.back)
		assert.NoError(t, err)
		assert.Is(t, d, again, "%s, read again", tc.back)
	}
}

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
		delay                       sim.Delay
		least, median, mean, longer time.Duration // longer: one in a hundred takes more than that
	}{
		{sim.Constant(200 * us), 200 * us, 200 * us, 200 * us, 200 * us},
		{sim.Uniform(100*us, 300*us), 100 * us, 200 * us, 200 * us, 298 * us},
		{sim.Normal(1000*us, 100*us), 0, 1000 * us, 1000 * us, 1233 * us},
		{sim.LogNormal(1000*us, 0.5), 0, 1000 * us, 1133 * us, 3200 * us},
		{sim.Exponential(100*us, 200*us), 100 * us, 239 * us, 300 * us, 1021 * us},
	} {
		t.Run(tc.delay.String(), func(t *testing.T) {
			lan := sim.New(1, sim.Wire{Delay: tc.delay})
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

// TestEvenWire holds that a datagram which reaches all boards by one event does
// what one event for each of them does. A uniform delay without width is no constant
// one to the simulation, and draws nothing.
func TestEvenWire(t *testing.T) {
	run := func(w sim.Wire) string {
		lan := sim.New(7, w)
		told := story(lan)
		rng := rand.New(rand.NewPCG(7, 7))
		for id := range wire.ID(6) {
			b := lan.Add(config(id+1, wire.AlgorithmHeir))
			lan.At(time.Duration(rng.Int64N(int64(time.Second))), b.Start)
		}
		for range 200 {
			lan.Run(time.Duration(rng.Int64N(int64(200 * time.Millisecond))))
			b := lan.Boards()[rng.IntN(6)]
			[]func(){b.Crash, b.Start, b.Start, b.Freeze, b.Thaw, b.Pull, b.Plug, b.Stop}[rng.IntN(8)]()
		}
		return told.String()
	}
	const took = 300 * time.Microsecond
	for _, loss := range []float64{0, 0.2} {
		one := run(sim.Wire{Delay: sim.Constant(took), Loss: loss})
		many := run(sim.Wire{Delay: sim.Uniform(took, took), Loss: loss})
		if one != many {
			t.Errorf("with a loss of %v the two ways differ", loss)
		}
		if len(one) < 10_000 {
			t.Errorf("only %d bytes of story", len(one))
		}
	}
}
