package sim_test

import (
	"testing"
	"time"

	"topdog/election"
	"topdog/internal/lab/sim"
	"topdog/wire"
)

// The tests in this file play schedules in which somebody pauses the group.

// pausing adds pauses, and their ends, to other faults.
func pausing(faults []fault) []fault {
	return append([]fault{
		{"pause", func(s *schedule, b *sim.Board) {
			_ = b.Pause(election.MinPause + time.Duration(s.rng.Int64N(int64(3*time.Second)))) // an error if nobody leads
		}},
		{"unpause", func(_ *schedule, b *sim.Board) { _ = b.Unpause() }},
	}, faults...)
}

// pausesEnd is when the last pause that pausing has begun is over.
const pausesEnd = 4 * time.Second

// TestPausedHeals: when the last pause is over, all is as if there had been none.
func TestPausedHeals(t *testing.T) {
	everyAlgorithm(t, nil, heals(pausing(unfit(silent)), rebootsWithin+pausesEnd))
}

// TestPausedNeverTwoHolders: a pause, and its end, make no second holder. When a pause ends, the boards that preempt
// have their turns, so it ends before the boards are to agree.
func TestPausedNeverTwoHolders(t *testing.T) {
	everyAlgorithm(t, nil, neverTwoHolders(pausing(clean), pausesEnd, 0))
}

// TestPausedStays: during a pause nobody leads but the board that led, whatever happens to it, to the
// services and to the links.
func TestPausedStays(t *testing.T) {
	everyAlgorithm(t, nil, func(t tester, seed uint64, rng, _ luck, v variant) {
		s := newSchedule(t, seed, rng, v, sim.Wire{Latency: 200 * time.Microsecond})
		s.heal()
		s.lan.Run(5 * time.Second) // boards that preempt have asked by then
		stays, err := agreed(s.lan, s.lan.Boards())
		if err != nil {
			t.Fatal(err)
		}
		since := s.lan.Now()
		if err := s.any().Pause(time.Hour); err != nil {
			t.Fatal(err)
		}
		s.lan.Run(answeredWithin) // all have heard of it
		for range 5 + s.rng.IntN(20) {
			s.lan.Run(time.Duration(s.rng.ExpFloat64() * float64(300*time.Millisecond)))
			again := time.Duration(s.rng.Int64N(int64(3 * time.Second)))
			switch b := s.any(); s.rng.IntN(3) {
			case 0:
				regrade(s, b)
			case 1:
				b.Pull()
				s.lan.At(again, b.Plug)
			default:
				stays.Stop()
				s.lan.At(again, stays.Start)
			}
		}
		s.lan.Run(3 * time.Second)
		s.heal()
		if after, err := agreed(s.lan, s.lan.Boards()); err != nil || after != stays {
			t.Errorf("board %v led when the pause began, and now %v leads (%v)", stays, after, err)
		}
		if moves := s.lan.Summarise(since).Moves; moves != 0 {
			t.Errorf("the address moved %d times during a pause", moves)
		}
	})
}

// TestUnpausedWhileHandingOver: a leader stops during a pause, and the pause is ended while it names its successors. None of
// the boards that may lead again claims beside the one that is named.
func TestUnpausedWhileHandingOver(t *testing.T) {
	for after := time.Duration(0); after < 60*time.Millisecond; after += 100 * time.Microsecond {
		lan := crowd(wire.AlgorithmHeir, 7)
		lan.Run(5 * time.Second)
		if err := lan.Board("1").Pause(time.Hour); err != nil {
			t.Fatal(err)
		}
		lan.Run(answeredWithin)
		since := lan.Now()
		lan.Board("7").Stop()
		lan.Run(after)
		if err := lan.Board("1").Unpause(); err != nil {
			t.Fatal(err)
		}
		lan.Run(2 * time.Second)
		if s := lan.Summarise(since); s.Doubled > 0 || len(s.Holders) != 1 {
			t.Errorf("unpaused %v after the leader was told to stop: two hold the address for %v; in the end %v do", after, s.Doubled, s.Holders)
		}
	}
}
