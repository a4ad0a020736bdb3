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
	everyAlgorithm(t, heals(unfit(silent), rebootsWithin), nil)
}

func TestUnfitComponents(t *testing.T) { everyAlgorithm(t, components(unfit(clean)), nil) }

// TestUnfitNeverTwoHolders: a service that fails or comes back makes no second holder. With algorithms in which a
// board claims that knows of none before it, two may claim while the message is on its way that says
// which of them has become unfit: until they hear each other.
func TestUnfitNeverTwoHolders(t *testing.T) {
	everyAlgorithm(t, func(t tester, seed uint64, rng, of luck, v variant) {
		most := answeredWithin
		if v.algorithm == wire.AlgorithmHeir {
			most = 0
		}
		neverTwoHolders(unfit(clean), 0, most)(t, seed, rng, of, v)
	}, nil)
}

// TestUnfitStays: services that come and go on followers do not move the address, nor
// do those on all boards once nobody passes.
func TestUnfitStays(t *testing.T) {
	everyAlgorithm(t, func(t tester, seed uint64, rng, _ luck, v variant) {
		s := newSchedule(t, seed, rng, v, quick)
		each(s.lan, func(b *sim.Board) { b.Grade = wire.GradeFailing })
		s.staysPut(t, func() {}, func(before *sim.Board) {
			if b := s.any(); b != before {
				b.SetGrade(wire.GradeFailing)
			} else {
				regrade(s, b)
			}
		}, func() { s.lan.Run(5 * time.Second) })
	}, nil)
}

// TestUnfitStrict: nor do two boards hold the address with votes, on any wire.
func TestUnfitStrict(t *testing.T) {
	strictly(t, func(t tester, seed uint64, rng, of luck, _ variant) {
		s := newStrict(t, seed, rng, harshWire(of))
		for range 5 + s.rng.IntN(40) {
			s.lan.Run(time.Duration(s.rng.ExpFloat64() * float64(100*time.Millisecond)))
			if s.rng.IntN(3) == 0 {
				regrade(s, s.any())
			} else {
				harsh[s.rng.IntN(len(harsh))].do(s, s.any())
			}
		}
		s.neverTwo(t, 0)
		s.healStrict()
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
