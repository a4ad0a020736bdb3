package literature

import (
	"slices"
	"strings"
	"testing"

	"topdog/election"
	"topdog/internal/lab/assert"
	"topdog/wire"
)

func TestAlgorithms(t *testing.T) {
	if names := Algorithms(); names[0] != "heir" || !slices.Contains(names, "bully") {
		t.Errorf("the algorithms are %v, want heir first, and bully", names)
	}
	for _, name := range Algorithms() {
		n, ok := AlgorithmNamed(name)
		if !ok || n.String() != name {
			t.Errorf("%s is %v, %v", name, n, ok)
		}
	}
	if n, ok := AlgorithmNamed("raft"); ok {
		t.Errorf("raft is %v", n)
	}
}

// TestNoAlgorithm: a number that no algorithm has is refused.
func TestNoAlgorithm(t *testing.T) {
	for number, want := range map[wire.Algorithm]string{0: "no such algorithm: algorithm 0", 15: "no such algorithm: algorithm 15"} {
		cfg := election.Config{ID: 1, Name: "pi1", Priority: 100, Interval: testInterval, Algorithm: number}
		if _, err := NewCore(cfg, 0); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the error is %v, want one that says %q", err, want)
		}
	}
}

// TestVoters holds which lists of voters a group may have.
func TestVoters(t *testing.T) {
	many := make([]wire.ID, election.MaxVoters+1)
	for i := range many {
		many[i] = wire.ID(i + 1)
	}
	for _, test := range []struct {
		voters []wire.ID
		want   string
	}{
		{nil, "is empty"},
		{many, "has 16 voters, at most 15 can be had"},
		{[]wire.ID{1, 0}, "has the id 0"},
		{[]wire.ID{1, 2, 1}, "has board 1 twice"},
		{many[:election.MaxVoters], ""},
	} {
		err := election.CheckVoters(test.voters)
		cfg := election.Config{ID: 1, Name: "pi1", Priority: 100, Interval: testInterval, Algorithm: wire.AlgorithmStrict, Voters: test.voters}
		_, ofCore := NewCore(cfg, 0)
		if test.want == "" {
			if err != nil || ofCore != nil {
				t.Errorf("%v: %v, %v", test.voters, err, ofCore)
			}
			continue
		}
		if err == nil || !strings.HasPrefix(err.Error(), test.want) || ofCore == nil || !strings.Contains(ofCore.Error(), test.want) {
			t.Errorf("%v: %v, %v", test.voters, err, ofCore)
		}
	}
	cfg := election.Config{ID: 1, Name: "pi1", Priority: 100, Interval: testInterval, Algorithm: wire.AlgorithmHeir, Voters: many[:3]}
	if _, err := NewCore(cfg, 0); err == nil {
		t.Error("voters with an algorithm that has no votes")
	}
}

// TestOrder holds which of two boards comes first. With minid a priority matters only if it is 0. With score, the score
// comes before the id, and the priority counts for nothing.
func TestOrder(t *testing.T) {
	for _, test := range []struct {
		algorithm wire.Algorithm
		x, y      election.Rank
		want      bool
	}{
		{wire.AlgorithmMinID, election.Rank{Priority: 100, ID: 1}, election.Rank{Priority: 100, ID: 2}, true},
		{wire.AlgorithmMinID, election.Rank{Priority: 100, ID: 2}, election.Rank{Priority: 100, ID: 1}, false},
		{wire.AlgorithmMinID, election.Rank{Priority: 1, ID: 1}, election.Rank{Priority: 200, ID: 2}, true},
		{wire.AlgorithmMinID, election.Rank{Priority: 0, ID: 1}, election.Rank{Priority: 100, ID: 2}, false},
		{wire.AlgorithmMinID, election.Rank{Priority: 100, ID: 2}, election.Rank{Priority: 0, ID: 1}, true},
		{wire.AlgorithmMinID, election.Rank{Priority: 0, ID: 1}, election.Rank{Priority: 0, ID: 2}, true},
		{wire.AlgorithmMinID, election.Rank{Priority: 100, ID: 2}, election.Rank{Grade: wire.GradeFailing, Priority: 100, ID: 1}, true},
		{wire.AlgorithmScore, election.Rank{Score: 2, ID: 1, Priority: 1}, election.Rank{Score: 1, ID: 2, Priority: 200}, true},
		{wire.AlgorithmScore, election.Rank{Score: 1, ID: 2, Priority: 200}, election.Rank{Score: 2, ID: 1, Priority: 1}, false},
		{wire.AlgorithmScore, election.Rank{Score: 1, ID: 2, Priority: 1}, election.Rank{Score: 1, ID: 1, Priority: 200}, true},
		{wire.AlgorithmScore, election.Rank{Score: 1, ID: 1}, election.Rank{Score: 1, ID: 1}, false},
	} {
		c := newBoard(t, test.algorithm)
		assert.Is(t, test.want, c.Above(test.x, test.y), "%v: %+v before %+v", test.algorithm, test.x, test.y)
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
			b := newBoard(t, wire.AlgorithmCandidates, func(c *election.Config) { c.ID = test.id })
			for _, id := range test.others {
				b.hears(id, wire.TypeHello)
			}
			a := b.algorithm.(*candidates)
			a.set = test.heard
			assert.Equal(t, test.want, a.upperHalf(test.coordinator), "")
		})
	}
	// Who must not lead is no candidate, whatever its rank among those that must not.
	b := newBoard(t, wire.AlgorithmCandidates, func(c *election.Config) { c.ID = 1 })
	for _, id := range []wire.ID{2, 3} {
		b.hears(id, wire.TypeHello, func(m *wire.Message) { m.Priority = 0 })
	}
	assert.Equal(t, []wire.ID{1}, b.algorithm.(*candidates).upperHalf(1), "")
}

// TestAgentsJudge holds whom the judge trusts: everybody at first, and after 2δ those
// whose ACK it has had within the last 2δ (lines 28 and 29).
func TestAgentsJudge(t *testing.T) {
	b := agentsBoard(t)
	a := b.algorithm.(*agents)
	round := func(k uint32) func(*wire.Message) {
		return func(m *wire.Message) { m.Round.Number = k }
	}
	b.hears(1, wire.TypeStart, round(5))
	for i, want := range [][]wire.ID{
		{1, 2, 3, 4},
		{1, 2, 3, 4},
		{1, 2, 3}, // 4 has acknowledged no OK of this round
		{1, 2, 3}, // 3 has not since one δ
		{1, 2},
		{1, 2},
	} {
		b.hears(1, wire.TypeAck, round(5))
		if i < 2 {
			b.hears(3, wire.TypeAck, round(5))
		}
		b.hears(4, wire.TypeHeartbeat, leading)
		b.hears(4, wire.TypeAck, round(4))
		assert.Equal(t, want, b.Status(b.clock).Trust, "after %d times δ", i)
		b.sleep(a.okInterval())
	}
}
