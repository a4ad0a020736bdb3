package sim_test

import (
	"slices"
	"testing"
	"time"

	"topdog/internal/lab/assert"
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
	property(func(t tester, seed uint64, rng, of luck, v variant) {
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
	}).hold(t, wire.AlgorithmAgents, drawVariant, 0, nil)
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
	lan := sim.New(1, sim.Wire{Delay: sim.Uniform(latency, latency+2*time.Millisecond), Loss: 0.02})
	for id := range wire.ID(200) {
		b := lan.Add(config(id+1, wire.AlgorithmAgents))
		lan.At(time.Duration(id)*5*time.Millisecond, b.Start)
	}
	lan.Run(15 * time.Second)
	lan.Wire = quick
	lan.Run(8 * delta)
	trusts(t, lan.Boards())
	lan.ResetCounts()
	lan.Run(time.Second)
	assert.Is(t, 0, lan.Counts.Type(wire.TypeStart).Packets, "START in one second without a fault")
}

// agentsLAN returns a LAN of n boards that have agreed on the last one, and trust each other. The first one is the judge.
func agentsLAN(t *testing.T, n int) *sim.Sim {
	t.Helper()
	lan := settled(t, quick, n, wire.AlgorithmAgents)
	trusts(t, lan.Boards())
	return lan
}

// TestAgentsMostImportant: the leader is the board of the largest priority in the
// newest list, and a more important one that comes later does not change that.
func TestAgentsMostImportant(t *testing.T) {
	lan := agentsLAN(t, 4)
	boards := lan.Boards()
	boards[1].Reprioritise(200, false)
	lan.Run(2 * time.Second)
	leads(t, boards, 4)
	boards[3].Crash()
	lan.Run(time.Second)
	leads(t, boards[:3], 2)
}
