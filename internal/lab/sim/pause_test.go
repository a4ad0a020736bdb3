package sim_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"topdog/election"
	"topdog/election/silence"
	"topdog/internal/lab/assert"
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
	everyAlgorithm(t, heals(pausing(unfit(silent)), rebootsWithin+pausesEnd), nil)
}

// TestPausedNeverTwoHolders: a pause, and its end, make no second holder. When a pause ends, the boards that preempt
// have their turns, so it ends before the boards are to agree.
func TestPausedNeverTwoHolders(t *testing.T) {
	everyAlgorithm(t, neverTwoHolders(pausing(clean), pausesEnd, 0), nil)
}

// TestPausedStays: during a pause nobody leads but the board that led, whatever happens to it, to the
// services and to the links.
func TestPausedStays(t *testing.T) {
	everyAlgorithm(t, func(t tester, seed uint64, rng, _ luck, v variant) {
		s := newSchedule(t, seed, rng, v, quick)
		s.staysPut(t, func() {
			if err := s.any().Pause(time.Hour); err != nil {
				t.Fatal(err)
			}
			s.lan.Run(answeredWithin) // all have heard of it
		}, func(stays *sim.Board) {
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
		}, func() { s.lan.Run(3 * time.Second); s.heal() })
	}, nil)
}

// TestPausedLeaderStandsStill: during a pause the address is back as soon as the leader goes on that stood still for longer
// than its lease, and has asked, since nobody else may claim. That its switch has spoken for it, or that all others have
// the higher rank, does not matter.
func TestPausedLeaderStandsStill(t *testing.T) {
	for _, algorithm := range []wire.Algorithm{wire.AlgorithmHeir, wire.AlgorithmStrict} {
		for _, h := range []time.Duration{election.MinInterval, interval, election.MaxInterval} {
			for _, withSwitch := range []bool{false, true} {
				for _, lowest := range []bool{false, true} {
					t.Run(fmt.Sprintf("%v/H=%v/switch=%v/lowest=%v", algorithm, h, withSwitch, lowest), func(t *testing.T) {
						change := []func(*election.Config){every(h)}
						if algorithm == wire.AlgorithmStrict {
							change = append(change, voters(3))
						}
						lan := crowd(1, quick, 3, algorithm, change...)
						each(lan, func(b *sim.Board) { b.Switch = withSwitch })
						lan.Run(10*time.Second + 20*h)
						lead := leading(lan)[0]
						if lowest {
							lead.Reprioritise(50, false)
						}
						assert.NoError(t, lead.Pause(time.Hour))
						lan.Run(answeredWithin)
						pause(lan, []*sim.Board{lead}, 3*h)
						since := lan.Now()
						lan.Run(time.Second + 10*h)
						sum := lan.Summarise(since)
						t.Logf("nobody has the address for %v", sum.Vacant)
						// The RESIGN of the switch is sent for 25 ms, and within the grace everybody is asked.
						most := silence.DefaultGrace(h) + 8*time.Millisecond
						if withSwitch {
							most += 25 * time.Millisecond
						}
						if sum.Vacant > most {
							t.Errorf("nobody has the address for %v, want %v at most", sum.Vacant, most)
						}
						if holder(t, lan) != lead || sum.Moves+int(sum.Doubled) > 0 {
							t.Errorf("%v led, and now %v have the address; two had it for %v", lead, labels(sum.Holders), sum.Doubled)
						}
					})
				}
			}
		}
	}
}

// TestUnpausedWhileStandingStill: a leader stands still, its switch speaks for it, and the pause is ended about when the leader goes
// on, which may be told of it or not. It counts on a pause that is over, and makes no second holder.
func TestUnpausedWhileStandingStill(t *testing.T) {
	for _, told := range []bool{true, false} {
		for before := -40 * time.Millisecond; before < 70*time.Millisecond; before += 100 * time.Microsecond {
			lan := crowd(1, quick, 3, wire.AlgorithmHeir)
			each(lan, func(b *sim.Board) { b.Switch = true })
			play(t, lan, "run 5s; pause 1 1h; run 1ms")
			one, lead := lan.Board("1"), lan.Board("3")
			since := lan.Now()
			lan.At(3*interval-before, func() {
				if !told {
					lose(lan, one, wire.TypePause, 1, lead)
				}
				assert.NoError(t, one.Unpause())
			})
			pause(lan, []*sim.Board{lead}, 3*interval)
			lan.Run(2 * time.Second)
			if s := lan.Summarise(since); s.Doubled > 0 || len(s.Holders) != 1 {
				t.Errorf("unpaused %v before the leader goes on, which is told: %v; two hold the address for %v; in the end %v do",
					before, told, s.Doubled, s.Holders)
			}
		}
	}
}

// standing adds boards that stand still to other faults, mostly the leader, and for about as long as its lease lasts. It is one at
// a time: a successor that stands still while it is named is another matter.
func standing(faults []fault) []fault {
	return append([]fault{{"stand still", func(s *schedule, b *sim.Board) {
		if lead := leading(s.lan); len(lead) > 0 && s.rng.IntN(4) > 0 {
			b = lead[0]
		}
		alone := b.Holding() && !b.LeaseEnds() // it knows of nobody, see TestNeverTwoReached
		if alone || slices.ContainsFunc(s.lan.Boards(), (*sim.Board).Frozen) {
			return
		}
		b.Freeze()
		s.lan.At(time.Duration(s.rng.Int64N(int64(3*interval))), b.Thaw)
	}}}, faults...)
}

// TestPausedStandsStillNeverTwoHolders: boards stand still during pauses, and while these begin and end. A leader that
// counts on the pause makes no second holder. Nobody hands over, for the same reason. A board that stands still does not notice that
// its cable is pulled. With a watch another one may then lead before its lease ends, as behind a port that passes nothing, so
// that cables of such boards are pulled only where nobody watches.
func TestPausedStandsStillNeverTwoHolders(t *testing.T) {
	var sudden []fault
	for _, f := range clean {
		switch do := f.do; f.name {
		case "stop", "resign":
			continue
		case "pull":
			f.do = func(s *schedule, b *sim.Board) {
				if !b.Frozen() || b.Config.Watch == election.NoWatch {
					do(s, b)
				}
			}
		}
		sudden = append(sudden, f)
	}
	faults := standing(standing(standing(pausing(sudden))))
	property(func(t tester, seed uint64, rng, _ luck, v variant) {
		s := newSchedule(t, seed, rng, v, quick)
		watch := []time.Duration{0, election.NoWatch}[s.rng.IntN(2)]
		each(s.lan, func(b *sim.Board) { b.Switch, b.Config.Preempt, b.Config.Watch = s.rng.IntN(2) == 0, false, watch })
		s.misfortune(faults)
		s.lan.Run(pausesEnd)
		s.heals(t)
		s.neverTwo(t, 0)
	}).hold(t, wire.AlgorithmHeir, drawDrift, 0, nil)
}

// TestPausedStrictNeverTwoHolders is the same for strict, with all its faults, on any wire.
func TestPausedStrictNeverTwoHolders(t *testing.T) {
	faults := pausing(standing(harsh))
	strictly(t, func(t tester, seed uint64, rng, of luck, _ variant) {
		s := newStrict(t, seed, rng, harshWire(of))
		each(s.lan, func(b *sim.Board) { b.Switch = s.rng.IntN(2) == 0 })
		s.strictHeals(t, faults, pausesEnd)
	})
}

// TestUnpausedWhileHandingOver: a leader stops during a pause, and the pause is ended while it names its successors. None of
// the boards that may lead again claims beside the one that is named.
func TestUnpausedWhileHandingOver(t *testing.T) {
	for after := time.Duration(0); after < 60*time.Millisecond; after += 100 * time.Microsecond {
		lan := crowd(1, quick, 7, wire.AlgorithmHeir)
		play(t, lan, "run 5s; pause 1 1h; run 1ms")
		since := lan.Now()
		play(t, lan, fmt.Sprintf("stop 7; run %v; unpause 1; run 2s", after))
		if s := lan.Summarise(since); s.Doubled > 0 || len(s.Holders) != 1 {
			t.Errorf("unpaused %v after the leader was told to stop: two hold the address for %v; in the end %v do", after, s.Doubled, s.Holders)
		}
	}
}
