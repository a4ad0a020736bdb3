package literature

import (
	"slices"
	"strings"
	"testing"

	"topdog/election"
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
