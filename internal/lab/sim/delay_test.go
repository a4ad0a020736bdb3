package sim_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"topdog/election"
	"topdog/internal/lab/sim"
	"topdog/wire"
)

func TestParseDelay(t *testing.T) {
	for _, tc := range []struct {
		text, back string // as it is written again; "" for the same
	}{
		{"200us", "200µs"},
		{"constant:1ms", "1ms"},
		{"uniform:100us-3ms", "uniform:100µs-3ms"},
		{"normal:1ms,200us", "normal:1ms,200µs"},
		{"lognormal:1ms,0.5", ""},
		{"exp:2ms", ""},
		{"exp:1ms+2ms", ""},
	} {
		d, err := sim.ParseDelay(tc.text)
		if err != nil {
			t.Errorf("%s: %v", tc.text, err)
			continue
		}
		want := tc.back
		if want == "" {
			want = tc.text
		}
		if d.String() != want {
			t.Errorf("%s is written as %s, want %s", tc.text, d, want)
		}
		if again, err := sim.ParseDelay(d.String()); err != nil || again != d {
			t.Errorf("%s, read again, is %v, %v", d, again, err)
		}
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
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "uniform:100us-3ms") {
			t.Errorf("%q: the error is %v; want one with %q and what there is", text, err, want)
		}
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
				lan.Add(config(id + 1)).Start()
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

// config is of a board in the tests of the simulation itself.
func config(id wire.ID) election.Config {
	return election.Config{ID: id, Priority: 100, Interval: beat, Algorithm: wire.AlgorithmHeir}
}

// beat is the time between two heartbeats in these tests.
const beat = 100 * time.Millisecond

// soleLeader returns the one board that leads, which all follow and which alone holds the address.
func soleLeader(lan *sim.Sim) (*sim.Board, error) {
	holders := lan.Summarise(0).Holders
	if len(holders) != 1 {
		return nil, fmt.Errorf("%d boards hold the address", len(holders))
	}
	for _, b := range lan.Boards() {
		if b.Leader() != holders[0].Config.ID {
			return nil, fmt.Errorf("%v follows %v, while %v holds the address", b, b.Leader(), holders[0])
		}
	}
	return holders[0], nil
}

// group returns a LAN with that many boards of an algorithm, which have elected a leader.
func group(t *testing.T, boards int, algorithm wire.Algorithm, w sim.Wire) *sim.Sim {
	t.Helper()
	lan := sim.New(1, w)
	for id := range wire.ID(boards) {
		cfg := config(id + 1)
		cfg.Algorithm = algorithm
		lan.Add(cfg)
	}
	for _, b := range lan.Boards() {
		b.Start()
	}
	lan.Run(2 * time.Second)
	if _, err := soleLeader(lan); err != nil {
		t.Fatal(err)
	}
	return lan
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
	play := func(w sim.Wire) string {
		lan := sim.New(7, w)
		told := story(lan)
		rng := rand.New(rand.NewPCG(7, 7))
		for id := range wire.ID(6) {
			b := lan.Add(config(id + 1))
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
		one := play(sim.Wire{Delay: sim.Constant(took), Loss: loss})
		many := play(sim.Wire{Delay: sim.Uniform(took, took), Loss: loss})
		if one != many {
			t.Errorf("with a loss of %v the two ways differ", loss)
		}
		if len(one) < 10_000 {
			t.Errorf("only %d bytes of story", len(one))
		}
	}
}
