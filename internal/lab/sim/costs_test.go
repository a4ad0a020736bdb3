package sim_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"topdog/election"
	"topdog/internal/lab/assert"
	"topdog/internal/lab/sim"
	"topdog/wire"
)

// The tests in this file hold what an election costs, of each kind of message, by the conventions and with the
// formulas of the papers. Their tables give the sums, which internal/lab/papers measures.

// cost is the messages of an election. What minid calls OK is an ANSWER.
type cost struct{ Election, Answer, Coordinator, Halt, Start int }

// convention is how a paper counts.
type convention func(*sim.Counts) cost

func counted(elections, coordinators func(sim.Tally) int) convention {
	return func(c *sim.Counts) cost {
		return cost{
			elections(c.Type(wire.TypeElection)), elections(c.Type(wire.TypeAnswer)), coordinators(c.Type(wire.TypeCoordinator)),
			elections(c.Type(wire.TypeHalt)), elections(c.Type(wire.TypeStart)),
		}
	}
}

var (
	live       = func(t sim.Tally) int { return t.Live }
	broadcast  = func(t sim.Tally) int { return t.Packets }
	toTheDead  = counted(sim.Tally.Messages, live) // an ELECTION to a dead process counts, and a COORDINATOR to one does not
	allCount   = counted(sim.Tally.Messages, sim.Tally.Messages)
	broadcasts = counted(broadcast, broadcast) // a message to all is one
)

// elects has boards of n crash, the leader first, and one of the others notice it before the rest could. It returns
// what was sent until all that are left follow the winner.
func elects(t *testing.T, a wire.Algorithm, fanout election.Fanout, n int, winner, notices wire.ID, crash ...wire.ID) *sim.Counts {
	t.Helper()
	var members []wire.ID
	for id := range wire.ID(n) {
		members = append(members, id+1)
	}
	lan := crowd(1, quick, n, a, func(c *election.Config) { c.Fanout, c.Members = fanout, members }) // all know each other
	lan.Run(15 * time.Second)
	leads(t, lan.Boards(), crash[0])
	lan.Board(crash[0].String()).AfterHeartbeat(func() {
		for _, id := range crash {
			lan.Board(id.String()).Crash()
		}
		lan.ResetCounts()
		lan.Board(notices.String()).Suspect()
	})
	lan.Run(interval + 5*time.Second)
	leads(t, slices.DeleteFunc(lan.Boards(), func(b *sim.Board) bool { return !b.Running() }), winner)
	return &lan.Counts
}

// TestCosts has the leader of n boards die, and one other board notice it.
func TestCosts(t *testing.T) {
	for _, n := range []int{3, 4, 5, 10, 20, 28} {
		last, half := wire.ID(n), (n+1)/2
		for _, test := range []struct {
			name            string
			algorithm       wire.Algorithm
			boards          int
			winner, notices wire.ID
			crash           []wire.ID
			by              convention
			want            cost
		}{
			{"bully, worst: n²-n-1", wire.AlgorithmBully, n, last - 1, 1, []wire.ID{last}, toTheDead,
				cost{Election: n * (n - 1) / 2, Answer: (n - 1) * (n - 2) / 2, Coordinator: n - 2}},
			{"bully, best: n-1", wire.AlgorithmBully, n, last - 1, last - 1, []wire.ID{last}, toTheDead,
				cost{Election: 1, Coordinator: n - 2}},
			{"modified, worst: 3n-4", wire.AlgorithmModified, n, last - 1, 1, []wire.ID{last}, toTheDead,
				cost{Election: n - 1 + 1, Answer: n - 2, Coordinator: n - 2, Halt: n - 1, Start: 1}},
			{"modified, best: n-1", wire.AlgorithmModified, n, last - 1, last - 1, []wire.ID{last}, toTheDead,
				cost{Election: 1, Coordinator: n - 2, Halt: n - 1}},
			{"score", wire.AlgorithmScore, n, last - 1, 1, []wire.ID{last}, toTheDead,
				cost{Election: (n - 1) * (n - 1), Answer: (n - 1) * (n - 2) / 2, Coordinator: n - 2}},
			{"candidates, best", wire.AlgorithmCandidates, n, last - 1, last - 1, []wire.ID{last}, allCount,
				cost{Coordinator: n - 1}},
			{"candidates, worst", wire.AlgorithmCandidates, n, last - 1, 1, []wire.ID{last}, allCount,
				cost{Election: half, Answer: half - 1, Coordinator: n - 1}},
			{"minid, best", wire.AlgorithmMinID, n + 1, 2, 2, []wire.ID{1}, broadcasts,
				cost{Coordinator: 1}},
			{"minid, worst", wire.AlgorithmMinID, n + 2, 3, last + 2, []wire.ID{1, 2}, broadcasts,
				cost{Election: 1, Answer: n - 1, Coordinator: 1}},
			// The paper does not print this one: the second smallest is called upon (3a).
			{"minid, called upon", wire.AlgorithmMinID, n + 1, 2, last + 1, []wire.ID{1}, broadcasts,
				cost{Election: 1, Answer: n - 2, Coordinator: 1}},
		} {
			fanouts := []election.Fanout{election.FanoutMulticast}
			if test.algorithm == wire.AlgorithmCandidates { // it makes no difference how they travel
				fanouts = append(fanouts, election.FanoutUnicast)
			}
			for _, fanout := range fanouts {
				got := elects(t, test.algorithm, fanout, test.boards, test.winner, test.notices, test.crash...)
				assert.Equal(t, test.want, test.by(got), "%s, n = %d, %v", test.name, n, fanout)
			}
		}
	}
}

// TestTallies counts an election as packets, and as messages to the living and to the dead. Process 5 of 0…9
// notices: 24, as in figure 2 of Kuang and others. They do not send the victory to the dead one.
func TestTallies(t *testing.T) {
	for fanout, want := range map[election.Fanout]map[string]sim.Tally{
		election.FanoutMulticast: {
			"ELECTION": {Packets: 4, Live: 6, Dead: 4}, "ANSWER": {Packets: 6, Live: 6}, "COORDINATOR": {Packets: 1, Live: 8, Dead: 1},
		},
		election.FanoutUnicast: {
			"ELECTION": {Packets: 10, Live: 6, Dead: 4}, "ANSWER": {Packets: 6, Live: 6}, "COORDINATOR": {Packets: 9, Live: 8, Dead: 1},
			"HEARTBEAT in reply": {Packets: 1, Live: 8, Dead: 1}, // for those who know of nobody
		},
	} {
		counts := elects(t, wire.AlgorithmBully, fanout, 10, 9, 6, 10)
		got := make(map[string]sim.Tally)
		for _, k := range counts.Kinds() {
			if !k.Routine() {
				got[k.String()] = counts[k]
			}
		}
		assert.Equal(t, want, got, "%v", fanout)
	}
}

// TestAgentsPeace counts what phases 1 and 2 of agents cost when nothing happens: in one
// second 5 times an OK to n-1 boards and n-1 ACKs, and once the leader's list.
func TestAgentsPeace(t *testing.T) {
	for _, n := range []int{3, 10, 50} {
		lan := agentsLAN(t, n)
		lan.ResetCounts()
		lan.Run(10 * time.Second)
		const oks = int(10 * time.Second / delta)
		got := make(map[string]int)
		for _, kind := range lan.Counts.Kinds() {
			if kind != sim.Kind(wire.TypeHello) && kind != sim.Kind(wire.TypeHeartbeat) {
				got[kind.String()] = lan.Counts[kind].Messages()
			}
		}
		want := map[string]int{"OK": oks * (n - 1), "ACK": oks * (n - 1), "REPORT": 10 * (n - 1)}
		assert.Equal(t, want, got, "messages of %d boards in ten seconds without a fault", n)
		assert.Is(t, oks*n, lan.Counts[wire.TypeOK].Packets+lan.Counts[wire.TypeAck].Packets, "packets of phase 2 of %d boards", n)
	}
}

// TestAgentsTakeover counts what phase 3 of agents costs when the leader dies, and measures
// how long it takes: 2Δ and three messages from the suspicion on.
func TestAgentsTakeover(t *testing.T) {
	for _, n := range []int{3, 10, 50} {
		t.Run(fmt.Sprintf("boards=%d", n), func(t *testing.T) {
			lan := agentsLAN(t, n)
			judge := lan.Boards()[0]
			lan.ResetCounts()
			lan.Boards()[n-1].Crash()
			suspected := func() bool { return judge.Role() == election.Candidate }
			if !lan.RunUntil(suspected, 10*interval) {
				t.Fatal("the judge does not suspect the leader")
			}
			// Phase 2 goes on meanwhile; what it sends is not counted here. COLLECT is out already.
			watch := lan.Watch()
			since := lan.Counts
			lan.RunUntil(func() bool { _, ok := watch.Settled(); return ok }, 10*interval)
			got := map[string]int{"COLLECT": lan.Counts.Type(wire.TypeCollect).Messages()}
			for _, kind := range []wire.Type{wire.TypeReport, wire.TypeLeader, wire.TypeCoordinator} {
				got[kind.String()] = lan.Counts.Type(kind).Messages() - since.Type(kind).Messages()
			}
			// The dead leader is trusted until the judge misses its ACK.
			want := map[string]int{"COLLECT": n - 1, "REPORT": n - 2, "LEADER": n - 1, "COORDINATOR": n - 1}
			assert.Equal(t, want, got, "messages of a takeover")
			after, _ := watch.Settled()
			assert.Is(t, 2*capitalDelta+2*latency, after, "from the suspicion on")
			assert.Is(t, wire.ID(n-1), watch.Leader().Config.ID, "the leader")
		})
	}
}
