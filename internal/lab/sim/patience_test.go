package sim_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"topdog/election"
	"topdog/election/silence"
	"topdog/internal/lab/assert"
	"topdog/internal/lab/sim"
	"topdog/wire"
)

// The tests in this file disturb a group of which nobody fails, and hold how often the address
// moves until the group has learned to be more patient, and how long the grace is then.

// disturbance is something that makes a leader late that is alive.
type disturbance struct {
	name     string
	interval time.Duration
	do       func(lan *sim.Sim)
	// first and next are how often the address may move on average in the first forty and in
	// the next forty; grace is the longest that may be learned.
	first, next float64
	grace       time.Duration
}

// until draws a time between two others.
func until(rng *rand.Rand, from, to time.Duration) time.Duration {
	return from + time.Duration(rng.Int64N(int64(to-from)))
}

// aBurst is how long nothing passes.
func aBurst(lan *sim.Sim) time.Duration {
	return until(lan.Rand(), 20*time.Millisecond, 60*time.Millisecond)
}

var disturbances = []disturbance{
	{"the switch passes nothing for 20 to 60 ms", interval,
		func(lan *sim.Sim) { burst(lan, lan.Boards(), aBurst(lan)) }, 0.2, 0.2, 200 * time.Millisecond},
	{"the leader's port passes nothing for 20 to 60 ms", interval,
		func(lan *sim.Sim) { burst(lan, leading(lan), aBurst(lan)) }, 2, 0.3, 200 * time.Millisecond},
	{"the leader stands still for 5 to 30 ms", interval,
		func(lan *sim.Sim) {
			pause(lan, leading(lan), until(lan.Rand(), 5*time.Millisecond, 30*time.Millisecond))
		},
		1.2, 0.2, 80 * time.Millisecond},
	{"the leader stands still for 75 ms", 10 * time.Millisecond,
		func(lan *sim.Sim) { pause(lan, leading(lan), 75*time.Millisecond) }, 1, 0, 208 * time.Millisecond},
	{"all boards stand still for 75 ms", 10 * time.Millisecond,
		func(lan *sim.Sim) { pause(lan, lan.Boards(), 75*time.Millisecond) }, 1, 0, 208 * time.Millisecond},
}

// disturb returns what forty disturbances have done to a group, and forty more, and the grace that the leader
// announces in the end.
func (d *disturbance) disturb(seed uint64, withSwitch bool) (moves [2]int, grace time.Duration) {
	lan := crowd(seed, lanWire(0), 3, wire.AlgorithmHeir, every(d.interval))
	each(lan, func(b *sim.Board) { b.Switch = withSwitch })
	lan.Run(30 * time.Second)
	for half := range moves {
		from := lan.Now()
		for range 40 {
			d.do(lan)
			lan.Run(until(lan.Rand(), 500*time.Millisecond, 1500*time.Millisecond))
		}
		moves[half] = lan.Summarise(from).Moves
	}
	return moves, announced(lan)
}

// announced is the grace that the leader announces.
func announced(lan *sim.Sim) (grace time.Duration) {
	for _, b := range leading(lan) {
		s, _ := b.Status()
		grace = max(grace, s.Patience.Grace)
	}
	return grace
}

// TestPatience holds what patience is worth, and what it costs.
func TestPatience(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: this computes for seconds")
	}
	for i := range disturbances {
		d := &disturbances[i]
		groups := 20
		if d.interval < 100*time.Millisecond { // many heartbeats
			groups = sweep(groups)
		}
		for _, withSwitch := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/switch=%v", d.name, withSwitch), func(t *testing.T) {
				t.Parallel()
				var first, next int
				for seed := range uint64(groups) {
					moves, grace := d.disturb(seed, withSwitch)
					first += moves[0]
					next += moves[1]
					if grace > d.grace {
						t.Errorf("seed %d: it has learned %v, want at most %v", seed, grace, d.grace)
					}
				}
				t.Logf("moves: %.2f, then %.2f", float64(first)/float64(groups), float64(next)/float64(groups))
				if float64(first) > d.first*float64(groups) || float64(next) > d.next*float64(groups) {
					t.Errorf("the address has moved %d times in %d groups, and then %d times; want at most %v and %v each", first, groups, next, d.first, d.next)
				}
			})
		}
	}
}

// TestNeverTwoHoldersWhileTheGraceChanges lets leaders stand still again and again, for less and
// for more than is learned, and lets hours pass in which it is halved; boards crash and lose
// their cables as well. On a wire that loses nothing no two boards answer at the same time.
func TestNeverTwoHoldersWhileTheGraceChanges(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: this computes for seconds")
	}
	for _, detector := range silence.Detectors() {
		for _, h := range []time.Duration{10 * time.Millisecond, 100 * time.Millisecond} {
			t.Run(fmt.Sprintf("%s/H=%v", detector, h), func(t *testing.T) {
				t.Parallel()
				kind, _ := silence.DetectorNamed(detector)
				longest := time.Duration(0)
				seeds(t, sweep(6), nil, func(t *testing.T, seed uint64) {
					rng := rand.New(rand.NewPCG(seed, 1))
					lan := crowd(seed, quick, 2+rng.IntN(3), wire.AlgorithmHeir, every(h), func(c *election.Config) { c.Detector = kind })
					each(lan, func(b *sim.Board) { b.Switch = rng.IntN(2) == 0 })
					lan.Run(10 * time.Second)
					for range 60 {
						b := lan.Boards()[rng.IntN(len(lan.Boards()))]
						if lead := leading(lan); len(lead) > 0 && rng.IntN(3) > 0 {
							b = lead[0]
						}
						switch n := rng.IntN(12); {
						case n == 0:
							b.Crash()
							lan.Run(until(rng, 0, time.Second))
							b.Start()
						case n == 1:
							b.Pull()
							lan.Run(until(rng, 0, time.Second))
							b.Plug()
						case n == 2 && h > 10*time.Millisecond: // many heartbeats
							lan.Run(20 * time.Minute)
						default:
							pause(lan, []*sim.Board{b}, until(rng, 0, 300*time.Millisecond))
						}
						lan.Run(until(rng, 0, 2*time.Second))
						longest = max(longest, announced(lan))
					}
					assert.Is(t, 0, lan.Summarise(0).Doubled, "two holders")
				})
				if longest <= silence.DefaultGrace(h) {
					t.Error("no group has learned anything")
				}
			})
		}
	}
}
