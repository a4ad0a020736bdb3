package sim_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"topdog/internal/lab/assert"
	"topdog/internal/lab/sim"
	"topdog/wire"
)

// The tests in this file hold what the failure detector promises: it is patient
// on a bad wire and quick on a good one.

// TestLossMovesNothing lets boards on a very bad wire alone for ten minutes.
// Nobody fails, so the address stays where it is.
func TestLossMovesNothing(t *testing.T) {
	for _, loss := range []float64{0.2, 0.4} {
		for _, boards := range []int{2, 3, 5} {
			t.Run(fmt.Sprintf("loss=%v/boards=%d", loss, boards), func(t *testing.T) {
				t.Parallel()
				seeds(t, sweep(3), nil, func(t *testing.T, seed uint64) {
					w := sim.Wire{Delay: sim.Uniform(latency, latency+2*time.Millisecond), Loss: loss}
					lan := crowd(seed, w, boards, wire.AlgorithmHeir)
					lan.Run(10 * time.Second)
					holder(t, lan) // others may doubt it at the moment: on a bad wire followers do that all the time
					since := lan.Now()
					lan.Run(10 * time.Minute)
					sum := lan.Summarise(since)
					if sum.Moves != 0 || sum.Doubled != 0 || sum.Vacant != 0 {
						t.Errorf("the address moved %d times, was vacant for %v, and had two holders for %v",
							sum.Moves, sum.Vacant, sum.Doubled)
					}
				})
			})
		}
	}
}

// TestTakeoverTime crashes the leader at a hundred random phases of its
// heartbeat. Half an interval passes on average before anybody can notice.
func TestTakeoverTime(t *testing.T) {
	var vacancies []time.Duration
	seeds(t, 100, nil, func(t *testing.T, seed uint64) {
		lan := crowd(seed, quick, 3, wire.AlgorithmHeir)
		lan.Run(10 * time.Second)
		leads(t, lan.Boards(), 3)
		lan.Run(time.Duration(lan.Rand().Int64N(int64(interval))))
		since := lan.Now()
		play(t, lan, "crash 3; run 1s")
		sum := lan.Summarise(since)
		if sum.Moves != 1 || sum.Doubled != 0 {
			t.Errorf("the address moved %d times and had two holders for %v, want 1 and 0", sum.Moves, sum.Doubled)
		}
		assert.Is(t, "2", holder(t, lan).Label, "the holder")
		vacancies = append(vacancies, sum.LongestVacancy)
	})
	slices.Sort(vacancies)
	median, longest := vacancies[len(vacancies)/2], vacancies[len(vacancies)-1]
	t.Logf("vacancy: median %v, longest %v", median, longest)
	if median > 75*time.Millisecond || longest > 130*time.Millisecond {
		t.Errorf("the median vacancy is %v, the longest %v; want at most 75ms and 130ms", median, longest)
	}
}
