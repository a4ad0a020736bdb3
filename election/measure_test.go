package election

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"topdog/wire"
)

// scores lists what the messages among effects tell of their sender's importance.
func scores(effects []Effect) (told []uint32) {
	for _, e := range effects {
		if e.Kind != EffectSend {
			continue
		}
		switch e.Message.Type {
		case wire.TypeHello:
			told = append(told, e.Message.Hello.Score)
		case wire.TypeElection:
			told = append(told, e.Message.Election.Score)
		case wire.TypeCoordinator:
			told = append(told, e.Message.Coordinator.Score)
		}
	}
	return told
}

// TestMeasures holds what boards tell of their importance, by each measure: in three
// HELLOs while they listen, in the ELECTION, in two HELLOs before the deadline, and in the
// COORDINATOR.
func TestMeasures(t *testing.T) {
	for _, test := range []struct {
		measure ScoreSource
		want    []uint32
	}{
		{ScoreFromPriority, []uint32{100, 100, 100, 100, 100, 100, 100}},
		// It is 2.36 s old at the election, but has last said so at 2 s, and is not older while
		// that lasts.
		{ScoreFromAge, []uint32{0, 1, 2, 2, 2, 2, 2}},
		{ScoreFromCommand, []uint32{0, 9, 9, 9, 9, 9, 9, 9}}, // the second one is told at once
	} {
		b := newBoard(t, func(c *Config) {
			c.Algorithm, c.ScoreSource, c.Priority = wire.AlgorithmScore, test.measure, 100
		})
		got := scores(b.sleep(10 * time.Millisecond))
		got = append(got, scores(b.SetScore(b.clock, 9))...)
		got = append(got, scores(b.sleep(b.listenWindow()+scoreDeadline-10*time.Millisecond))...)
		got = append(got, scores(b.Probed(b.clock, false))...)
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%v: -want +got:\n%s", test.measure, diff)
		}
		if b.role != Leader {
			t.Errorf("%v: the board is a %v", test.measure, b.role)
		}
	}
}

// TestOthersDoNotWeigh: messages of other algorithms tell no importance.
func TestOthersDoNotWeigh(t *testing.T) {
	b := newBoard(t, func(c *Config) { c.ScoreSource = ScoreFromCommand })
	if effects := b.SetScore(b.clock, 9); len(scores(effects)) > 1 {
		t.Errorf("a number that nobody compares was told: %v", described(effects))
	}
	for _, n := range scores(b.sleep(2 * time.Second)) {
		if n != 0 {
			t.Errorf("heir tells an importance of %d", n)
		}
	}
}

// TestMeasuredOnlyByCommand: what the owner measures is nothing to other measures,
// and the same number again is no news.
func TestMeasuredOnlyByCommand(t *testing.T) {
	for measure, want := range map[ScoreSource][]string{
		ScoreFromPriority: nil, ScoreFromAge: nil, ScoreFromCommand: {"HELLO to all"},
	} {
		b := newScore(t, measure)
		if diff := cmp.Diff(want, measures(77)(b)); diff != "" {
			t.Errorf("%v: -want +got:\n%s", measure, diff)
		}
		if got := measures(77)(b); got != nil {
			t.Errorf("%v: the same number again made it do %v", measure, got)
		}
	}
}

// TestLearnScore: each message that tells an importance is believed, and a new
// process begins with none.
func TestLearnScore(t *testing.T) {
	b := newScore(t, ScoreFromPriority)
	for _, test := range []struct {
		name    string
		kind    wire.Type
		change  func(*wire.Message)
		want    uint32
		weighed bool
	}{
		{"nothing yet", wire.TypeQuery, func(*wire.Message) {}, 0, false},
		{"HELLO", wire.TypeHello, weighing(7), 7, true},
		{"what tells none", wire.TypeAnswer, func(*wire.Message) {}, 7, true},
		{"ELECTION", wire.TypeElection, electing(8), 8, true},
		{"COORDINATOR", wire.TypeCoordinator, elected(9), 9, true},
		{"COORDINATOR for another board", wire.TypeCoordinator, func(m *wire.Message) {
			elected(1)(m)
			m.Coordinator.Coordinator = 1
		}, 9, true},
		{"restarted", wire.TypeQuery, func(m *wire.Message) { m.Incarnation++ }, 0, false},
	} {
		b.told(3, test.kind, test.change)
		p, _ := b.Peer(3)
		if p.Score != test.want || p.ScoreKnown != test.weighed {
			t.Errorf("%s: the score is %d, known: %v; want %d, %v", test.name, p.Score, p.ScoreKnown, test.want, test.weighed)
		}
	}
}

// TestPriorityIsImportance: with that measure a change of the priority is one of the importance.
func TestPriorityIsImportance(t *testing.T) {
	b := newScore(t, ScoreFromPriority)
	if got := scores(b.Reprioritise(b.clock, 42, false)); !cmp.Equal(got, []uint32{42}) {
		t.Errorf("tells %v, want 42", got)
	}
}

// TestAboveByScore: importance comes before the id, and priority counts for nothing.
func TestAboveByScore(t *testing.T) {
	c := newScore(t, ScoreFromCommand).Core
	for _, test := range []struct {
		a, b Rank
		want bool
	}{
		{Rank{Score: 2, ID: 1, Priority: 1}, Rank{Score: 1, ID: 2, Priority: 200}, true},
		{Rank{Score: 1, ID: 2, Priority: 200}, Rank{Score: 2, ID: 1, Priority: 1}, false},
		{Rank{Score: 1, ID: 2, Priority: 1}, Rank{Score: 1, ID: 1, Priority: 200}, true},
		{Rank{Score: 1, ID: 1}, Rank{Score: 1, ID: 1}, false},
	} {
		if got := c.Above(test.a, test.b); got != test.want {
			t.Errorf("score %d id %d above score %d id %d: %v", test.a.Score, test.a.ID, test.b.Score, test.b.ID, got)
		}
	}
}
