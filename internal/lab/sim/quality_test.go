package sim_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"topdog/election"
	"topdog/internal/lab/sim"
	"topdog/wire"
)

// The tests in this file hold what the failure detector promises: it is patient
// on a bad wire and quick on a good one.

// settled returns a LAN on which that many boards have had the time to elect one
// of them and to time the way to it. Others may doubt it at the moment: on a bad wire
// that is what followers do all the time.
func settled(t *testing.T, seed uint64, boards int, w sim.Wire) *sim.Sim {
	t.Helper()
	lan := sim.New(seed, w)
	for id := range wire.ID(boards) {
		lan.Add(election.Config{ID: id + 1, Priority: 100, Interval: interval, Algorithm: wire.AlgorithmHeir}).Start()
	}
	lan.Run(10 * time.Second)
	if n := len(lan.Summarise(0).Holders); n != 1 {
		t.Fatalf("after 10 s in which nobody failed %d boards hold the address", n)
	}
	return lan
}

// TestLossMovesNothing lets boards on a very bad wire alone for ten minutes.
// Nobody fails, so the address stays where it is.
func TestLossMovesNothing(t *testing.T) {
	for _, loss := range []float64{0.2, 0.4} {
		for _, boards := range []int{2, 3, 5} {
			t.Run(fmt.Sprintf("loss=%v/boards=%d", loss, boards), func(t *testing.T) {
				t.Parallel()
				seeds(t, sweep(3), nil, func(t *testing.T, seed uint64) {
					w := sim.Wire{Latency: 200 * time.Microsecond, Jitter: 2 * time.Millisecond, Loss: loss}
					lan := settled(t, seed, boards, w)
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
		lan := settled(t, seed, 3, sim.Wire{Latency: 200 * time.Microsecond})
		lan.Run(time.Duration(lan.Rand().Int64N(int64(interval))))
		since := lan.Now()
		lan.Board("3").Crash()
		lan.Run(time.Second)
		sum := lan.Summarise(since)
		if sum.Moves != 1 || sum.Doubled != 0 {
			t.Errorf("the address moved %d times and had two holders for %v, want 1 and 0", sum.Moves, sum.Doubled)
		}
		if !lan.Board("2").Holding() {
			t.Error("the heir does not hold the address")
		}
		vacancies = append(vacancies, sum.LongestVacancy)
	})
	slices.Sort(vacancies)
	median, longest := vacancies[len(vacancies)/2], vacancies[len(vacancies)-1]
	t.Logf("vacancy: median %v, longest %v", median, longest)
	if median > 75*time.Millisecond {
		t.Errorf("median vacancy %v, want at most 75ms", median)
	}
	if longest > 130*time.Millisecond {
		t.Errorf("longest vacancy %v, want at most 130ms", longest)
	}
}
