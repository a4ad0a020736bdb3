package sim_test

import (
	"testing"
	"time"

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
	{"restart all", func(s *schedule, _ *sim.Board) { each(s.lan, func(b *sim.Board) { b.Crash(); b.Start() }) }},
	{"split", func(s *schedule, _ *sim.Board) {
		var part []wire.ID
		for _, b := range s.lan.Boards() {
			if s.rng.IntN(2) == 0 {
				part = append(part, b.Config.ID)
			}
		}
		s.parts.split(s.lan, part)
	}},
	{"join", func(s *schedule, _ *sim.Board) { s.parts.join(s.lan) }},
	{"join", func(s *schedule, _ *sim.Board) { s.parts.join(s.lan) }},
	{"mute for a moment", func(s *schedule, b *sim.Board) {
		mute(s.lan, b)
		s.lan.At(time.Duration(s.rng.Int64N(int64(2*interval))), func() { unmute(s.lan, b) })
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
		Delay: sim.Uniform(100*time.Microsecond, 100*time.Microsecond+time.Duration(of.Int64N(int64(30*time.Millisecond)))),
		Loss:  float64(of.IntN(4)) / 10, Duplicate: float64(of.IntN(3)) / 10,
		Reorder: float64(of.IntN(3)) / 10, HoldBack: time.Duration(of.Int64N(int64(200 * time.Millisecond))),
	}
}

// newStrict makes a schedule of 1 to 7 boards, of which some may be no voters, and one may be a
// witness. No two clocks run at the same rate, and the greatest difference is what
// strict allows.
func newStrict(t tester, seed uint64, rng luck, w sim.Wire) *schedule {
	t.Helper()
	s := emptySchedule(t, seed, rng, variant{algorithm: wire.AlgorithmStrict}, w)
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
			Interval: interval, Algorithm: wire.AlgorithmStrict, Voters: voters, Several: id%2 == 0,
		})
		b.Clock = sim.Clock{Origin: time.Hour + time.Duration(id)*time.Minute, PPM: clockError * (rng.IntN(3) - 1)}
		s.lan.At(time.Duration(s.rng.Int64N(int64(time.Second))), b.Start)
	}
	return s
}

// strictly holds the property of strict with its faults, on any wire. Its variant draws nothing.
func strictly(t *testing.T, property property) {
	t.Helper()
	property.hold(t, wire.AlgorithmStrict, drawNothing, 20, nil)
}

// TestStrictNeverTwoHolders plays all kinds of faults at once, on any wire. Soon after the last
// one there is one leader, and the address.
func TestStrictNeverTwoHolders(t *testing.T) {
	strictly(t, func(t tester, seed uint64, rng, of luck, _ variant) {
		s := newStrict(t, seed, rng, harshWire(of))
		s.strictHeals(t, harsh, 0)
	})
}

// strictHeals is the property. What a fault has begun lasts for some time after the last one.
func (s *schedule) strictHeals(t tester, faults []fault, lasts time.Duration) {
	t.Helper()
	s.harshness(faults, time.Duration(1+14*s.rng.IntN(2))*20*time.Millisecond)
	s.neverTwo(t, 0)
	s.lan.Run(lasts)
	s.healStrict()
	if _, err := leader(s.lan.Boards()); err != nil {
		t.Errorf("%v", err)
	}
	s.neverTwo(t, 0)
}

// healStrict ends all faults, and lets one board lead.
func (s *schedule) healStrict() {
	s.parts.join(s.lan)
	s.lan.Board("1").Reprioritise(100, false) // a voter
	s.heal()
	s.lan.Run(5 * time.Second) // as long as a voter does not count that was there twice
}
