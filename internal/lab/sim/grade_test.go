package sim_test

import (
	"testing"
	"time"

	"topdog/internal/lab/sim"
	"topdog/wire"
)

// The tests in this file play schedules in which services die and come back, so that any subset of
// the boards is unfit to lead. What must be true of boards that are all fit must be true of these
// too; and where there is a fitter board, no unfit one leads in the end.

// regrade changes how fit a board is. Services fail as often as they work.
func regrade(s *schedule, b *sim.Board) {
	if s.rng.IntN(2) == 0 {
		b.SetGrade(wire.GradePassing)
		return
	}
	b.SetGrade(wire.Grade(s.rng.IntN(int(wire.MaxGrade) + 1)))
}

// unfit adds the changes of grades to other faults, so that every third one is such a change.
func unfit(faults []fault) []fault {
	all := append([]fault(nil), faults...)
	for range len(faults)/2 + 1 {
		all = append(all, fault{"grade", regrade})
	}
	return all
}

func TestUnfitHeals(t *testing.T) {
	everyAlgorithm(t, nil, heals(unfit(silent), rebootsWithin))
}

func TestUnfitComponents(t *testing.T) { everyAlgorithm(t, nil, components(unfit(clean))) }

// TestUnfitNeverTwoHolders: a service that fails or comes back makes no second holder. With algorithms in which a
// board claims that knows of none before it, two may claim while the message is on its way that says
// which of them has become unfit: until they hear each other.
func TestUnfitNeverTwoHolders(t *testing.T) {
	everyAlgorithm(t, nil, func(t tester, seed uint64, rng, of luck, v variant) {
		most := answeredWithin
		if v.algorithm == wire.AlgorithmHeir {
			most = 0
		}
		neverTwoHolders(unfit(clean), 0, most)(t, seed, rng, of, v)
	})
}

// TestUnfitStays: services that come and go on followers do not move the address, nor
// do those on all boards once nobody passes.
func TestUnfitStays(t *testing.T) {
	everyAlgorithm(t, nil, func(t tester, seed uint64, rng, _ luck, v variant) {
		s := newSchedule(t, seed, rng, v, sim.Wire{Latency: 200 * time.Microsecond})
		for _, b := range s.lan.Boards() {
			b.Grade = wire.GradeFailing
		}
		s.heal()
		s.lan.Run(5 * time.Second) // as long as a board that preempts takes to ask
		before, err := agreed(s.lan, s.lan.Boards())
		if err != nil {
			t.Fatalf("nobody passes: %v", err)
		}
		since := s.lan.Now()
		for range 5 + s.rng.IntN(20) {
			s.lan.Run(time.Duration(s.rng.ExpFloat64() * float64(300*time.Millisecond)))
			if b := s.any(); b != before {
				b.SetGrade(wire.GradeFailing)
			} else {
				regrade(s, b)
			}
		}
		s.lan.Run(5 * time.Second)
		if after, err := agreed(s.lan, s.lan.Boards()); err != nil || after != before {
			t.Fatalf("nobody else passes, and the leader changes from %v to %v (%v)", before, after, err)
		}
		if moves := s.lan.Summarise(since).Moves; moves != 0 {
			t.Errorf("the address moved %d times for nothing", moves)
		}
	})
}

// TestUnfitStrict: nor do two boards hold the address with votes, on any wire.
func TestUnfitStrict(t *testing.T) {
	strictSchedules(t, func(t tester, seed uint64, rng, of luck) {
		s := newStrict(t, seed, rng, harshWire(of))
		for range 5 + s.rng.IntN(40) {
			s.lan.Run(time.Duration(s.rng.ExpFloat64() * float64(100*time.Millisecond)))
			if s.rng.IntN(3) == 0 {
				regrade(s, s.any())
			} else {
				harsh[s.rng.IntN(len(harsh))].do(s, s.any())
			}
		}
		if d := s.lan.Summarise(0).Doubled; d != 0 {
			t.Errorf("two boards held the address for %v", d)
		}
		s.lan.Heal()
		s.lan.Board("1").Reprioritise(100, false) // a voter, so that one may lead
		s.heal()
		s.lan.Run(5 * time.Second) // as long as a voter does not count that was there twice
		lead, err := leader(s.lan.Boards())
		if err != nil {
			t.Fatal(err)
		}
		for _, b := range s.lan.Boards() {
			if b.Grade < lead.Grade && lead.Grade >= wire.GradeDrained && mayLead(b) {
				t.Errorf("board %s leads and is %v, and board %s is %v", lead.Label, lead.Grade, b.Label, b.Grade)
			}
		}
	})
}

// mayLead reports whether a board of strict may lead.
func mayLead(b *sim.Board) bool {
	s, ok := b.Status()
	return ok && s.Rank.Eligible()
}
