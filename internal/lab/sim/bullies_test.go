package sim_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"topdog/election"
	"topdog/internal/lab/sim"
	"topdog/wire"
)

// cost is what an election costs, as the literature counts: an ELECTION to the dead
// coordinator is a message, a COORDINATOR to it is none.
type cost struct{ Election, Answer, Coordinator, Halt, Start int }

// costOf has the highest of n boards die, and one other board notice it before the rest could.
func costOf(t *testing.T, algorithm wire.Algorithm, n int, noticer wire.ID) cost {
	t.Helper()
	lan := sim.New(1, sim.Wire{Latency: 200 * time.Microsecond})
	for id := range wire.ID(n) {
		lan.Add(election.Config{ID: id + 1, Priority: 100, Interval: interval, Algorithm: algorithm}).Start()
	}
	lan.Run(10 * time.Second)
	dies, w := lan.Boards()[n-1], (*sim.Watch)(nil)
	if !dies.Holding() {
		t.Fatalf("%v: the highest of %d boards does not lead", algorithm, n)
	}
	dies.AfterHeartbeat(func() {
		dies.Crash()
		lan.ResetCounts()
		w = lan.Watch()
		lan.Boards()[noticer-1].Suspect()
	})
	lan.Run(2 * interval)
	if !lan.RunUntil(func() bool { _, ok := w.Settled(); return ok }, 10*time.Second) {
		t.Fatalf("%v: %d boards do not agree", algorithm, n)
	}
	return cost{
		Election:    lan.Counts.Type(wire.TypeElection).Messages(),
		Answer:      lan.Counts.Type(wire.TypeAnswer).Messages(),
		Coordinator: lan.Counts.Type(wire.TypeCoordinator).Live,
		Halt:        lan.Counts.Type(wire.TypeHalt).Messages(),
		Start:       lan.Counts.Type(wire.TypeStart).Messages(),
	}
}

// TestBullyCosts holds what the bully algorithm and its relatives say of their
// cost, of each kind of message, when the lowest of n boards notices and when the
// highest does. Report 001 gives the sums.
func TestBullyCosts(t *testing.T) {
	for _, n := range []int{3, 4, 10, 28} {
		highest := wire.ID(n - 1)
		for _, test := range []struct {
			name      string
			algorithm wire.Algorithm
			noticer   wire.ID
			want      cost
		}{
			{"bully, worst: n²-n-1", wire.AlgorithmBully, 1,
				cost{Election: n * (n - 1) / 2, Answer: (n - 1) * (n - 2) / 2, Coordinator: n - 2}},
			{"bully, best: n-1", wire.AlgorithmBully, highest,
				cost{Election: 1, Coordinator: n - 2}},
			{"modified, worst: 3n-4", wire.AlgorithmModified, 1,
				cost{Election: n - 1 + 1, Answer: n - 2, Coordinator: n - 2, Halt: n - 1, Start: 1}},
			{"modified, best: n-1", wire.AlgorithmModified, highest,
				cost{Election: 1, Coordinator: n - 2, Halt: n - 1}},
			{"score", wire.AlgorithmScore, 1,
				cost{Election: (n - 1) * (n - 1), Answer: (n - 1) * (n - 2) / 2, Coordinator: n - 2}},
		} {
			got := costOf(t, test.algorithm, n, test.noticer)
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("%s, of %d boards: -want +got:\n%s", test.name, n, diff)
			}
		}
	}
}
