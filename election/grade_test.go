package election

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"topdog/wire"
)

// graded makes a message tell a grade.
func graded(grade wire.Grade) func(*wire.Message) {
	return func(m *wire.Message) { m.Grade = grade }
}

// told lists the grades that messages tell.
func told(effects []Effect) (grades []wire.Grade) {
	for _, e := range effects {
		if e.Kind == EffectSend {
			grades = append(grades, e.Message.Grade)
		}
	}
	return grades
}

// TestUnfitLeader holds what a leader does when its grade changes: whether it hands over to board 1, of
// lower rank, or to board 3.
func TestUnfitLeader(t *testing.T) {
	const none = wire.Nobody
	for _, test := range []struct {
		name       string
		one, three wire.Grade
		grade      wire.Grade
		successor  wire.ID
	}{
		{"all pass", wire.GradePassing, wire.GradePassing, wire.GradePassing, none},
		{"on probation", wire.GradePassing, wire.GradePassing, wire.GradeProbation, none},
		{"drained", wire.GradePassing, wire.GradePassing, wire.GradeDrained, 3},
		{"failing", wire.GradePassing, wire.GradePassing, wire.GradeFailing, 3},
		{"the first in rank fails too", wire.GradePassing, wire.GradeFailing, wire.GradeFailing, 1},
		{"the first in rank is on probation", wire.GradePassing, wire.GradeProbation, wire.GradeFailing, 1},
		{"the others are on probation", wire.GradeProbation, wire.GradeProbation, wire.GradeFailing, 3},
		{"nobody passes", wire.GradeFailing, wire.GradeFailing, wire.GradeFailing, none},
		{"the others are drained", wire.GradeDrained, wire.GradeDrained, wire.GradeFailing, 3},
		{"all are drained", wire.GradeDrained, wire.GradeDrained, wire.GradeDrained, none},
		{"drained, and the others fail", wire.GradeFailing, wire.GradeFailing, wire.GradeDrained, none},
	} {
		t.Run(test.name, func(t *testing.T) {
			b := newBoard(t)
			b.lead()
			b.hear(1, wire.TypeHello, graded(test.one), following(2))
			b.hear(3, wire.TypeHello, graded(test.three), following(2))
			effects := b.SetGrade(b.clock, test.grade)
			successor := none
			for _, e := range effects {
				if e.Kind == EffectSend && e.Message.Type == wire.TypeResign {
					successor = e.Message.Resign.Successor
				}
			}
			if successor != test.successor {
				t.Errorf("it hands over to %v, want %v: %v", successor, test.successor, described(effects))
			}
			if slices.ContainsFunc(told(effects), func(g wire.Grade) bool { return g != test.grade }) {
				t.Errorf("it tells the grades %v, want %v", told(effects), test.grade)
			}
			if test.grade != wire.GradePassing && len(told(effects)) == 0 {
				t.Error("it tells nobody")
			}
		})
	}
}

// following makes a HELLO say whom its sender follows.
func following(leader wire.ID) func(*wire.Message) {
	return func(m *wire.Message) { m.Hello.Following = leader }
}

// TestYieldsWhenAnotherPasses: nobody passed, so the failing leader went on.
func TestYieldsWhenAnotherPasses(t *testing.T) {
	b := newBoard(t)
	b.lead()
	b.SetGrade(b.clock, wire.GradeFailing)
	b.hear(3, wire.TypeHello, graded(wire.GradeFailing), following(2))
	if got := described(b.sleep(500 * time.Millisecond)); b.role != Leader {
		t.Fatalf("nobody passes, and it does %v", got)
	}
	b.hear(3, wire.TypeHello, graded(wire.GradePassing), following(2))
	got := described(b.sleep(0))
	if want := []string{"release", "leader -> follower: " + ReasonFailing.String(), "RESIGN to all"}; !cmp.Equal(want, got) {
		t.Errorf("when another board passes it does %v, want %v", got, want)
	}
}

// TestYieldsToAJoinedBoardOnly: a board that has only just asked who leads does not know that yet.
func TestYieldsToAJoinedBoardOnly(t *testing.T) {
	b := newBoard(t)
	b.lead()
	b.SetGrade(b.clock, wire.GradeFailing)
	b.hear(3, wire.TypeQuery)
	if b.sleep(0); b.role != Leader {
		t.Fatal("it hands over to a board that listens")
	}
	if b.sleep(b.answerWithin()); b.role != Follower {
		t.Errorf("it does not hand over to a board that must have heard it: %v", b.role)
	}
}

// TestYieldsInVain: a board that passes, and does not take the lead that it is given, must not cost the
// address time and again.
func TestYieldsInVain(t *testing.T) {
	b := newBoard(t)
	b.lead()
	b.SetGrade(b.clock, wire.GradeFailing)
	var got []time.Duration
	for range 6 {
		// Board 3 says HELLO as long as it is led.
		since := b.clock
		for b.role == Leader {
			b.hear(3, wire.TypeHello, following(2))
			b.sleep(100 * time.Millisecond)
		}
		got = append(got, (b.clock - since).Truncate(time.Second))
		for b.role != Leader {
			b.sleep(100 * time.Millisecond)
			b.Probed(b.clock, false)
		}
	}
	want := []time.Duration{0, 2 * time.Second, 4 * time.Second, 8 * time.Second, 16 * time.Second, 16 * time.Second}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("it leads for so long between two handovers (-want +got):\n%s", diff)
	}
	b.hear(3, wire.TypeCoordinator, leading, func(m *wire.Message) { m.Term = b.term + 1 })
	b.SetGrade(b.clock, wire.GradePassing)
	if b.fitness.vain != 0 {
		t.Errorf("another board leads, and it remembers %d handovers in vain", b.fitness.vain)
	}
}

// TestCandidateKeepsItsGrade: two boards that compare themselves compare the same grades.
func TestCandidateKeepsItsGrade(t *testing.T) {
	b := newBoard(t)
	b.sleep(260 * time.Millisecond)
	if b.role != Candidate {
		t.Fatalf("the board is a %v", b.role)
	}
	if got := b.SetGrade(b.clock, wire.GradeFailing); len(got) > 0 {
		t.Errorf("as a candidate it does %v", described(got))
	}
	effects := b.sleep(25 * time.Millisecond)
	if grades := told(effects); len(grades) == 0 || slices.Contains(grades, wire.GradeFailing) {
		t.Errorf("as a candidate it tells the grades %v", grades)
	}
	b.Probed(b.clock, false)
	effects = b.sleep(100 * time.Millisecond)
	if grades := told(effects); b.role != Leader || grades[len(grades)-1] != wire.GradeFailing {
		t.Errorf("as a %v it tells the grades %v", b.role, grades)
	}
}

// TestOnlyWhoPassesAsksForTheLead: neither a board on probation nor a failing one takes the lead from
// a leader of lower rank.
func TestOnlyWhoPassesAsksForTheLead(t *testing.T) {
	for grade := wire.GradePassing; grade <= wire.MaxGrade; grade++ {
		b := newBoard(t, func(c *Config) { c.Preempt = true })
		b.SetGrade(b.clock, grade)
		b.hear(1, wire.TypeHeartbeat, leading, graded(grade)) // a leader that is as fit
		asks := b.following.preempt.set
		if want := grade == wire.GradePassing; asks != want {
			t.Errorf("a board that is %v asks for the lead: %v", grade, asks)
		}

		b = newBoard(t)
		b.lead()
		b.SetGrade(b.clock, wire.GradeProbation)
		b.hear(3, wire.TypeQuery, graded(grade), func(m *wire.Message) { m.Query.Purpose = wire.PurposeHandover })
		if gives := b.role != Leader; gives != (grade == wire.GradePassing) {
			t.Errorf("a leader gives the lead to a board that is %v: %v", grade, gives)
		}
	}
}

// TestPreemptDelay: the board asks for the lead after the configured time, and then at the usual intervals.
func TestPreemptDelay(t *testing.T) {
	for _, test := range []struct{ delay, want time.Duration }{
		{0, 2 * time.Second}, {MinPreemptDelay, MinPreemptDelay}, {5 * time.Minute, 5 * time.Minute},
	} {
		b := newBoard(t, func(c *Config) { c.Preempt, c.PreemptDelay = true, test.delay })
		b.hear(1, wire.TypeHeartbeat, leading)
		if got := b.following.preempt.at - b.clock; got != test.want {
			t.Errorf("with %v it asks after %v, want %v", test.delay, got, test.want)
		}
		b.DelayPreemption(time.Second)
		b.hear(1, wire.TypeHeartbeat, leading, func(m *wire.Message) { m.Incarnation++ })
		if got := b.following.preempt.at - b.clock; got != time.Second {
			t.Errorf("with another delay it asks after %v, want a second", got)
		}
	}
	for _, delay := range []time.Duration{-1, 1, MinPreemptDelay - 1, MaxPreemptDelay + 1} {
		cfg := Config{ID: 2, Priority: 100, Interval: testInterval, Algorithm: wire.AlgorithmHeir, PreemptDelay: delay}
		if _, err := New(cfg, Heir, 0); err == nil {
			t.Errorf("a delay of %v is accepted", delay)
		}
	}
}

// TestResignNeedsAFitBoard: the other board would give the lead back at once.
func TestResignNeedsAFitBoard(t *testing.T) {
	b := newBoard(t)
	b.lead()
	b.hear(3, wire.TypeHello, graded(wire.GradeFailing), following(2))
	if _, err := b.Resign(b.clock); !errors.Is(err, errNobodyFit) {
		t.Errorf("the error is %v, want %v", err, errNobodyFit)
	}
	b.SetGrade(b.clock, wire.GradeFailing)
	if _, err := b.Resign(b.clock); err != nil {
		t.Errorf("all fail, and it does not resign: %v", err)
	}
}

// TestPresignedResignTellsTheGrade: it is signed anew when that changes.
func TestPresignedResignTellsTheGrade(t *testing.T) {
	b := newBoard(t)
	b.lead()
	b.SetGrade(b.clock, wire.GradeProbation)
	if m, _ := b.PresignedResign(); m.Grade != wire.GradeProbation {
		t.Errorf("it tells %v", m.Grade)
	}
}

// TestNoSuchGrade: a grade that does not fit the header is the worst one.
func TestNoSuchGrade(t *testing.T) {
	b := newBoard(t)
	if b.SetGrade(b.clock, wire.MaxGrade+1); b.Signature().Grade != wire.GradeFailing {
		t.Errorf("it tells %v", b.Signature().Grade)
	}
}

// successors lists the successors that RESIGNs name.
func successors(effects []Effect) (ids []wire.ID) {
	for _, e := range effects {
		if e.Kind == EffectSend && e.Message.Type == wire.TypeResign {
			ids = append(ids, e.Message.Resign.Successor)
		}
	}
	return ids
}

// TestNobodyElseIsNamedForNothing: a board that did not run while its successor should have answered gives that one
// the time that it had, and an unfit leader does not hand over to a board that is no fitter.
func TestNobodyElseIsNamedForNothing(t *testing.T) {
	for _, test := range []struct {
		name  string
		one   wire.Grade
		stood time.Duration // still, after the first RESIGN
		want  wire.ID       // in the end
	}{
		{"the successor does not answer", wire.GradePassing, 0, 1},
		{"this board stood still", wire.GradePassing, 40 * time.Millisecond, 3},
		{"the other board is not fitter", wire.GradeFailing, 0, 3},
	} {
		b := newBoard(t)
		b.lead()
		b.hear(1, wire.TypeHello, graded(test.one), following(2))
		b.hear(3, wire.TypeHello, following(2))
		got := successors(b.SetGrade(b.clock, wire.GradeFailing))
		b.clock += test.stood
		got = append(got, successors(b.Wake(b.clock))...)
		got = append(got, successors(b.sleep(max(0, 30*time.Millisecond-test.stood)))...)
		if got[0] != 3 || got[len(got)-1] != test.want {
			t.Errorf("%s: it names %v, want %v in the end", test.name, got, test.want)
		}
	}
}

// TestResignIsGivenBack: the others fail, and a board that is drained is fitter than they are.
func TestResignIsGivenBack(t *testing.T) {
	b := newBoard(t)
	b.lead()
	b.hear(3, wire.TypeHello, graded(wire.GradeFailing), following(2))
	b.SetGrade(b.clock, wire.GradeDrained)
	if _, err := b.Resign(b.clock); !errors.Is(err, errNobodyFit) {
		t.Errorf("the error is %v, want %v", err, errNobodyFit)
	}
}

// TestVainIsForgotten: a board that has passed for an hour hands over at once when it fails again, whatever was in vain before.
func TestVainIsForgotten(t *testing.T) {
	b := newBoard(t)
	b.lead()
	b.SetGrade(b.clock, wire.GradeFailing)
	for range 5 {
		for b.role == Leader {
			b.hear(3, wire.TypeHello, following(2))
			b.sleep(100 * time.Millisecond)
		}
		for b.role != Leader {
			b.sleep(100 * time.Millisecond)
			b.Probed(b.clock, false)
		}
	}
	b.SetGrade(b.clock, wire.GradePassing)
	for range 3600 {
		b.hear(3, wire.TypeHello, following(2))
		b.sleep(time.Second)
	}
	b.SetGrade(b.clock, wire.GradeFailing)
	if b.role == Leader {
		t.Errorf("it hands over only after %v", b.leading.yield.at-b.clock)
	}
}
