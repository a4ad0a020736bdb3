package literature

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"topdog/election"
	"topdog/wire"
)

// of returns board id of boards 1 to 5. Board 5 leads, and has said that 5, 4 and 3 are candidates.
func of(t *testing.T, id wire.ID) *member {
	t.Helper()
	others := slices.DeleteFunc([]wire.ID{1, 2, 3, 4}, func(other wire.ID) bool { return other == id })
	b := newMember(t, wire.AlgorithmCandidates, id, 5, others...)
	b.hears(5, wire.TypeCoordinator, coordinator(5, 5, 4, 3), leading)
	return b
}

// audience returns whom the last ELECTION or QUERY concerned.
func audience(effects []election.Effect) []wire.ID {
	for _, e := range effects {
		if e.Kind == election.EffectSend && (e.Message.Type == wire.TypeElection || e.Message.Type == wire.TypeQuery) {
			return slices.Sorted(slices.Values(e.Audience))
		}
	}
	return nil
}

// TestCandidatesStep1 holds whom a board asks that notices the failure.
func TestCandidatesStep1(t *testing.T) {
	asks := []string{"follower -> candidate: the leader fell silent", "ELECTION to all"}
	claims := []string{"candidate -> leader: nobody answered for the leader", "take", "COORDINATOR to all"}
	for _, test := range []struct {
		name  string
		id    wire.ID
		want  []string
		asked []wire.ID
		// then is what follows when nobody answers
		then      []string
		thenAsked []wire.ID
	}{
		{"1a: an ordinary board", 1, asks, []wire.ID{3, 4, 5}, []string{"ELECTION to all"}, []wire.ID{2}},
		{"1a: the highest ordinary board", 2, asks, []wire.ID{3, 4, 5}, claims, nil},
		{"1b: a candidate", 3, asks, []wire.ID{4, 5}, claims, nil},
		{"1b: the highest candidate that is left", 4, append(asks[:1:1], claims...), nil, []string{"HEARTBEAT to all"}, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			b := of(t, test.id)
			effects := b.Suspect(b.clock)
			same(t, test.want, described(effects))
			if diff := cmp.Diff(test.asked, audience(effects)); diff != "" {
				t.Errorf("asked: -want +got:\n%s", diff)
			}
			effects = b.sleep(testInterval)
			same(t, test.then, described(effects))
			if diff := cmp.Diff(test.thenAsked, audience(effects)); diff != "" {
				t.Errorf("asked then: -want +got:\n%s", diff)
			}
		})
	}
}

// TestCandidatesStep2 holds who answers.
func TestCandidatesStep2(t *testing.T) {
	round := func(n uint8) func(*wire.Message) {
		return func(m *wire.Message) { m.Election.Round = n }
	}
	for _, test := range []struct {
		name  string
		id    wire.ID
		asker wire.ID
		round uint8
		// electing boards hold an election themselves
		electing bool
		want     []string
	}{
		{"a candidate", 4, 1, 1, false, []string{"ANSWER to 1"}},
		{"a candidate, of another one", 4, 3, 1, false, []string{"ANSWER to 3"}},
		{"a candidate, of a higher one", 3, 4, 1, false, nil},
		{"an ordinary board", 2, 1, 1, false, nil},
		{"an ordinary board in the second round", 2, 1, 2, false, []string{"ANSWER to 1"}},
		{"an ordinary board that holds an election itself", 2, 1, 1, true, []string{"ANSWER to 1"}},
		{"a lower one in the second round", 1, 2, 2, false, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			b := of(t, test.id)
			if test.electing {
				b.stand(election.ReasonSilence)
			}
			same(t, test.want, b.hears(test.asker, wire.TypeElection, b.suspecting, round(test.round)))
		})
	}
}

// TestCandidatesStep3: of those that answer the highest is named, with the new candidates.
func TestCandidatesStep3(t *testing.T) {
	b := of(t, 1)
	b.Suspect(b.clock)
	b.hears(3, wire.TypeAnswer)
	b.hears(4, wire.TypeAnswer)
	effects := slices.Clone(b.sleep(testInterval))
	same(t, []string{"candidate -> follower: an election named another board", "COORDINATOR to all"}, described(effects))
	c := announced(t, effects)
	if diff := cmp.Diff([]wire.ID{5, 4, 3}, c.Candidates); c.Coordinator != 4 || diff != "" {
		t.Errorf("board %v is named, want 4; candidates: -want +got:\n%s", c.Coordinator, diff)
	}
}

// TestCandidatesStep4 holds who answers a board that joins, with what.
func TestCandidatesStep4(t *testing.T) {
	for _, test := range []struct {
		name   string
		id     wire.ID
		joiner wire.ID
		want   []string
	}{
		{"a candidate", 4, 1, []string{"ANSWER to 1"}},
		{"a candidate, a new board", 4, 6, []string{"ANSWER to 6"}},
		{"a candidate, a lower one", 4, 3, []string{"ANSWER to 3"}},
		{"a candidate, a higher one", 3, 4, nil},
		{"an ordinary board", 2, 1, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			b := of(t, test.id)
			same(t, test.want, b.hears(test.joiner, wire.TypeQuery, func(m *wire.Message) { m.Query.Round = 1 }))
		})
	}
	t.Run("the coordinator", func(t *testing.T) {
		b := of(t, 4)
		b.Suspect(b.clock)
		m := b.from(1, wire.TypeQuery, func(m *wire.Message) {
			m.Algorithm, m.Query.Round = wire.AlgorithmCandidates, 1
		})
		effects := slices.Clone(b.Step(b.clock, m))
		same(t, []string{"COORDINATOR to 1"}, described(effects))
		if diff := cmp.Diff([]wire.ID{5, 4, 3}, announced(t, effects).Candidates); diff != "" {
			t.Errorf("candidates: -want +got:\n%s", diff)
		}
		m = b.from(1, wire.TypeQuery, func(m *wire.Message) {
			m.Algorithm, m.Query.Round = wire.AlgorithmCandidates, 2
		})
		same(t, []string{"HEARTBEAT to 1"}, described(b.Step(b.clock, m)))
	})
}

// TestCandidatesJoin holds whom a board asks whose cable is back (4a), and what it
// does when it hears of the coordinator (4c).
func TestCandidatesJoin(t *testing.T) {
	for _, test := range []struct {
		id     wire.ID
		leader wire.ID
		asked  []wire.ID // nil if it asks nobody at first
		then   []string
	}{
		{1, 5, []wire.ID{3, 4, 5}, nil},
		{3, 5, []wire.ID{4, 5}, nil},
		{4, 5, []wire.ID{5}, nil},
		{4, 3, []wire.ID{5}, []string{"follower -> candidate: joining", "ELECTION to all"}},
		{1, 0, []wire.ID{3, 4, 5}, nil},
	} {
		b := of(t, test.id)
		b.Link(b.clock, false)
		b.Link(b.clock, true)
		effects := b.sleep(0)
		if diff := cmp.Diff(test.asked, audience(effects)); diff != "" {
			t.Errorf("board %v asks: -want +got:\n%s", test.id, diff)
		}
		if test.leader == 0 {
			// It listens longer when it is told that somebody leads.
			b.sleep(b.listenWindow() - time.Millisecond)
			b.hears(4, wire.TypeAnswer, func(m *wire.Message) { m.Answer.Leader = 5 })
			b.sleep(testInterval - time.Millisecond)
			if b.Role() != election.Listener {
				t.Errorf("board %v is a %v, want a listener still", test.id, b.Role())
			}
			continue
		}
		want := append([]string{"listener -> follower: heard the leader"}, test.then...)
		same(t, want, b.hears(test.leader, wire.TypeCoordinator, coordinator(test.leader, 5, 4, 3), leading,
			func(m *wire.Message) { m.Reply = true }))
	}
}

// TestUpperHalf holds who the candidates are.
func TestUpperHalf(t *testing.T) {
	for _, test := range []struct {
		name        string
		id          wire.ID
		others      []wire.ID
		heard       []wire.ID // candidates heard before
		coordinator wire.ID
		want        []wire.ID
	}{
		{"alone", 1, nil, nil, 1, []wire.ID{1}},
		{"two", 1, []wire.ID{2}, nil, 2, []wire.ID{2}},
		{"two, and the lower one leads", 1, []wire.ID{2}, nil, 1, []wire.ID{2, 1}},
		{"four", 1, []wire.ID{2, 3, 4}, nil, 4, []wire.ID{4, 3}},
		{"five", 1, []wire.ID{2, 3, 4, 5}, nil, 5, []wire.ID{5, 4, 3}},
		{"the coordinator is none of the upper half", 1, []wire.ID{2, 3, 4, 5}, nil, 2, []wire.ID{5, 4, 2}},
		{"nobody leads", 3, []wire.ID{2, 1, 4, 5}, nil, wire.Nobody, []wire.ID{5, 4, 3}},
		{"a newcomer that leads, and knows few", 5, []wire.ID{4}, []wire.ID{4, 3, 2}, 5, []wire.ID{5, 4, 3}},
	} {
		t.Run(test.name, func(t *testing.T) {
			b := &member{newBoard(t, wire.AlgorithmCandidates, func(c *election.Config) { c.ID = test.id })}
			for _, id := range test.others {
				b.hears(id, wire.TypeHello)
			}
			a := b.algorithm.(*candidates)
			a.set = test.heard
			if diff := cmp.Diff(test.want, a.upperHalf(test.coordinator)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
	// Who must not lead is no candidate, whatever its rank among those that must not.
	b := &member{newBoard(t, wire.AlgorithmCandidates, func(c *election.Config) { c.ID = 1 })}
	b.hears(2, wire.TypeHello, priority(0))
	b.hears(3, wire.TypeHello, priority(0))
	if diff := cmp.Diff([]wire.ID{1}, b.algorithm.(*candidates).upperHalf(1)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestCandidatesUntold holds what a board does that has not been told who the candidates
// are: it neither claims on its own view, nor keeps silent on it.
func TestCandidatesUntold(t *testing.T) {
	b := newMember(t, wire.AlgorithmCandidates, 4, 5, 1, 2, 3)
	same(t, []string{"follower -> candidate: the leader fell silent", "ELECTION to all"}, described(b.Suspect(b.clock)))
	b = newMember(t, wire.AlgorithmCandidates, 2, 5, 1, 3, 4)
	same(t, []string{"ANSWER to 1"}, b.hears(1, wire.TypeElection, b.suspecting))
}

// TestCandidatesNewcomer: a board that joined after the boards were divided, and is
// higher than a candidate, is asked by that one, and answers.
func TestCandidatesNewcomer(t *testing.T) {
	b := of(t, 4)
	b.hears(2, wire.TypeHello, priority(200))
	effects := b.Suspect(b.clock)
	same(t, []string{"follower -> candidate: the leader fell silent", "ELECTION to all"}, described(effects))
	if diff := cmp.Diff([]wire.ID{2, 5}, audience(effects)); diff != "" {
		t.Errorf("asked: -want +got:\n%s", diff)
	}
	b = of(t, 2)
	b.Reprioritise(b.clock, 200, false)
	same(t, []string{"ANSWER to 4"}, b.hears(4, wire.TypeElection, b.suspecting))
}

// TestCandidatesJoinBesideAnother: the leader dies while two boards join that have not heard of each other. The one
// that stands for election already answers the questions of the other one. And a board that only the
// dead leader could have told of the other one asks before it claims.
func TestCandidatesJoinBesideAnother(t *testing.T) {
	b := of(t, 4)
	b.stand(election.ReasonSilence)
	same(t, []string{"ANSWER to 6"}, b.hears(6, wire.TypeQuery, func(m *wire.Message) { m.Query.Round = 1 }))

	b = newMember(t, wire.AlgorithmCandidates, 2, 3)
	b.hears(3, wire.TypeHeartbeat, leading)
	b.sleep(b.seen.SuspectAt() - b.clock - time.Millisecond)
	same(t, []string{"follower -> candidate: outranks the leader", "QUERY to 3", "HELLO to all"},
		described(b.Reprioritise(b.clock, 200, false)))
	same(t, []string{"ELECTION to all"}, described(b.sleep(b.seen.AnswerTimeout())))
}
