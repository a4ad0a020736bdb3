package sim_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"pgregory.net/rapid"

	"topdog/election"
	"topdog/internal/lab/sim"
	"topdog/wire"
)

// The tests in this file hold what the algorithm strict promises: at no instant of the true
// time do two boards hold the address. A board holds it from when it acquires it until it
// releases it or its lease is over, which the simulation ends without the board's process.

// clockError is how far a clock of strict may be off, in millionths.
const clockError = 10_000

// harsh are the faults that strict must live with, which is all that there are.
var harsh = append([]fault{
	{"restart", func(_ *schedule, b *sim.Board) { b.Crash(); b.Start() }},
	{"restart all", func(s *schedule, _ *sim.Board) {
		for _, b := range s.lan.Boards() {
			b.Crash()
			b.Start()
		}
	}},
	{"split", func(s *schedule, _ *sim.Board) {
		var part []wire.ID
		for _, b := range s.lan.Boards() {
			if s.rng.IntN(2) == 0 {
				part = append(part, b.Config.ID)
			}
		}
		s.lan.Partition(part)
	}},
	{"join", func(s *schedule, _ *sim.Board) { s.lan.Heal() }},
	{"join", func(s *schedule, _ *sim.Board) { s.lan.Heal() }},
	{"mute for a moment", func(s *schedule, b *sim.Board) {
		b.Mute()
		s.lan.At(time.Duration(s.rng.Int64N(int64(2*interval))), b.Unmute)
	}},
	{"freeze for a moment", func(s *schedule, b *sim.Board) {
		b.Freeze()
		s.lan.At(time.Duration(s.rng.Int64N(int64(2*interval))), b.Thaw)
	}},
	{"doubt", func(_ *schedule, b *sim.Board) { b.Suspect() }},
	{"bad clock", func(s *schedule, b *sim.Board) {
		b.TrustClock(false)
		s.lan.At(time.Duration(s.rng.Int64N(int64(time.Second))), func() { b.TrustClock(true) })
	}},
}, dirty...)

// harshness is misfortune with a fault every so often, on average.
func (s *schedule) harshness(faults []fault, every time.Duration) {
	s.lan.Run(time.Duration(s.rng.Int64N(int64(3 * time.Second))))
	for range 5 + s.rng.IntN(40) {
		s.lan.Run(time.Duration(s.rng.ExpFloat64() * float64(every)))
		faults[s.rng.IntN(len(faults))].do(s, s.any())
	}
}

// harshWire loses, duplicates, delays and reorders.
func harshWire(of luck) sim.Wire {
	return sim.Wire{
		Latency: 100 * time.Microsecond, Jitter: time.Duration(of.Int64N(int64(30 * time.Millisecond))),
		Loss: float64(of.IntN(4)) / 10, Duplicate: float64(of.IntN(3)) / 10,
		Reorder: float64(of.IntN(3)) / 10, HoldBack: time.Duration(of.Int64N(int64(200 * time.Millisecond))),
	}
}

// newStrict makes a schedule of 1 to 7 boards, of which some may be no voters, and one may be a
// witness. No two clocks run at the same rate, and the greatest difference is what
// strict allows.
func newStrict(t tester, seed uint64, rng luck, w sim.Wire) *schedule {
	t.Helper()
	s := &schedule{lan: sim.New(seed, w), rng: rng, variant: variant{algorithm: wire.AlgorithmStrict}}
	if os.Getenv("TOPDOG_TRACE") != "" {
		s.lan.Trace = func(e sim.Event) { fmt.Fprintln(&s.trace, e.Text()) }
		t.Cleanup(func() {
			if t.Failed() || os.Getenv("TOPDOG_SEED") != "" {
				t.Log("\n" + s.trace.String())
			}
		})
	}
	boards := 1 + rng.IntN(7)
	var voters []wire.ID
	for id := range 1 + rng.IntN(boards) {
		voters = append(voters, wire.ID(id+1))
	}
	witness := wire.ID(1 + rng.IntN(boards)) // not the only one that could lead
	for id := range boards {
		priority := uint8(50 + 50*rng.IntN(3))
		if id := wire.ID(id + 1); id == witness && id > 1 {
			priority = 0
		}
		b := s.lan.Add(election.Config{
			ID: wire.ID(id + 1), Priority: priority, Preempt: rng.IntN(4) == 0,
			Interval: interval, Algorithm: wire.AlgorithmStrict, Voters: voters,
		})
		b.Clock = sim.Clock{Origin: time.Hour + time.Duration(id)*time.Minute, PPM: clockError * (rng.IntN(3) - 1)}
		s.lan.At(time.Duration(s.rng.Int64N(int64(time.Second))), b.Start)
	}
	return s
}

// strictSchedules plays with seeds, and then with what rapid draws.
func strictSchedules(t *testing.T, play func(t tester, seed uint64, rng, of luck)) {
	t.Helper()
	seeds(t, 20, nil, func(t *testing.T, seed uint64) {
		play(t, seed, rand.New(rand.NewPCG(seed, 1)), rand.New(rand.NewPCG(seed, 2)))
	})
	if os.Getenv("TOPDOG_SEED") != "" {
		return
	}
	rapid.Check(t, func(rt *rapid.T) {
		play(rt, rapid.Uint64().Draw(rt, "seed of the wire"), drawn{rt}, drawn{rt})
	})
}

// TestStrictNeverTwoHolders plays all kinds of faults at once, on any wire. Soon after the last
// one there is one leader, and the address.
func TestStrictNeverTwoHolders(t *testing.T) {
	strictSchedules(t, func(t tester, seed uint64, rng, of luck) {
		s := newStrict(t, seed, rng, harshWire(of))
		s.neverTwoHolders(t, harsh, 0)
	})
}

// neverTwoHolders is the property. What a fault has begun lasts for some time after the last one.
func (s *schedule) neverTwoHolders(t tester, faults []fault, lasts time.Duration) {
	t.Helper()
	s.harshness(faults, time.Duration(1+14*s.rng.IntN(2))*20*time.Millisecond)
	if d := s.lan.Summarise(0).Doubled; d != 0 {
		t.Errorf("two boards held the address for %v", d)
	}
	s.lan.Run(lasts)
	s.lan.Heal()
	s.lan.Board("1").Reprioritise(100, false) // a voter, so that one may lead
	s.heal()
	s.lan.Run(5 * time.Second) // as long as a voter does not count that was there twice
	if _, err := leader(s.lan.Boards()); err != nil {
		t.Errorf("%v", err)
	}
	if d := s.lan.Summarise(0).Doubled; d != 0 {
		t.Errorf("two boards held the address for %v", d)
	}
}
