package sim_test

import (
	"slices"
	"testing"
	"time"

	"topdog/election"
	"topdog/election/literature"
	"topdog/internal/lab/assert"
	"topdog/internal/lab/sim"
	"topdog/wire"
)

// The tests in this file play what once made a storm of messages, or kept a group
// without a leader.

func eachAlgorithm(t *testing.T, test func(t *testing.T, a wire.Algorithm)) {
	t.Helper()
	for _, name := range literature.Algorithms() {
		a, _ := literature.AlgorithmNamed(name)
		t.Run(name, func(t *testing.T) { test(t, a) })
	}
}

// TestForeignAddress: as long as a foreign machine has the address, which is the
// likeliest mistake in a configuration, boards look now and then whether it has gone.
func TestForeignAddress(t *testing.T) {
	eachAlgorithm(t, func(t *testing.T, a wire.Algorithm) {
		lan := crowd(1, quick, 20, a)
		lan.Foreign = true
		lan.Run(time.Minute)
		lan.ResetCounts()
		const seconds = 20
		lan.Run(seconds * time.Second)
		if n := packets(lan) / seconds; n > 150 {
			t.Errorf("%d packets a second among 20 boards: %v", n, lan.Counts)
		}
		lan.Foreign = false
		lan.Run(30 * time.Second)
		_, err := leader(lan.Boards())
		assert.NoError(t, err)
	})
}

// TestOneProbe: boards that are switched on at different moments do not probe the address at
// the same time. They would take each other for a foreign machine.
func TestOneProbe(t *testing.T) {
	eachAlgorithm(t, func(t *testing.T, a wire.Algorithm) {
		for skew := time.Duration(0); skew <= 1500*time.Millisecond; skew += 25 * time.Millisecond {
			for _, late := range [][]wire.ID{{4}, {1, 2, 3}} {
				lan := sim.New(1, quick)
				lan.Trace = overlappingProbes(t, late, skew)
				for id := range wire.ID(4) {
					b := lan.Add(config(id+1, a))
					wait := time.Duration(0)
					if slices.Contains(late, id+1) {
						wait = skew
					}
					lan.At(wait, b.Start)
				}
				lan.Run(12 * time.Second)
			}
		}
	})
}

// overlappingProbes complains if two boards probe within the time of one probe.
func overlappingProbes(t *testing.T, late []wire.ID, skew time.Duration) func(sim.Event) {
	last, at := "", election.Instant(-time.Hour)
	return func(e sim.Event) {
		if e.What != "probes the address" {
			return
		}
		if last != "" && last != e.Board.Label && e.At-at < 100*time.Millisecond {
			t.Errorf("boards %v start %v later: %s probes %v after %s", late, skew, e.Board.Label, e.At-at, last)
		}
		last, at = e.Board.Label, e.At
	}
}

// TestHaltEnds: a board whose START never arrives says HALT time and again, and must
// not keep the others from electing a leader.
func TestHaltEnds(t *testing.T) {
	lan := settled(t, quick, 5, wire.AlgorithmModified)
	b := lan.Boards()
	lose(lan, b[0], wire.TypeStart, 1<<30, nil)
	b[4].AfterHeartbeat(func() { b[4].Crash(); b[0].Suspect() })
	lan.Run(5 * time.Second)
	_, err := leader(b[:4])
	assert.NoError(t, err)
}

// TestStrangersMeet heals a partition into leaders that have never heard of each
// other, and speak by unicast to those they know. A third board comes at the same moment.
func TestStrangersMeet(t *testing.T) {
	eachAlgorithm(t, func(t *testing.T, a wire.Algorithm) {
		lan := crowd(1, quick, 20, a, func(c *election.Config) { c.Fanout = election.FanoutUnicast })
		var pieces [2][]wire.ID
		for id := wire.ID(1); id < 20; id++ {
			pieces[id/11] = append(pieces[id/11], id)
		}
		var parts parts
		parts.split(lan, pieces[:]...)
		lan.Board("20").Pull()
		lan.Run(5 * time.Second)
		lan.Board("19").Crash()
		lan.Run(15 * time.Second)
		lan.ResetCounts()
		healed := lan.Now()
		parts.join(lan)
		lan.Board("20").Plug()
		lan.Run(6 * time.Second)
		if n := packets(lan); n > 3000 {
			t.Errorf("%d packets: %v", n, lan.Counts)
		}
		if d := lan.Summarise(healed).Doubled; d > interval {
			t.Errorf("two boards held the address for %v", d)
		}
	})
}
