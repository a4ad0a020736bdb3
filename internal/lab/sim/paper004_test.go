package sim_test

import (
	"fmt"
	"testing"
	"time"

	"topdog/election"
	"topdog/internal/lab/sim"
	"topdog/wire"
)

// The tests in this file hold what the algorithms minid and candidates cost, by the
// conventions and with the figures of the paper of Kabashi, Zeqiri and Zabeli.

// grown returns a LAN on which boards 1 to n, but for the absent ones, have agreed on
// a leader and know each other.
func grown(t *testing.T, algorithm wire.Algorithm, fanout election.Fanout, n int, absent ...wire.ID) *sim.Sim {
	t.Helper()
	lan := sim.New(1, sim.Wire{Latency: 200 * time.Microsecond})
	missing := make(map[wire.ID]bool)
	for _, id := range absent {
		missing[id] = true
	}
	var members []wire.ID
	for id := range wire.ID(n) {
		members = append(members, id+1)
	}
	for _, id := range members {
		b := lan.Add(election.Config{
			ID: id, Priority: 100, Interval: interval, Algorithm: algorithm, Fanout: fanout, Members: members,
		})
		if !missing[id] {
			b.Start()
		}
	}
	lan.Run(15 * time.Second)
	return lan
}

// elects has boards crash, the leader first, and one of the others notice. It
// returns what was sent until all follow the board that is to win.
func elects(t *testing.T, lan *sim.Sim, winner, notices wire.ID, crash ...wire.ID) sim.Counts {
	t.Helper()
	lan.Board(crash[0].String()).AfterHeartbeat(func() {
		for _, id := range crash {
			lan.Board(id.String()).Crash()
		}
		lan.ResetCounts()
		lan.Board(notices.String()).Suspect()
	})
	lan.Run(interval)
	return won(t, lan, winner)
}

// joins has a board join, and returns the same.
func joins(t *testing.T, lan *sim.Sim, id wire.ID) sim.Counts {
	t.Helper()
	lan.ResetCounts()
	lan.Board(id.String()).Start()
	return won(t, lan, id)
}

func won(t *testing.T, lan *sim.Sim, winner wire.ID) sim.Counts {
	t.Helper()
	lan.Run(2 * time.Second)
	var boards []*sim.Board
	for _, b := range lan.Boards() {
		if b.Running() {
			boards = append(boards, b)
		}
	}
	if lead, err := leader(boards); err != nil || lead.Config.ID != winner {
		t.Fatalf("board %v leads, want %v: %v", lead, winner, err)
	}
	return lan.Counts
}

// TestMinIDCounts: a broadcast counts as one message.
func TestMinIDCounts(t *testing.T) {
	count := func(c sim.Counts) [3]int {
		return [3]int{
			c.Type(wire.TypeElection).Packets, c.Type(wire.TypeAnswer).Packets, c.Type(wire.TypeCoordinator).Packets,
		}
	}
	for _, n := range []int{5, 10, 20} {
		live := wire.ID(n)
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			for _, test := range []struct {
				name    string
				boards  int
				winner  wire.ID
				notices wire.ID
				crash   []wire.ID
				want    [3]int // ELECTION, OK, COORDINATOR
			}{
				{"best", n + 1, 2, 2, []wire.ID{1}, [3]int{0, 0, 1}},
				{"worst", n + 2, 3, live + 2, []wire.ID{1, 2}, [3]int{1, n - 1, 1}},
				// The paper does not print this one: the second smallest is called upon (3a).
				{"called upon", n + 1, 2, live + 1, []wire.ID{1}, [3]int{1, n - 2, 1}},
			} {
				lan := grown(t, wire.AlgorithmMinID, election.FanoutMulticast, test.boards)
				if got := count(elects(t, lan, test.winner, test.notices, test.crash...)); got != test.want {
					t.Errorf("%s: %v ELECTION, OK and COORDINATOR, want %v", test.name, got, test.want)
				}
			}
		})
	}
}

// TestMinIDJoins: 1 message for the smallest id, else 3. The handover is ours.
func TestMinIDJoins(t *testing.T) {
	for _, test := range []struct {
		joins  wire.ID
		absent []wire.ID
		want   [5]int
	}{
		{1, []wire.ID{1}, [5]int{0, 0, 1, 1, 1}},
		{2, []wire.ID{1, 2}, [5]int{1, 1, 1, 1, 1}},
	} {
		c := joins(t, grown(t, wire.AlgorithmMinID, election.FanoutMulticast, 10, test.absent...), test.joins)
		got := [5]int{
			c[wire.TypeQuery].Packets, c[sim.KindReply].Packets, c.Type(wire.TypeCoordinator).Packets,
			c[sim.KindHandover].Packets, c.Type(wire.TypeResign).Packets,
		}
		if got != test.want {
			t.Errorf("board %v joins: %v QUERY, answer, COORDINATOR, and ours: QUERY for handover and RESIGN; want %v", test.joins, got, test.want)
		}
	}
}

// TestCandidatesCounts: a message to each, the dead coordinator among the processes.
// It makes no difference how they travel.
func TestCandidatesCounts(t *testing.T) {
	count := func(c sim.Counts) [3]int {
		return [3]int{
			c.Type(wire.TypeElection).Messages(), c.Type(wire.TypeAnswer).Messages(), c.Type(wire.TypeCoordinator).Messages(),
		}
	}
	for _, fanout := range []election.Fanout{election.FanoutMulticast, election.FanoutUnicast} {
		for _, n := range []int{5, 10, 20} {
			t.Run(fmt.Sprintf("%v/%d", fanout, n), func(t *testing.T) {
				last, half := wire.ID(n), (n+1)/2
				for _, test := range []struct {
					name    string
					notices wire.ID
					want    [3]int
				}{
					{"best", last - 1, [3]int{0, 0, n - 1}},
					{"worst", 1, [3]int{half, half - 1, n - 1}},
				} {
					lan := grown(t, wire.AlgorithmCandidates, fanout, n)
					if got := count(elects(t, lan, last-1, test.notices, last)); got != test.want {
						t.Errorf("%s: %v ELECTION, OK and COORDINATOR, want %v", test.name, got, test.want)
					}
				}
			})
		}
	}
}
