package literature

import (
	"testing"
	"time"

	"topdog/election"
	"topdog/wire"
)

// TestModifiedSteps goes through the report's steps, by their letters where its
// example has them.
func TestModifiedSteps(t *testing.T) {
	fresh := func(t *testing.T) *board { return newFamilyBoard(t, wire.AlgorithmModified) }
	following3 := func(t *testing.T) *board { b := fresh(t); b.follow(3); return b }
	following4 := func(t *testing.T) *board { b := fresh(t); b.follow(4); return b }
	alone := func(t *testing.T) *board {
		b := newBoard(t, wire.AlgorithmModified)
		b.lead()
		return b
	}
	begins := []string{"follower -> candidate: the leader fell silent", "HALT to all", "ELECTION to all"}
	wins := []string{"candidate -> leader: nobody answered for the leader", "take", "COORDINATOR to all"}
	// haltFor is how long a HALT that no COORDINATOR follows forbids elections.
	const haltFor = 4*limit + testInterval

	for _, test := range []struct {
		name  string
		start func(t *testing.T) *board
		steps []step
	}{
		{"nobody answers", following3, []step{
			{"A", notices, begins},
			{"just before T", passes(limit - time.Millisecond), nil},
			{"T", passes(time.Millisecond), wins},
		}},
		{"the highest of those that answer is told START", following4, []step{
			{"A", notices, begins},
			{"B", hears(3, wire.TypeAnswer), nil},
			{"B, higher", hears(6, wire.TypeAnswer), nil},
			{"B, lower than that", hears(5, wire.TypeAnswer), nil},
			{"C", passes(limit), []string{"START to 6"}},
			{"waits", passes(limit), nil},
			{"E", hears(6, wire.TypeCoordinator, leading, ahead), []string{"candidate -> follower: a new leader proclaimed itself"}},
		}},
		{"answered by a board of lower rank", following4, []step{
			{"A", notices, begins},
			{"which nobody may do", hears(1, wire.TypeAnswer), nil},
			{"wins", passes(limit), wins},
		}},
		{"the one that was told START dies", following4, []step{
			{"some time later", passes(testInterval / 2), nil},
			{"A", notices, begins},
			{"B", hears(3, wire.TypeAnswer), nil},
			{"C", passes(limit), []string{"START to 3"}},
			{"begins again", passes(2*limit + testInterval), []string{"HALT to all", "ELECTION to all"}},
			{"nobody answers now", passes(limit), wins},
		}},
		{"asked, and told START", following4, []step{
			{"halted", hears(1, wire.TypeHalt), nil},
			{"B", hears(1, wire.TypeElection), []string{"ANSWER to 1"}},
			{"D", hears(1, wire.TypeStart), []string{"follower -> candidate: a board of lower rank holds an election", "ELECTION to all"}},
			{"its own flag is cleared", flag, []string{"not halted"}},
			{"told again", hears(1, wire.TypeStart), nil},
			{"E", passes(limit), []string{"candidate -> leader: a board of lower rank holds an election", "take", "COORDINATOR to all"}},
		}},
		{"told START while another board is to take over", following4, []step{
			{"the leader hands over", hears(4, wire.TypeResign, func(m *wire.Message) { m.Resign.Successor = 5 }),
				[]string{"follower -> follower: the leader resigned"}},
			{"which comes first", hears(1, wire.TypeStart), nil},
		}},
		{"told START without a leader", following4, []step{
			{"halted", hears(1, wire.TypeHalt), nil},
			{"the leader leaves", hears(4, wire.TypeResign), []string{"follower -> follower: the leader resigned"}},
			{"D", hears(1, wire.TypeStart), []string{"follower -> candidate: a board of lower rank holds an election", "ELECTION to all"}},
		}},
		{"told START by a board of higher rank", following4, []step{
			{"does not concern it", hears(3, wire.TypeStart), nil},
		}},
		{"asked by a board of higher rank", following4, []step{
			{"does not concern it", hears(3, wire.TypeElection), nil},
		}},
		{"halted", following3, []step{
			{"step 1b", hears(1, wire.TypeHalt), nil},
			{"notices", notices, nil},
			{"the flag is set", passes(haltFor - time.Millisecond), nil},
			{"and is cleared in the end", passes(time.Millisecond), begins},
		}},
		{"halted, and the leader lives", following3, []step{
			{"step 1b", hears(1, wire.TypeHalt), nil},
			{"its HELLO is no COORDINATOR", hears(3, wire.TypeHello, leading), nil},
			{"the flag is set", flag, []string{"halted"}},
		}},
		{"halted until a COORDINATOR", following3, []step{
			{"step 1b", hears(1, wire.TypeHalt), nil},
			{"step 2f", hears(3, wire.TypeCoordinator, leading), nil},
			{"notices", notices, begins},
		}},
		{"halted, and the COORDINATOR of the new leader is lost", following3, []step{
			{"step 1b", hears(1, wire.TypeHalt), nil},
			{"its heartbeat", hears(4, wire.TypeHeartbeat, leading, ahead), []string{"follower -> follower: a new leader proclaimed itself"}},
			{"notices", notices, begins},
		}},
		{"two at once, the other one is higher", following4, []step{
			{"A", notices, begins},
			{"gives way", hears(3, wire.TypeHalt), []string{"candidate -> follower: a board of higher rank is at it"}},
			{"for as long as it is halted", passes(haltFor - time.Millisecond), nil},
			{"notices again", passes(time.Millisecond), begins},
		}},
		{"two at once, the other one is lower", following3, []step{
			{"A", notices, begins},
			{"goes on", hears(1, wire.TypeHalt), nil},
			{"answers it", hears(1, wire.TypeElection), []string{"ANSWER to 1"}},
			{"wins", passes(limit), wins},
		}},
		{"recovers: step 3", fresh, []step{
			{"hears the leader", hears(3, wire.TypeHeartbeat, leading), []string{
				"listener -> follower: heard the leader", "follower -> candidate: joining", "HALT to all", "ELECTION to all",
			}},
			{"B", hears(3, wire.TypeAnswer, leading), nil},
			{"C", passes(limit), []string{"START to 3"}},
			{"some time later", passes(limit), nil},
			{"the leader lives", hears(3, wire.TypeHeartbeat, leading), nil},
			{"its COORDINATOR is lost", passes(limit + testInterval), []string{"candidate -> follower: the leader answered"}},
		}},
		{"recovers while an election is held", fresh, []step{
			{"halted", hears(1, wire.TypeHalt), nil},
			{"asked, has not recovered yet", hears(1, wire.TypeElection), nil},
			{"holds none", hears(3, wire.TypeHeartbeat, leading), []string{"listener -> follower: heard the leader"}},
		}},
		{"recovers while an election is held that a lower rank wins", fresh, []step{
			{"halted", hears(1, wire.TypeHalt), nil},
			{"told who won", hears(1, wire.TypeCoordinator, leading), []string{
				"listener -> follower: heard the leader", "follower -> candidate: outranks the leader", "HALT to all", "ELECTION to all",
			}},
			{"asks it to hand over", passes(limit), []string{"QUERY to 1"}},
		}},
		{"finds itself above the leader while it is halted", fresh, []step{
			{"halted", hears(1, wire.TypeHalt), nil},
			{"joins", hears(1, wire.TypeHeartbeat, leading), []string{"listener -> follower: heard the leader"}},
			{"some time later", passes(haltFor / 2), nil},
			{"the leader lives", hears(1, wire.TypeHeartbeat, leading), nil},
			{"cleared", passes(haltFor / 2), []string{"follower -> candidate: outranks the leader", "HALT to all", "ELECTION to all"}},
		}},
		{"the leader is told START: figure 8", alone, []step{
			{"halted", hears(1, wire.TypeHalt), nil},
			{"B", hears(1, wire.TypeElection), []string{"ANSWER to 1"}},
			{"D and E, nobody is above it", hears(1, wire.TypeStart), []string{"COORDINATOR to all"}},
		}},
		{"the leader is told START, and asks", alone, []step{
			{"hears of a higher rank", hears(3, wire.TypeHello), nil},
			{"D", hears(1, wire.TypeStart), []string{"ELECTION to all"}},
			{"told again", hears(1, wire.TypeStart), nil},
			{"B", hears(3, wire.TypeAnswer), nil},
			{"C, and goes on leading", passes(limit), []string{"HEARTBEAT to all", "START to 3"}},
			{"hands over", hears(3, wire.TypeQuery, func(m *wire.Message) { m.Query.Purpose = wire.PurposeHandover }),
				[]string{"release", "leader -> follower: a board of higher rank asked for the lead", "RESIGN to all"}},
		}},
		{"must not lead", func(t *testing.T) *board {
			b := newFamilyBoard(t, wire.AlgorithmModified, func(c *election.Config) { c.Priority = 0 })
			b.follow(3)
			return b
		}, []step{
			{"notices", notices, nil},
			{"asked", hears(1, wire.TypeElection), nil},
			{"told START", hears(1, wire.TypeStart), nil},
		}},
	} {
		t.Run(test.name, func(t *testing.T) { test.start(t).play(test.steps) })
	}
}

// flag tells the election flag.
func flag(b *board) []string {
	if b.algorithm.(*modified).halted() {
		return []string{"halted"}
	}
	return []string{"not halted"}
}
