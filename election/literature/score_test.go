package literature

import (
	"slices"
	"testing"
	"time"

	"topdog/election"
	"topdog/wire"
)

// tellingScore has a HELLO tell a score.
func tellingScore(n uint32) func(*wire.Message) {
	return func(m *wire.Message) { m.Hello.Score = n }
}

// withScore has an ELECTION tell one.
func withScore(n uint32) func(*wire.Message) {
	return func(m *wire.Message) { m.Election.Score = n }
}

// elected has a COORDINATOR tell one.
func elected(n uint32) func(*wire.Message) {
	return func(m *wire.Message) { m.Coordinator.Score, m.Leading = n, true }
}

// newScore returns board 2, whose score is 100, or 5 if it is set from a command.
func newScoreBoard(t *testing.T, source election.ScoreSource) *board {
	t.Helper()
	b := newBoard(t, wire.AlgorithmScore, func(c *election.Config) { c.ScoreSource = source })
	b.SetScore(b.clock, 5)
	b.sleep(time.Millisecond) // it says HELLO and asks who leads
	return b
}

// TestScoreSteps goes through the rules of the program.
func TestScoreSteps(t *testing.T) {
	fresh := func(t *testing.T) *board { return newScoreBoard(t, election.ScoreFromPriority) }
	of := func(source election.ScoreSource, leader wire.ID, score uint32) func(t *testing.T) *board {
		return func(t *testing.T) *board {
			b := newScoreBoard(t, source)
			b.hears(leader, wire.TypeHello, tellingScore(score), leading)
			b.follow(leader)
			return b
		}
	}
	following3 := of(election.ScoreFromPriority, 3, 120)
	alone := func(t *testing.T) *board { b := fresh(t); b.lead(); return b }
	begins := []string{"follower -> candidate: the leader fell silent", "ELECTION to all"}
	wins := []string{"candidate -> leader: nobody answered for the leader", "take", "COORDINATOR to all"}
	calledUpon := "follower -> candidate: a board of lower rank holds an election"
	outranks := []string{"follower -> candidate: outranks the leader", "ELECTION to all"}

	for _, test := range []struct {
		name  string
		start func(t *testing.T) *board
		steps []step
	}{
		{"nobody overrides it", following3, []step{
			{"rule 1", notices, begins},
			{"before the deadline", says(scoreDeadline-time.Millisecond, "HELLO to all"), nil},
			{"rule 2", passes(time.Millisecond), wins},
		}},
		{"told ok, and who was elected", following3, []step{
			{"rule 1", notices, begins},
			{"rule 4", hears(4, wire.TypeAnswer), nil},
			{"rule 2, not holding any more", says(scoreDeadline, "HELLO to all"), nil},
			{"rule 5", hears(4, wire.TypeCoordinator, elected(130), ahead), []string{"candidate -> follower: a new leader proclaimed itself"}},
		}},
		{"told ok, and nobody was elected", following3, []step{
			{"rule 1", notices, begins},
			{"rule 4", hears(4, wire.TypeAnswer), nil},
			{"some time later", says(time.Second, "HELLO to all"), nil},
			{"told ok by another one", hears(5, wire.TypeAnswer), nil},
			{"waits no longer for that", says(scoreDeadline+election.HandoverRequests*limit-time.Second-time.Millisecond, "HELLO to all"), nil},
			{"rule 1 again", passes(time.Millisecond), []string{"ELECTION to all"}},
		}},
		{"rule 3", following3, []step{
			{"from one that matters more", hears(1, wire.TypeElection, withScore(101)), nil},
			{"from one that matters as much and has the higher id", hears(5, wire.TypeElection, withScore(100)), nil},
			{"from one that matters as much and has the lower id", hears(1, wire.TypeElection, withScore(100)),
				[]string{"ANSWER to 1", calledUpon, "ELECTION to all"}},
			{"while it is holding one", hears(7, wire.TypeElection, withScore(99)), []string{"ANSWER to 7"}},
			{"told ok", hears(5, wire.TypeAnswer), nil},
			{"while it waits", hears(7, wire.TypeElection, withScore(99)), []string{"ANSWER to 7"}},
		}},
		{"the leader is called upon", alone, []step{
			{"rule 3", hears(1, wire.TypeElection, withScore(99)), []string{"ANSWER to 1", "ELECTION to all"}},
			{"while it is holding one", hears(7, wire.TypeElection, withScore(99)), []string{"ANSWER to 7"}},
			{"told ok", hears(5, wire.TypeAnswer), nil},
			{"leads on", says(scoreDeadline, "HEARTBEAT to all", "HELLO to all", "QUERY to all"), nil},
			{"is asked for the lead", hears(5, wire.TypeHello, tellingScore(101)), nil},
			{"lets go", hears(5, wire.TypeQuery, func(m *wire.Message) { m.Query.Purpose = wire.PurposeHandover }),
				[]string{"release", "leader -> follower: a board of higher rank asked for the lead", "RESIGN to all"}},
		}},
		{"the leader is asked for the lead by one that matters less", alone, []step{
			{"is known", hears(5, wire.TypeHello, tellingScore(99)), nil},
			{"keeps it", hears(5, wire.TypeQuery, func(m *wire.Message) { m.Query.Purpose = wire.PurposeHandover }), nil},
		}},
		{"joins, and does not know yet how much the leader matters", fresh, []step{
			{"a heartbeat", hears(3, wire.TypeHeartbeat, leading), []string{"listener -> follower: heard the leader"}},
			{"less", hears(3, wire.TypeHello, tellingScore(99), leading), outranks},
		}},
		{"joins, and the leader matters more", fresh, []step{
			{"more", hears(3, wire.TypeHello, tellingScore(101), leading), []string{"listener -> follower: heard the leader"}},
			{"a heartbeat", hears(3, wire.TypeHeartbeat, leading), nil},
		}},
		{"joins, and the leader matters less", fresh, []step{
			{"less", hears(3, wire.TypeHello, tellingScore(99), leading),
				[]string{"listener -> follower: heard the leader", "follower -> candidate: joining", "ELECTION to all"}},
		}},
		{"the leader begins to matter less, and then more again", following3, []step{
			{"less", hears(3, wire.TypeHello, tellingScore(99), leading), outranks},
			{"some time later", says(scoreDeadline-testInterval, "HELLO to all"), nil},
			{"more", hears(3, wire.TypeHello, tellingScore(101), leading), nil},
			{"the leader lives", hears(3, wire.TypeHeartbeat, leading), nil},
			{"believes that", says(testInterval, "HELLO to all"), []string{"candidate -> follower: the leader answered"}},
		}},
		{"called upon while another board is to take over", following3, []step{
			{"the leader hands over", hears(3, wire.TypeResign, func(m *wire.Message) { m.Resign.Successor = 5 }),
				[]string{"follower -> follower: the leader resigned"}},
			{"which comes first", hears(1, wire.TypeElection, withScore(99)), []string{"ANSWER to 1"}},
		}},
		{"has not joined yet", fresh, []step{
			{"called upon", hears(1, wire.TypeElection, withScore(1)), nil},
		}},
		{"the leader begins to matter less", following3, []step{
			{"by its HELLO", hears(3, wire.TypeHello, tellingScore(99), leading), outranks},
		}},
		{"the leader begins to matter less, but all grow older", of(election.ScoreFromAge, 1, 30), []step{
			{"by its HELLO", hears(1, wire.TypeHello, tellingScore(0), leading), nil},
		}},
		{"begins to matter more", of(election.ScoreFromCommand, 3, 7), []step{
			{"but less than the leader", sets(6), []string{"HELLO to all"}},
			{"as much as the leader, which has the higher id", sets(7), []string{"HELLO to all"}},
			{"more than the leader", sets(8), append([]string{"HELLO to all"}, outranks...)},
			{"while it holds an election its score stays", sets(1), nil},
		}},
		{"the leader answers a rival with its score", alone, []step{
			{"of which it thinks that it matters less", hears(3, wire.TypeHeartbeat, leading, ahead),
				[]string{"notice about 3", "HEARTBEAT to all", "HELLO to 3"}},
			{"which matters more", hears(3, wire.TypeHello, tellingScore(101), leading, ahead),
				[]string{"release", "leader -> follower: another leader has the higher rank", "RESIGN to all"}},
		}},
		{"the leader tells who joins how much it matters", alone, []step{
			{"asked", hears(3, wire.TypeQuery, func(m *wire.Message) { m.Query.Round = 1 }), []string{"HELLO to 3", "HEARTBEAT to 3"}},
			{"only timed", hears(3, wire.TypeQuery), []string{"HEARTBEAT to 3"}},
		}},
		{"must not lead", func(t *testing.T) *board {
			b := newBoard(t, wire.AlgorithmScore, func(c *election.Config) { c.ScoreSource, c.Priority = election.ScoreFromCommand, 0 })
			b.SetScore(b.clock, 500)
			b.sleep(time.Millisecond)
			b.hears(3, wire.TypeHello, tellingScore(1), leading)
			return b
		}, []step{
			{"follows", func(b *board) []string { return []string{b.Role().String()} }, []string{"follower"}},
			{"notices", notices, nil},
			{"called upon", hears(1, wire.TypeElection, withScore(1)), nil},
		}},
	} {
		t.Run(test.name, func(t *testing.T) { test.start(t).play(test.steps) })
	}
}

// says lets time pass in which a board goes on to say some things, and returns what else it does.
func says(d time.Duration, what ...string) func(b *board) []string {
	return func(b *board) (rest []string) {
		for _, line := range described(b.sleep(d)) {
			if !slices.Contains(what, line) {
				rest = append(rest, line)
			}
		}
		return rest
	}
}

func sets(score uint32) func(b *board) []string {
	return func(b *board) []string { return described(b.SetScore(b.clock, score)) }
}
