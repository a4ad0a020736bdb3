package sim_test

import (
	"slices"
	"testing"
	"time"

	"topdog/election"
	"topdog/internal/lab/sim"
	"topdog/wire"
)

// The tests in this file make up schedules of faults for boards that have a second path. Each is a test of its own, so that what was
// recorded of the others still is what it was.
//
//	go test ./internal/lab/sim -run SecondPathRandom -rapid.checks=10000

// secondPath is what has happened to the second path of a schedule.
type secondPath struct {
	*schedule
	deaf, unheard map[*sim.Board]bool
	part          map[*sim.Board]bool
	parts         parts // of the first path
}

// secondFault is something that happens to the second path, or to the first.
type secondFault struct {
	name string
	do   func(s *secondPath, b *sim.Board)
}

// first are faults of the other tests.
func first(faults []fault) (all []secondFault) {
	for _, f := range faults {
		all = append(all, secondFault{f.name, func(s *secondPath, b *sim.Board) { f.do(s.schedule, b) }})
	}
	return all
}

// ofSecond are faults of the second path alone.
var ofSecond = []secondFault{
	{"its second path is dead", func(s *secondPath, b *sim.Board) { s.deaf[b], s.unheard[b] = true, true }},
	{"it hears nothing by the second path", func(s *secondPath, b *sim.Board) { s.deaf[b] = true }},
	{"it is not heard by the second path", func(s *secondPath, b *sim.Board) { s.unheard[b] = true }},
	{"its second path is well", func(s *secondPath, b *sim.Board) { s.deaf[b], s.unheard[b] = false, false }},
	{"its second path is well", func(s *secondPath, b *sim.Board) { s.deaf[b], s.unheard[b] = false, false }},
	{"all second paths are dead", func(s *secondPath, _ *sim.Board) {
		each(s.lan, func(b *sim.Board) { s.deaf[b] = true })
	}},
	{"all second paths are well", func(s *secondPath, _ *sim.Board) { s.wellBySecond() }},
	{"all second paths are well", func(s *secondPath, _ *sim.Board) { s.wellBySecond() }},
	{"the second path falls in two", func(s *secondPath, _ *sim.Board) {
		each(s.lan, func(b *sim.Board) { s.part[b] = s.rng.IntN(2) == 0 })
	}},
	{"the second path flaps", func(s *secondPath, b *sim.Board) {
		for i := range 2 * (1 + s.rng.IntN(10)) {
			s.lan.At(time.Duration(i)*time.Duration(1+s.rng.IntN(100))*time.Millisecond, func() { s.deaf[b] = i%2 == 0 })
		}
	}},
	{"the second path is slow", func(s *secondPath, _ *sim.Board) {
		s.lan.Second.Wire.Delay = sim.Uniform(time.Millisecond, time.Duration(2+s.rng.IntN(150))*time.Millisecond)
	}},
	{"the second path is quick", func(s *secondPath, _ *sim.Board) { s.lan.Second.Wire.Delay = quick.Delay }},
	{"the second path loses", func(s *secondPath, _ *sim.Board) { s.lan.Second.Wire.Loss = float64(s.rng.IntN(5)) / 10 }},
}

// ofGroup are faults of the first path, and of boards, that no other test has in this form.
var ofGroup = []secondFault{
	{"the LAN falls in two", func(s *secondPath, _ *sim.Board) { s.split() }},
	{"the LAN falls in two", func(s *secondPath, _ *sim.Board) { s.split() }},
	{"the LAN is one", func(s *secondPath, _ *sim.Board) { s.parts.join(s.lan) }},
	{"the LAN is one", func(s *secondPath, _ *sim.Board) { s.parts.join(s.lan) }},
	{"restart", func(_ *secondPath, b *sim.Board) { b.Crash(); b.Start() }},
	{"the leader's port is silent", func(s *secondPath, _ *sim.Board) { s.toLeader(mute) }},
	{"the leader is not heard", func(s *secondPath, _ *sim.Board) { s.toLeader(unheard) }},
	{"the leader hears nothing", func(s *secondPath, _ *sim.Board) { s.toLeader(deaf) }},
	{"the leader's cable is pulled", func(s *secondPath, _ *sim.Board) { s.toLeader(func(_ *sim.Sim, b *sim.Board) { b.Pull() }) }},
	{"the leader crashes", func(s *secondPath, _ *sim.Board) { s.toLeader(func(_ *sim.Sim, b *sim.Board) { b.Crash() }) }},
	{"drain", func(_ *secondPath, b *sim.Board) { b.SetGrade(wire.GradeDrained) }},
	{"undrain", func(_ *secondPath, b *sim.Board) { b.SetGrade(wire.GradePassing) }},
}

// awake are the faults of whole ports, without boards that stand still.
var awake = slices.DeleteFunc(slices.Clone(whole), func(f fault) bool { return f.name == "freeze" })

// toLeader does something to a board that leads.
func (s *secondPath) toLeader(do func(*sim.Sim, *sim.Board)) {
	if lead := leading(s.lan); len(lead) > 0 {
		do(s.lan, lead[0])
	}
}

func (s *secondPath) split() {
	var part []wire.ID
	for _, b := range s.lan.Boards() {
		if s.rng.IntN(2) == 0 {
			part = append(part, b.Config.ID)
		}
	}
	s.parts.split(s.lan, part)
}

// wellBySecond ends what has befallen the second path, but for its delay and its loss.
func (s *secondPath) wellBySecond() {
	clear(s.deaf)
	clear(s.unheard)
	clear(s.part)
}

// withSecond gives the boards of a schedule a second path: all, or some.
func withSecond(s *schedule, mixed bool) *secondPath {
	p := &secondPath{schedule: s, deaf: map[*sim.Board]bool{}, unheard: map[*sim.Board]bool{}, part: map[*sim.Board]bool{}}
	each(s.lan, func(b *sim.Board) { b.Config.SecondPath = !mixed || s.rng.IntN(2) == 0 })
	s.lan.Second.Wire = quick
	s.lan.Second.Cut = func(from, to *sim.Board) bool { return p.unheard[from] || p.deaf[to] || p.part[from] != p.part[to] }
	return p
}

// misfortune lets some seconds pass in which faults happen.
func (s *secondPath) misfortune(every time.Duration, faults ...[]secondFault) {
	all := slices.Concat(faults...)
	for range 5 + s.rng.IntN(25) {
		s.lan.Run(time.Duration(s.rng.ExpFloat64() * float64(every)))
		f := all[s.rng.IntN(len(all))]
		b := s.any()
		if s.lan.Trace != nil {
			s.lan.Trace(sim.Event{At: s.lan.Now(), Kind: sim.EventFault, Board: b, State: b.State(), What: f.name})
		}
		f.do(s, b)
	}
}

// heal ends all faults of both paths.
func (s *secondPath) heal() {
	s.wellBySecond()
	s.lan.Second.Wire = quick
	s.parts.join(s.lan)
	each(s.lan, func(b *sim.Board) { b.SetGrade(wire.GradePassing) })
	s.schedule.heal()
}

// TestSecondPathRandomHeals plays all kinds of faults of both paths. However bad it was, soon after the last one there is one leader,
// all follow it, and it alone holds the address; from then on the LAN is quiet.
func TestSecondPathRandomHeals(t *testing.T) {
	for _, mixed := range []bool{false, true} {
		property(func(t tester, seed uint64, rng, of luck, v variant) {
			s := withSecond(newSchedule(t, seed, rng, v, randomWire(of)), mixed)
			s.misfortune(300*time.Millisecond, first(silent), ofGroup, ofSecond, ofSecond)
			witness(s.lan, true)
			s.lan.Run(rebootsWithin)
			healed := s.lan.Now()
			s.heal()
			if d := s.lan.Summarise(healed).Doubled; d > 2*interval {
				t.Errorf("two boards held the address for %v after the faults had ended", d)
			}
			lead, err := agreed(s.lan, s.lan.Boards())
			if err != nil {
				t.Fatal(err)
			}
			biggest(t, s.lan.Boards(), lead, v)
			quiet(t, s.lan, v)
		}).hold(t, wire.AlgorithmHeir, drawDrift, 0, nil)
	}
}

// TestSecondPathRandomNeverTwoReached is TestNeverTwoReached with a second path. Where multicast is lost, a follower that hears its
// leader by the second path asks it once a second on the first, so the leader learns a second later that it must broadcast.
func TestSecondPathRandomNeverTwoReached(t *testing.T) {
	for _, mixed := range []bool{false, true} {
		property(func(t tester, seed uint64, rng, _ luck, v variant) {
			s := withSecond(newSchedule(t, seed, rng, v, quick), mixed)
			s.misfortune(300*time.Millisecond, first(whole), ofSecond)
			s.heal()
			if _, err := agreed(s.lan, s.lan.Boards()); err != nil {
				t.Errorf("%v", err)
			}
			most := time.Second + election.SecondPathEvery + interval + answeredWithin + s.unending
			if d := s.lan.Summarise(0).Twice; d > most {
				t.Errorf("two boards with the address could be reached for %v, want at most %v", d, most)
			}
		}).hold(t, wire.AlgorithmHeir, drawDrift, 0, nil)
	}
}

// TestSecondPathRandomOneHolder plays faults of the first path, splits among them, while the second path lives: at no instant do two
// boards hold the address. A board that stands still answers by no path, so none does.
func TestSecondPathRandomOneHolder(t *testing.T) {
	property(func(t tester, seed uint64, rng, _ luck, v variant) {
		s := withSecond(newSchedule(t, seed, rng, v, quick), false)
		s.lan.Run(4 * time.Second)
		since := s.lan.Now()
		s.misfortune(600*time.Millisecond, first(awake), ofGroup)
		s.heal()
		if _, err := agreed(s.lan, s.lan.Boards()); err != nil {
			t.Errorf("%v", err)
		}
		if d := s.lan.Summarise(since).Doubled; d > 0 {
			t.Errorf("two boards held the address for %v", d)
		}
	}).hold(t, wire.AlgorithmHeir, drawDrift, 0, nil)
}

// TestSecondPathRandomStays disturbs a group so that nothing must move: the second path in any way, and the first one where the
// leader keeps somebody to hear.
func TestSecondPathRandomStays(t *testing.T) {
	for _, mixed := range []bool{false, true} {
		property(func(t tester, seed uint64, rng, _ luck, v variant) {
			s := withSecond(newSchedule(t, seed, rng, v, quick), mixed)
			s.staysPut(t, func() {}, func(stays *sim.Board) {
				f := ofSecond[s.rng.IntN(len(ofSecond))]
				f.do(s, s.any())
			}, s.heal)
		}).hold(t, wire.AlgorithmHeir, drawDrift, 0, nil)
	}
}

// TestSecondPathRandomSplit splits the first path alone, so that the leader still hears somebody there, or stops it altogether:
// nothing moves, and nobody else holds the address.
func TestSecondPathRandomSplit(t *testing.T) {
	property(func(t tester, seed uint64, rng, _ luck, v variant) {
		s := withSecond(newSchedule(t, seed, rng, v, quick), false)
		var since election.Instant
		s.staysPut(t, func() { since = s.lan.Now() }, func(stays *sim.Board) {
			part := []wire.ID{stays.Config.ID}
			for _, b := range s.lan.Boards() {
				if b != stays && (len(part) == 1 || s.rng.IntN(2) == 0) {
					part = append(part, b.Config.ID)
				}
			}
			if s.rng.IntN(3) == 0 {
				s.parts.join(s.lan)
			} else {
				s.parts.split(s.lan, part)
			}
			// A switch that forwards only when the others ask, and not when the leader does, moves the address rightly.
			s.lan.Run(50 * time.Millisecond)
		}, s.heal)
		if d := s.lan.Summarise(since).Doubled; d > 0 {
			t.Errorf("two boards held the address for %v", d)
		}
	}).hold(t, wire.AlgorithmHeir, drawDrift, 0, nil)
}

// TestSecondPathRandomStrict plays all kinds of faults of both paths with strict: at no instant do two boards hold the address, and
// soon after the last fault there is one leader.
func TestSecondPathRandomStrict(t *testing.T) {
	for _, mixed := range []bool{false, true} {
		strictly(t, func(t tester, seed uint64, rng, of luck, _ variant) {
			s := withSecond(newStrict(t, seed, rng, harshWire(of)), mixed)
			s.misfortune(time.Duration(1+14*s.rng.IntN(2))*20*time.Millisecond, first(harsh), ofGroup, ofSecond, ofSecond)
			s.neverTwo(t, 0)
			s.wellBySecond()
			s.lan.Second.Wire = quick
			s.parts.join(s.lan)
			each(s.lan, func(b *sim.Board) { b.SetGrade(wire.GradePassing) })
			s.healStrict()
			if _, err := leader(s.lan.Boards()); err != nil {
				t.Errorf("%v", err)
			}
			s.neverTwo(t, 0)
		})
	}
}
