package literature

import (
	"testing"
	"time"

	"topdog/election"
	"topdog/wire"
)

// member is a core under test that runs minid or candidates in a group which it
// has known for long.
type member struct{ *board }

// newMember returns board id in a group that leader leads.
func newMember(t *testing.T, algorithm wire.Algorithm, id, leader wire.ID, others ...wire.ID) *member {
	t.Helper()
	b := &member{newBoard(t, algorithm, func(c *election.Config) { c.ID = id })}
	for range 12 {
		for _, other := range others {
			b.hears(other, wire.TypeHello)
		}
		b.hears(leader, wire.TypeHeartbeat, leading)
		b.hears(leader, wire.TypeHello, leading)
		b.sleep(testInterval)
	}
	if b.Role() != election.Follower || b.Leader() != leader {
		t.Fatalf("the board is a %v of %v, want a follower of %v", b.Role(), b.Leader(), leader)
	}
	return b
}

// suspecting makes an ELECTION say that this board's leader has failed, and that its
// sender heard it last when this board did.
func (b *member) suspecting(m *wire.Message) {
	known := b.seen.Evidence()
	m.Election = wire.Election{Suspect: known.Leader, Incarnation: known.Incarnation, LastHeard: known.LastHeard, Round: 1}
}

// coordinator makes a COORDINATOR name a board, and candidates.
func coordinator(id wire.ID, candidates ...wire.ID) func(*wire.Message) {
	return func(m *wire.Message) {
		m.Coordinator.Coordinator, m.Coordinator.Candidates = id, candidates
	}
}

func inTerm(n wire.Term) func(*wire.Message) { return func(m *wire.Message) { m.Term = n } }

// announced returns whom the board has named in its last effects.
func announced(t *testing.T, effects []election.Effect) wire.Coordinator {
	t.Helper()
	for _, e := range effects {
		if e.Kind == election.EffectSend && e.Message.Type == wire.TypeCoordinator {
			return e.Message.Coordinator
		}
	}
	t.Fatalf("no COORDINATOR in %v", described(effects))
	return wire.Coordinator{}
}

// The effects of what both algorithms do.
var (
	taken = []string{
		"follower -> candidate: an election named this board",
		"candidate -> leader: an election named this board",
		"take", "HEARTBEAT to all", // and no second COORDINATOR
	}
	gaveWay = []string{"candidate -> follower: a board of higher rank is at it"}
)

// TestNamed holds what becomes of a board that an initiator names. Board 3 is
// board 3 of five with either algorithm, so its leader is at the end that matters.
func TestNamed(t *testing.T) {
	for _, algorithm := range []struct {
		number                wire.Algorithm
		leader, higher, asker wire.ID
	}{
		{wire.AlgorithmMinID, 1, 2, 5},
		{wire.AlgorithmCandidates, 5, 4, 1},
	} {
		for _, test := range []struct {
			name string
			play func(b *member) []string
			want []string
		}{
			{"it leads", func(b *member) []string {
				return b.hears(algorithm.asker, wire.TypeCoordinator, coordinator(3))
			}, taken},
			{"it has heard the coordinator since", func(b *member) []string {
				b.hears(algorithm.leader, wire.TypeHeartbeat, leading)
				return b.hears(algorithm.asker, wire.TypeCoordinator, coordinator(3))
			}, nil},
			{"the coordinator has handed over to another board since", func(b *member) []string {
				b.hears(algorithm.leader, wire.TypeResign, func(m *wire.Message) { m.Resign.Successor = 4 })
				return b.hears(algorithm.asker, wire.TypeCoordinator, coordinator(3))
			}, nil},
			{"a board of higher rank holds an election, which the initiator has not heard", func(b *member) []string {
				b.hears(algorithm.higher, wire.TypeElection, func(m *wire.Message) { m.Election.Suspect = algorithm.leader })
				return b.hears(algorithm.asker, wire.TypeCoordinator, coordinator(3))
			}, nil},
			{"a board of lower rank holds another one", func(b *member) []string {
				b.hears(algorithm.asker, wire.TypeElection, func(m *wire.Message) { m.Election.Suspect = algorithm.leader })
				return b.hears(algorithm.asker, wire.TypeCoordinator, coordinator(3))
			}, taken},
			{"it must not lead", func(b *member) []string {
				b.Reprioritise(b.clock, 0, false)
				return b.hears(algorithm.asker, wire.TypeCoordinator, coordinator(3))
			}, nil},
			{"it leads already", func(b *member) []string {
				b.hears(algorithm.asker, wire.TypeCoordinator, coordinator(3))
				b.sleep(10 * time.Millisecond)
				return b.hears(algorithm.asker, wire.TypeCoordinator, coordinator(3))
			}, []string{"HEARTBEAT to all"}},
			{"it holds an election itself", func(b *member) []string {
				b.stand(election.ReasonSilence)
				return b.hears(algorithm.asker, wire.TypeCoordinator, coordinator(3))
			}, taken[1:]},
			{"another one is named while it holds an election", func(b *member) []string {
				b.stand(election.ReasonSilence)
				return b.hears(algorithm.asker, wire.TypeCoordinator, coordinator(algorithm.higher))
			}, []string{"candidate -> follower: an election named another board"}},
			{"a lower one is named while it holds an election", func(b *member) []string {
				b.Suspect(b.clock)
				return b.hears(algorithm.asker, wire.TypeCoordinator, coordinator(algorithm.asker))
			}, nil},
			{"another one is named", func(b *member) []string {
				return b.hears(algorithm.asker, wire.TypeCoordinator, coordinator(4))
			}, nil},
			{"a leader names another board, which it cannot", func(b *member) []string {
				return b.hears(algorithm.leader, wire.TypeCoordinator, coordinator(3), leading)
			}, nil},
		} {
			t.Run(algorithm.number.String()+"/"+test.name, func(t *testing.T) {
				b := newMember(t, algorithm.number, 3, algorithm.leader, algorithm.asker, 2, 4)
				b.sleep(time.Millisecond)
				b.hears(algorithm.asker, wire.TypeElection, b.suspecting)
				b.sleep(time.Millisecond)
				same(t, test.want, test.play(b))
			})
		}
	}
}

// stand makes the board a candidate that has asked.
func (b *member) stand(reason election.Reason) {
	switch a := b.algorithm.(type) {
	case *minid:
		a.stand(reason)
		a.ask(1, nil)
	case *candidates:
		a.stand(reason)
		a.ask(1, nil)
	}
}

// TestNobodyNamedLeads: a board that was named and does not lead is not waited for
// for ever.
func TestNobodyNamedLeads(t *testing.T) {
	for _, test := range []struct {
		algorithm     wire.Algorithm
		leader, asker wire.ID
	}{
		{wire.AlgorithmMinID, 1, 5},
		{wire.AlgorithmCandidates, 5, 1},
	} {
		t.Run(test.algorithm.String(), func(t *testing.T) {
			b := newMember(t, test.algorithm, 3, test.leader, test.asker, 2, 4)
			b.hears(test.asker, wire.TypeElection, b.suspecting)
			b.sleep(testInterval)
			b.hears(test.asker, wire.TypeCoordinator, coordinator(4))
			b.sleep(time.Second)
			if b.Role() != election.Leader {
				t.Errorf("1 s later, of which nobody has led, the board is a %v", b.Role())
			}
		})
	}
}

// TestListenerCalledUpon: a board that still listens says OK at a cold start. If
// somebody has led it does not: it would have to probe the address first, while the
// others need not.
func TestListenerCalledUpon(t *testing.T) {
	for _, test := range []struct {
		algorithm wire.Algorithm
		asker     wire.ID
	}{
		{wire.AlgorithmMinID, 5},
		{wire.AlgorithmCandidates, 1},
	} {
		t.Run(test.algorithm.String(), func(t *testing.T) {
			b := &member{newBoard(t, test.algorithm, func(c *election.Config) { c.ID = 3 })}
			b.sleep(b.listenWindow() - time.Millisecond)
			same(t, nil, b.hears(test.asker, wire.TypeElection, func(m *wire.Message) { m.Election.Suspect, m.Election.Round = 4, 1 }))
			b.sleep(testInterval)
			if b.Role() != election.Listener {
				t.Errorf("in the middle of an election the board became a %v", b.Role())
			}
			same(t, []string{"ANSWER to " + test.asker.String()},
				b.hears(test.asker, wire.TypeElection, func(m *wire.Message) { m.Election.Suspect, m.Election.Round = wire.Nobody, 1 }))
			same(t, []string{
				"listener -> candidate: an election named this board", "probe",
			}, b.hears(test.asker, wire.TypeCoordinator, coordinator(3)))
			same(t, []string{
				"candidate -> leader: an election named this board", "take", "HEARTBEAT to all",
			}, described(b.Probed(b.clock, false)))
		})
	}
}

// TestNotObvious: the board that comes next asks before it claims if a successor has
// not proclaimed itself, if it overslept, and if it overslept what was answered.
func TestNotObvious(t *testing.T) {
	for _, test := range []struct {
		algorithm          wire.Algorithm
		id, leader, lowest wire.ID
	}{
		{wire.AlgorithmMinID, 2, 1, 5},
		{wire.AlgorithmCandidates, 4, 5, 1},
	} {
		t.Run(test.algorithm.String(), func(t *testing.T) {
			b := newMember(t, test.algorithm, test.id, test.leader, 3, test.lowest)
			b.hears(test.leader, wire.TypeCoordinator, coordinator(test.leader, 4, 3), leading)
			b.hears(test.leader, wire.TypeResign, func(m *wire.Message) { m.Resign.Successor = 3 })
			same(t, []string{"follower -> candidate: there is no leader", "ELECTION to all"}, described(b.sleep(testInterval/2)))
			// Its loop was not running when the answers may have come.
			b.clock += testInterval * 3 / 2
			b.Wake(b.clock)
			if b.Role() != election.Candidate {
				t.Errorf("a board that overslept the answers is a %v, want a candidate that asks again", b.Role())
			}
			b.sleep(testInterval)
			if b.Role() != election.Leader {
				t.Fatalf("a board that nobody has answered is a %v", b.Role())
			}
			b.clock += 3 * testInterval
			b.Wake(b.clock)
			if b.Role() != election.Candidate {
				t.Errorf("a leader that overslept is a %v, want a candidate that asks", b.Role())
			}
		})
	}
}

// TestBackOnline: what a board knew of the leader before its link was lost is of no
// use to it. The leader of that time may be among those that start anew with it.
func TestBackOnline(t *testing.T) {
	for _, test := range []struct {
		algorithm  wire.Algorithm
		id, leader wire.ID
	}{
		{wire.AlgorithmMinID, 2, 1},
		{wire.AlgorithmCandidates, 4, 5},
	} {
		t.Run(test.algorithm.String(), func(t *testing.T) {
			b := newMember(t, test.algorithm, test.id, test.leader, 3)
			anew := func(m *wire.Message) { m.Incarnation++ }
			b.hears(test.leader, wire.TypeHello, anew) // its leader has restarted
			b.Link(b.clock, false)
			b.Link(b.clock, true)
			b.hears(test.leader, wire.TypeHello, anew)
			b.sleep(b.listenWindow())
			if b.Role() != election.Follower {
				t.Errorf("the board is a %v, want a follower that leaves it to board %v", b.Role(), test.leader)
			}
		})
	}
}
