package literature

import (
	"testing"

	"topdog/election"
	"topdog/internal/lab/assert"
	"topdog/wire"
)

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
