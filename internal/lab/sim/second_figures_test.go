package sim_test

import (
	"slices"
	"testing"
	"time"

	"topdog/election"
	"topdog/internal/lab/sim"
	"topdog/wire"
)

// TestSecondPathFigures measures for how long nobody could reach the address, with and without a second path, in a hundred groups of
// three boards and a witness each. The fault comes at a random moment. The figures are in docs/guarantees.md:
//
//	go test ./internal/lab/sim -run SecondPathFigures -v
func TestSecondPathFigures(t *testing.T) {
	const groups = 100
	for _, test := range []struct {
		steps      string
		with, none time.Duration // at most
	}{
		{"crash 3; run 5s", 35 * time.Millisecond, 35 * time.Millisecond},
		{"pull 3; run 5s", 5 * time.Millisecond, 35 * time.Millisecond},
		{"mute 3; run 5s", 70 * time.Millisecond, 35 * time.Millisecond},
		{"deaf 3; run 5s", 70 * time.Millisecond, 1300 * time.Millisecond},
		{"unheard 3; run 5s", 70 * time.Millisecond, 35 * time.Millisecond},
	} {
		for _, second := range []bool{true, false} {
			var took []time.Duration
			moves, twice := 0, time.Duration(0)
			for seed := range uint64(groups) {
				lan := crowd(seed+1, lanWire(0), 3, wire.AlgorithmHeir, func(c *election.Config) { c.SecondPath = second })
				lan.Second.Wire = sim.Wire{Delay: sim.Uniform(time.Millisecond, 5*time.Millisecond)}
				lan.Run(10*time.Second + time.Duration(lan.Rand().Int64N(int64(interval))))
				since := lan.Now()
				play(t, lan, test.steps)
				sum := lan.Summarise(since)
				took, moves, twice = append(took, sum.Nowhere), moves+sum.Moves, max(twice, sum.Twice)
			}
			slices.Sort(took)
			most := test.none
			if second {
				most = test.with
			}
			t.Logf("%s, second path %v: median %v, at worst %v; %d moves, two reached for %v", test.steps, second, took[groups/2].Round(100*time.Microsecond), took[groups-1].Round(100*time.Microsecond), moves, twice)
			if took[groups-1] > most || moves != groups || twice > 0 {
				t.Errorf("%s, second path %v: %v at worst, want at most %v; %d moves; two reached for %v", test.steps, second, took[groups-1], most, moves, twice)
			}
		}
	}
}
