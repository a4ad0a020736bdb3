package literature

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"topdog/election"
	"topdog/wire"
)

// scores lists what the messages among effects tell of their sender's score.
func scores(effects []election.Effect) (told []uint32) {
	for _, e := range effects {
		if e.Kind != election.EffectSend {
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

// TestScoreSources holds which scores boards tell, from each source: in three
// HELLOs while they listen, in the ELECTION, in two HELLOs before the deadline, and in the
// COORDINATOR.
func TestScoreSources(t *testing.T) {
	for _, test := range []struct {
		source election.ScoreSource
		want   []uint32
	}{
		{election.ScoreFromPriority, []uint32{100, 100, 100, 100, 100, 100, 100}},
		// It is 2.36 s old at the election, but has last said so at 2 s, and is not older while
		// that lasts.
		{election.ScoreFromAge, []uint32{0, 1, 2, 2, 2, 2, 2}},
		{election.ScoreFromCommand, []uint32{0, 9, 9, 9, 9, 9, 9, 9}}, // the second one is told at once
	} {
		b := newBoard(t, wire.AlgorithmScore, func(c *election.Config) { c.ScoreSource = test.source })
		got := scores(b.sleep(10 * time.Millisecond))
		got = append(got, scores(b.SetScore(b.clock, 9))...)
		got = append(got, scores(b.sleep(b.listenWindow()+scoreDeadline-10*time.Millisecond))...)
		got = append(got, scores(b.Probed(b.clock, false))...)
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%v: -want +got:\n%s", test.source, diff)
		}
		if b.Role() != election.Leader {
			t.Errorf("%v: the board is a %v", test.source, b.Role())
		}
	}
}

// TestOthersTellNoScore: messages of other algorithms tell no score.
func TestOthersTellNoScore(t *testing.T) {
	b := newBoard(t, wire.AlgorithmHeir, func(c *election.Config) { c.ScoreSource = election.ScoreFromCommand })
	if effects := b.SetScore(b.clock, 9); len(scores(effects)) > 1 {
		t.Errorf("a number that nobody compares was told: %v", described(effects))
	}
	for _, n := range scores(b.sleep(2 * time.Second)) {
		if n != 0 {
			t.Errorf("heir tells a score of %d", n)
		}
	}
}

// TestSetOnlyFromCommand: a score that the owner sets is nothing to other sources,
// and the same number again is no news.
func TestSetOnlyFromCommand(t *testing.T) {
	for source, want := range map[election.ScoreSource][]string{
		election.ScoreFromPriority: nil, election.ScoreFromAge: nil, election.ScoreFromCommand: {"HELLO to all"},
	} {
		b := newScoreBoard(t, source)
		if diff := cmp.Diff(want, sets(77)(b)); diff != "" {
			t.Errorf("%v: -want +got:\n%s", source, diff)
		}
		if got := sets(77)(b); got != nil {
			t.Errorf("%v: the same number again made it do %v", source, got)
		}
	}
}

// TestLearnScore: each message that tells a score is believed, and a new
// process begins with none.
func TestLearnScore(t *testing.T) {
	b := newScoreBoard(t, election.ScoreFromPriority)
	for _, test := range []struct {
		name   string
		kind   wire.Type
		change func(*wire.Message)
		want   uint32
		known  bool
	}{
		{"nothing yet", wire.TypeQuery, func(*wire.Message) {}, 0, false},
		{"HELLO", wire.TypeHello, tellingScore(7), 7, true},
		{"what tells none", wire.TypeAnswer, func(*wire.Message) {}, 7, true},
		{"ELECTION", wire.TypeElection, withScore(8), 8, true},
		{"COORDINATOR", wire.TypeCoordinator, elected(9), 9, true},
		{"COORDINATOR for another board", wire.TypeCoordinator, func(m *wire.Message) {
			elected(1)(m)
			m.Coordinator.Coordinator = 1
		}, 9, true},
		{"restarted", wire.TypeQuery, func(m *wire.Message) { m.Incarnation++ }, 0, false},
	} {
		b.hears(3, test.kind, test.change)
		p, _ := b.Peer(3)
		if p.Score != test.want || p.ScoreKnown != test.known {
			t.Errorf("%s: the score is %d, known: %v; want %d, %v", test.name, p.Score, p.ScoreKnown, test.want, test.known)
		}
	}
}

// TestScoreFromPriority: with that source a change of the priority is one of the score.
func TestScoreFromPriority(t *testing.T) {
	b := newScoreBoard(t, election.ScoreFromPriority)
	if got := scores(b.Reprioritise(b.clock, 42, false)); !cmp.Equal(got, []uint32{42}) {
		t.Errorf("tells %v, want 42", got)
	}
}

// TestAboveByScore: the score comes before the id, and priority counts for nothing.
func TestAboveByScore(t *testing.T) {
	c := newScoreBoard(t, election.ScoreFromCommand).Core
	for _, test := range []struct {
		a, b election.Rank
		want bool
	}{
		{election.Rank{Score: 2, ID: 1, Priority: 1}, election.Rank{Score: 1, ID: 2, Priority: 200}, true},
		{election.Rank{Score: 1, ID: 2, Priority: 200}, election.Rank{Score: 2, ID: 1, Priority: 1}, false},
		{election.Rank{Score: 1, ID: 2, Priority: 1}, election.Rank{Score: 1, ID: 1, Priority: 200}, true},
		{election.Rank{Score: 1, ID: 1}, election.Rank{Score: 1, ID: 1}, false},
	} {
		if got := c.Above(test.a, test.b); got != test.want {
			t.Errorf("score %d id %d above score %d id %d: %v", test.a.Score, test.a.ID, test.b.Score, test.b.ID, got)
		}
	}
}
