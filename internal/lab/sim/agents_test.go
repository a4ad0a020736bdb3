package sim_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"topdog/election"
	"topdog/internal/lab/sim"
	"topdog/wire"
)

// delta is δ of the algorithm agents, and capitalDelta its Δ, at the interval of these tests.
const (
	delta        = 2 * interval
	capitalDelta = interval / 4
)

// TestTrust holds what phase 2 of agents is for: whatever happened, soon after the
// faults end all live boards trust the same boards, and those are all that live.
// The last fault is that some of them crash for good.
func TestTrust(t *testing.T) {
	play := func(t tester, seed uint64, rng, of luck, v variant) {
		s := newSchedule(t, seed, rng, v, randomWire(of))
		s.misfortune(dirty)
		s.heal()
		trusts(t, s.lan.Boards())
		var live []*sim.Board
		for i, b := range s.lan.Boards() {
			if i > 0 && s.rng.IntN(3) == 0 {
				b.Crash()
				continue
			}
			live = append(live, b)
		}
		// Each dead board may be the judge of a round that nobody says OK in. The one
		// after it needs 2δ to know who does not answer, and the next OK tells the others.
		dead := len(s.lan.Boards()) - len(live)
		s.lan.Run(time.Duration(dead)*2*delta + 4*delta)
		trusts(t, live)
	}
	agents := variant{algorithm: wire.AlgorithmAgents}
	seeds(t, 0, nil, func(t *testing.T, seed uint64) {
		play(t, seed, rand.New(rand.NewPCG(seed, 1)), rand.New(rand.NewPCG(seed, 2)), agents)
	})
	rapid.Check(t, func(rt *rapid.T) {
		v := drawVariant(rt, agents.algorithm)
		play(rt, rapid.Uint64().Draw(rt, "seed of the wire"), drawn{rt}, drawn{rt}, v)
	})
}

// trusts checks that each of the boards trusts all of them and nobody else.
func trusts(t tester, boards []*sim.Board) {
	t.Helper()
	var want []wire.ID
	for _, b := range boards {
		want = append(want, b.Config.ID)
	}
	slices.Sort(want)
	for _, b := range boards {
		if s, _ := b.Status(); !slices.Equal(s.Trust, want) {
			t.Errorf("%v trusts %v, want %v", b, s.Trust, want)
		}
	}
}

// TestTrustOfMany: in a large group HELLOs are rare, so boards know of each other by
// what they say in phase 2 or not at all.
func TestTrustOfMany(t *testing.T) {
	lan := sim.New(1, sim.Wire{Latency: 200 * time.Microsecond, Jitter: 2 * time.Millisecond, Loss: 0.02})
	for id := range wire.ID(200) {
		b := lan.Add(election.Config{ID: id + 1, Priority: 100, Interval: interval, Algorithm: wire.AlgorithmAgents})
		lan.At(time.Duration(id)*5*time.Millisecond, b.Start)
	}
	lan.Run(15 * time.Second)
	lan.SetWire(sim.Wire{Latency: 200 * time.Microsecond})
	lan.Run(8 * delta)
	trusts(t, lan.Boards())
	clear(lan.Packets)
	lan.Run(time.Second)
	if n := lan.Packets[wire.TypeStart]; n > 0 {
		t.Errorf("%d START in one second without a fault", n)
	}
}

// agentsLAN returns a LAN of n boards that have agreed on the last one. The first one is the judge.
func agentsLAN(t *testing.T, n int) *sim.Sim {
	t.Helper()
	lan := sim.New(1, sim.Wire{Latency: 200 * time.Microsecond})
	for id := range wire.ID(n) {
		lan.Add(election.Config{ID: id + 1, Priority: 100, Interval: interval, Algorithm: wire.AlgorithmAgents}).Start()
	}
	lan.Run(10 * time.Second)
	if lead, err := leader(lan.Boards()); err != nil || lead.Config.ID != wire.ID(n) {
		t.Fatalf("%v leads, want board %d: %v", lead, n, err)
	}
	trusts(t, lan.Boards())
	return lan
}

// counted writes the messages of agents as the literature counts them.
func counted(lan *sim.Sim) map[string]int {
	counts := make(map[string]int)
	for _, kind := range lan.Counts.Kinds() {
		if kind != sim.Kind(wire.TypeHello) && kind != sim.Kind(wire.TypeHeartbeat) {
			counts[kind.String()] = lan.Counts.Of(kind).Messages()
		}
	}
	return counts
}

// TestAgentsPeace counts what phases 1 and 2 cost when nothing happens: in one
// second 5 times an OK to n-1 boards and n-1 ACKs, and once the leader's list.
func TestAgentsPeace(t *testing.T) {
	for _, n := range []int{3, 10, 50} {
		t.Run(fmt.Sprintf("boards=%d", n), func(t *testing.T) {
			lan := agentsLAN(t, n)
			lan.ResetCounts()
			lan.Run(10 * time.Second)
			const oks = int(10 * time.Second / delta)
			want := map[string]int{"OK": oks * (n - 1), "ACK": oks * (n - 1), "REPORT": 10 * (n - 1)}
			if diff := cmp.Diff(want, counted(lan)); diff != "" {
				t.Errorf("messages in ten seconds without a fault (-want +got):\n%s", diff)
			}
			if packets := lan.Counts.Of(sim.Kind(wire.TypeOK), sim.Kind(wire.TypeAck)).Packets; packets != oks*n {
				t.Errorf("%d packets of phase 2, want %d", packets, oks*n)
			}
		})
	}
}

// TestAgentsTakeover counts what phase 3 costs when the leader dies, and measures
// how long it takes: 2Δ and three messages from the suspicion on.
func TestAgentsTakeover(t *testing.T) {
	for _, n := range []int{3, 10, 50} {
		t.Run(fmt.Sprintf("boards=%d", n), func(t *testing.T) {
			lan := agentsLAN(t, n)
			judge := lan.Boards()[0]
			lan.ResetCounts()
			lan.Boards()[n-1].Crash()
			suspected := func() bool { return judge.Role() == election.Candidate }
			if !lan.RunUntil(suspected, 10*interval) {
				t.Fatal("the judge does not suspect the leader")
			}
			// Phase 2 goes on meanwhile; what it sends is not counted here. COLLECT is out already.
			watch := lan.Watch()
			since := lan.Counts
			lan.RunUntil(func() bool { _, ok := watch.Settled(); return ok }, 10*interval)
			got := make(map[string]int)
			for _, kind := range []wire.Type{wire.TypeReport, wire.TypeLeader, wire.TypeCoordinator} {
				got[kind.String()] = lan.Counts.Type(kind).Messages() - since.Type(kind).Messages()
			}
			got["COLLECT"] = lan.Counts.Type(wire.TypeCollect).Messages()
			// The dead leader is trusted until the judge misses its ACK.
			want := map[string]int{"COLLECT": n - 1, "REPORT": n - 2, "LEADER": n - 1, "COORDINATOR": n - 1}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("messages of a takeover (-want +got):\n%s", diff)
			}
			after, _ := watch.Settled()
			if want := 2*capitalDelta + 2*200*time.Microsecond; after != want {
				t.Errorf("from the suspicion on it took %v, want %v", after, want)
			}
			if lead := watch.Leader(); lead.Config.ID != wire.ID(n-1) {
				t.Errorf("%v leads, want board %d", lead, n-1)
			}
		})
	}
}

// TestAgentsMostImportant: the leader is the board of the largest priority in the
// newest list, and a more important one that comes later does not change that.
func TestAgentsMostImportant(t *testing.T) {
	lan := agentsLAN(t, 4)
	boards := lan.Boards()
	boards[1].Reprioritise(200, false)
	lan.Run(2 * time.Second)
	if lead, err := leader(boards); err != nil || lead != boards[3] {
		t.Fatalf("a board became more important, and now %v leads: %v", lead, err)
	}
	boards[3].Crash()
	lan.Run(time.Second)
	if lead, err := leader(boards[:3]); err != nil || lead != boards[1] {
		t.Errorf("%v leads, want board 2, which is the most important one: %v", lead, err)
	}
}
