package literature

import (
	"slices"
	"testing"
	"time"

	"topdog/election"
	"topdog/wire"
)

func TestMinIDOrder(t *testing.T) {
	c, err := NewCore(election.Config{ID: 3, Priority: 100, Interval: election.DefaultInterval, Algorithm: wire.AlgorithmMinID}, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		x, y election.Rank
		want bool
	}{
		{election.Rank{Priority: 100, ID: 1}, election.Rank{Priority: 100, ID: 2}, true},
		{election.Rank{Priority: 100, ID: 2}, election.Rank{Priority: 100, ID: 1}, false},
		{election.Rank{Priority: 1, ID: 1}, election.Rank{Priority: 200, ID: 2}, true}, // a priority matters only if it is 0
		{election.Rank{Priority: 0, ID: 1}, election.Rank{Priority: 100, ID: 2}, false},
		{election.Rank{Priority: 100, ID: 2}, election.Rank{Priority: 0, ID: 1}, true},
		{election.Rank{Priority: 0, ID: 1}, election.Rank{Priority: 0, ID: 2}, true},
		{election.Rank{Priority: 100, ID: 2}, election.Rank{Grade: wire.GradeFailing, Priority: 100, ID: 1}, true},
	} {
		if got := c.Above(test.x, test.y); got != test.want {
			t.Errorf("%v comes before %v: %v, want %v", test.x, test.y, got, test.want)
		}
	}
}

// TestMinIDSteps holds what board 3 does at each step of the paper. Board 1 leads.
func TestMinIDSteps(t *testing.T) {
	claims := func(reason string) []string {
		return []string{"follower -> candidate: " + reason, "candidate -> leader: nobody answered for the leader", "take", "COORDINATOR to all"}
	}
	asks := []string{"follower -> candidate: the leader fell silent", "ELECTION to all"}
	for _, test := range []struct {
		name   string
		others []wire.ID
		play   func(b *member) []string
		want   []string
	}{
		{"1a: it is the second smallest", []wire.ID{4, 5}, func(b *member) []string {
			return described(b.Suspect(b.clock))
		}, claims("the leader fell silent")},
		{"1a: it is not once a smaller one has come", []wire.ID{4, 5}, func(b *member) []string {
			b.hears(2, wire.TypeHello)
			return described(b.Suspect(b.clock))
		}, asks},
		{"1a: it is again when that one has left", []wire.ID{2, 4, 5}, func(b *member) []string {
			b.hears(2, wire.TypeResign, priority(0))
			return described(b.Suspect(b.clock))
		}, claims("the leader fell silent")},
		{"1b: it is not the second smallest", []wire.ID{2, 4, 5}, func(b *member) []string {
			return described(b.Suspect(b.clock))
		}, asks},
		{"1b: it overslept as the leader, and asks before it claims", []wire.ID{4, 5}, func(b *member) []string {
			b.Suspect(b.clock)
			b.clock += time.Second
			return described(b.Wake(b.clock))
		}, []string{
			"release", "leader -> follower: this daemon was not running for a while",
			"follower -> candidate: this daemon was not running for a while", "ELECTION to all",
			"HELLO to all", // which was due, too
		}},
		{"1: it must not lead", []wire.ID{4, 5}, func(b *member) []string {
			b.Reprioritise(b.clock, 0, false)
			return described(b.Suspect(b.clock))
		}, nil},
		{"2: nobody answers", []wire.ID{2, 4, 5}, func(b *member) []string {
			b.Suspect(b.clock)
			return described(b.sleep(testInterval))
		}, claims("")[1:]},
		{"2: only larger ids answer, which they must not", []wire.ID{2, 4, 5}, func(b *member) []string {
			b.Suspect(b.clock)
			b.hears(4, wire.TypeAnswer)
			return described(b.sleep(testInterval))
		}, claims("")[1:]},
		{"3a: it is the second smallest", []wire.ID{4, 5}, func(b *member) []string {
			return b.hears(5, wire.TypeElection, b.suspecting)
		}, []string{
			"follower -> candidate: a board of lower rank holds an election",
			"candidate -> leader: a board of lower rank holds an election", "take", "COORDINATOR to all",
		}},
		{"3a: but has heard the coordinator after the other one", []wire.ID{4, 5}, func(b *member) []string {
			return b.hears(5, wire.TypeElection, b.suspecting, func(m *wire.Message) { m.Election.LastHeard-- })
		}, []string{"ANSWER to 5"}},
		{"3a: but follows a later coordinator", []wire.ID{4, 5}, func(b *member) []string {
			return b.hears(5, wire.TypeElection, b.suspecting, func(m *wire.Message) { m.Election.Suspect = 2 })
		}, []string{"ANSWER to 5"}},
		{"3b: it is not the second smallest", []wire.ID{2, 4, 5}, func(b *member) []string {
			return b.hears(5, wire.TypeElection, b.suspecting)
		}, []string{"ANSWER to 5"}},
		{"3: of a smaller id", []wire.ID{2, 4, 5}, func(b *member) []string {
			return b.hears(2, wire.TypeElection, b.suspecting)
		}, nil},
		{"3: it must not lead", []wire.ID{2, 4, 5}, func(b *member) []string {
			b.Reprioritise(b.clock, 0, false)
			return b.hears(5, wire.TypeElection, b.suspecting)
		}, nil},
		{"3: it leads", []wire.ID{4, 5}, func(b *member) []string {
			b.Suspect(b.clock)
			return b.hears(5, wire.TypeElection, b.suspecting)
		}, []string{"HEARTBEAT to all"}},
		{"two initiators: the other one is smaller", []wire.ID{2, 4, 5}, func(b *member) []string {
			b.Suspect(b.clock)
			return b.hears(2, wire.TypeElection, b.suspecting)
		}, gaveWay},
		{"two initiators: the other one is larger", []wire.ID{2, 4, 5}, func(b *member) []string {
			b.Suspect(b.clock)
			return b.hears(4, wire.TypeElection, b.suspecting)
		}, []string{"ANSWER to 4"}},
		{"the coordinator answers", []wire.ID{2, 4, 5}, func(b *member) []string {
			b.Suspect(b.clock)
			return b.hears(1, wire.TypeHeartbeat, leading)
		}, []string{"candidate -> follower: the leader answered"}},
		{"6: a larger id proclaims itself", []wire.ID{2, 4, 5}, func(b *member) []string {
			return b.hears(5, wire.TypeCoordinator, leading, inTerm(b.Signature().Term+1))
		}, []string{
			"follower -> follower: a new leader proclaimed itself",
			"follower -> candidate: outranks the leader", "QUERY to 5", // ours: it has the address
		}},
		{"6: it leads, and an initiator names a larger id", []wire.ID{4, 5}, func(b *member) []string {
			b.Suspect(b.clock)
			return b.hears(5, wire.TypeCoordinator, coordinator(4))
		}, []string{"COORDINATOR to all"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			b := newMember(t, wire.AlgorithmMinID, 3, 1, test.others...)
			same(t, test.want, test.play(b))
		})
	}
}

// TestMinIDStep4: of those that answer the smallest is named.
func TestMinIDStep4(t *testing.T) {
	b := newMember(t, wire.AlgorithmMinID, 6, 1, 2, 3, 4, 5, 7)
	b.Suspect(b.clock)
	for _, id := range []wire.ID{4, 3, 7, 5} {
		b.hears(id, wire.TypeAnswer)
	}
	effects := slices.Clone(b.sleep(testInterval))
	same(t, []string{"candidate -> follower: an election named another board", "COORDINATOR to all"}, described(effects))
	if c := announced(t, effects); c.Coordinator != 3 {
		t.Errorf("board %v is named, want 3", c.Coordinator)
	}
	// It follows the winner when that one leads, not before.
	if b.Leader() != wire.Nobody {
		t.Errorf("it follows %v, which has not said that it leads", b.Leader())
	}
	b.hears(3, wire.TypeHeartbeat, leading, inTerm(b.Signature().Term+1))
	if b.Leader() != 3 {
		t.Errorf("it follows %v, want 3", b.Leader())
	}
}

// TestMinIDStep5 holds how boards join: the smallest id without a question.
func TestMinIDStep5(t *testing.T) {
	queries := func(id wire.ID, prio uint8, heard bool) (asked int, effects []election.Effect) {
		b := newBoard(t, wire.AlgorithmMinID, func(c *election.Config) { c.ID, c.Priority = id, prio })
		count := func(effects []election.Effect) {
			for _, e := range effects {
				if e.Kind == election.EffectSend && e.Message.Type == wire.TypeQuery && e.Message.Query.Purpose == wire.PurposeJoin {
					asked++
				}
			}
		}
		count(b.sleep(testInterval))
		if heard {
			m := &member{b}
			effects = b.Step(b.clock, m.from(4, wire.TypeHeartbeat, leading, func(m *wire.Message) { m.Algorithm = wire.AlgorithmMinID }))
		} else {
			count(b.sleep(2 * testInterval))
		}
		return asked, slices.Clone(effects)
	}
	if n, effects := queries(1, 100, true); n != 0 {
		t.Errorf("board 1 asks %d times although a heartbeat comes, want 0", n)
	} else {
		same(t, []string{
			"listener -> follower: heard the leader", "follower -> candidate: joining", "QUERY to 4", // for the address
		}, described(effects))
	}
	if n, _ := queries(1, 100, false); n == 0 {
		t.Error("board 1 never asks, although no heartbeat comes")
	}
	if n, _ := queries(2, 100, true); n == 0 {
		t.Error("board 2 does not ask")
	}
	if n, _ := queries(1, 0, true); n == 0 {
		t.Error("board 1 does not ask although it must not lead")
	}
}

// TestMinIDNewcomer: a board that has just joined does not know whether it is the
// second smallest.
func TestMinIDNewcomer(t *testing.T) {
	b := &member{newBoard(t, wire.AlgorithmMinID, func(c *election.Config) { c.ID = 3 })}
	b.hears(1, wire.TypeHeartbeat, leading)
	b.hears(1, wire.TypeHello, leading)
	same(t, []string{"follower -> candidate: the leader fell silent", "ELECTION to all"}, described(b.Suspect(b.clock)))
	b.hears(1, wire.TypeHeartbeat, leading)
	same(t, []string{"ANSWER to 5"}, b.hears(5, wire.TypeElection, b.suspecting))
}
