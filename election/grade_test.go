package election

import (
	"testing"
	"time"

	"topdog/internal/lab/assert"
	"topdog/wire"
)

// graded makes a message tell a grade.
func graded(grade wire.Grade) func(*wire.Message) {
	return func(m *wire.Message) { m.Grade = grade }
}

// following makes a HELLO say whom its sender follows.
func following(leader wire.ID) func(*wire.Message) {
	return func(m *wire.Message) { m.Hello.Following = leader }
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
	assert.Equal(t, want, got, "it leads for so long between two handovers")
	b.hear(3, wire.TypeCoordinator, leading, func(m *wire.Message) { m.Term = b.term + 1 })
	b.SetGrade(b.clock, wire.GradePassing)
	if b.fitness.vain != 0 {
		t.Errorf("another board leads, and it remembers %d handovers in vain", b.fitness.vain)
	}
}

// TestOnlyWhoPassesAsksForTheLead: neither a board on probation nor a failing one takes the lead from
// a leader of lower rank.
func TestOnlyWhoPassesAsksForTheLead(t *testing.T) {
	for grade := wire.GradePassing; grade <= wire.MaxGrade; grade++ {
		b := newBoard(t, func(c *Config) { c.Preempt = true })
		b.SetGrade(b.clock, grade)
		b.hear(1, wire.TypeHeartbeat, leading, graded(grade)) // a leader that is as fit
		asks := b.following.preempt.Set
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
		assert.Is(t, test.want, b.following.preempt.At-b.clock, "with %v it asks after", test.delay)
		b.DelayPreemption(time.Second)
		b.hear(1, wire.TypeHeartbeat, leading, func(m *wire.Message) { m.Incarnation++ })
		if got := b.following.preempt.At - b.clock; got != time.Second {
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

// TestPreemptsInOrder: of boards that begin to follow a leader of lower rank at the same time, the first in rank asks
// first, and the next one only when that one might have the lead already.
func TestPreemptsInOrder(t *testing.T) {
	b := newBoard(t, func(c *Config) { c.Preempt = true })
	b.hear(1, wire.TypeHeartbeat, leading)
	began := b.clock
	for b.clock < began+preemptIntervals*testInterval {
		b.sleep(testInterval)
		b.hear(1, wire.TypeHeartbeat, leading)
		b.hear(3, wire.TypeHello, following(1)) // it has joined after board 2
		b.hear(4, wire.TypeHello, following(1))
	}
	assert.Is(t, preemptIntervals*testInterval+2*b.successorTimeout(), b.following.preempt.At-began, "board 2 asks after")
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
		t.Errorf("it hands over only after %v", b.leading.yield.At-b.clock)
	}
}
