package literature

import (
	"slices"
	"testing"
	"time"

	"topdog/election"
	"topdog/wire"
)

// newFamilyBoard returns board 2 of a group that runs an algorithm of the bully's family.
// It has heard the boards 1 and 3, which the test plays.
func newFamilyBoard(t *testing.T, a wire.Algorithm, change ...func(*election.Config)) *board {
	t.Helper()
	b := newBoard(t, a, change...)
	b.hears(1, wire.TypeHello)
	b.hears(3, wire.TypeHello)
	b.sleep(time.Millisecond) // it says HELLO and asks who leads
	return b
}

func TestBullySteps(t *testing.T) {
	fresh := func(t *testing.T) *board { return newFamilyBoard(t, wire.AlgorithmBully) }
	following3 := func(t *testing.T) *board { b := fresh(t); b.follow(3); return b }
	alone := func(t *testing.T) *board {
		b := newBoard(t, wire.AlgorithmBully)
		b.lead()
		return b
	}
	for _, test := range []struct {
		name  string
		start func(t *testing.T) *board
		steps []step
	}{
		{"nobody answers", following3, []step{
			{"notices: step 1a", notices, []string{"follower -> candidate: the leader fell silent", "ELECTION to all"}},
			{"just before T", passes(limit - time.Millisecond), nil},
			{"T: step 1b", passes(time.Millisecond), []string{"candidate -> leader: nobody answered for the leader", "take", "COORDINATOR to all"}},
		}},
		{"answered, and told who won", following3, []step{
			{"notices", notices, []string{"follower -> candidate: the leader fell silent", "ELECTION to all"}},
			{"answered", hears(4, wire.TypeAnswer), nil},
			{"waits", passes(2 * limit), nil},
			{"told", hears(4, wire.TypeCoordinator, leading, ahead), []string{"candidate -> follower: a new leader proclaimed itself"}},
		}},
		{"answered, and never told", following3, []step{
			{"some time later", passes(testInterval / 2), nil},
			{"notices", notices, []string{"follower -> candidate: the leader fell silent", "ELECTION to all"}},
			{"answered", hears(4, wire.TypeAnswer), nil},
			{"holds another election", passes(2*limit + testInterval), []string{"ELECTION to all"}},
		}},
		{"called upon: step 2", following3, []step{
			{"from below", hears(1, wire.TypeElection), []string{"ANSWER to 1", "follower -> candidate: a board of lower rank holds an election", "ELECTION to all"}},
			{"again, while it is at it", hears(1, wire.TypeElection), []string{"ANSWER to 1"}},
			{"from above", hears(4, wire.TypeElection), nil},
		}},
		{"called upon, and the leader has proclaimed itself before", following3, []step{
			{"from below", hears(1, wire.TypeElection), []string{"ANSWER to 1", "follower -> candidate: a board of lower rank holds an election", "ELECTION to all"}},
			{"the leader lives, and has yet to answer", hears(3, wire.TypeHeartbeat, leading), nil},
			{"answered", hears(3, wire.TypeAnswer, leading), nil},
			{"the leader goes on", hears(3, wire.TypeHeartbeat, leading), []string{"candidate -> follower: the leader answered"}},
		}},
		{"called upon as the leader", alone, []step{
			{"has nobody to ask", hears(1, wire.TypeElection), []string{"ANSWER to 1", "COORDINATOR to all"}},
			{"again, by another one", hears(1, wire.TypeElection), []string{"ANSWER to 1"}},
		}},
		{"recovers: step 3", fresh, []step{
			{"hears the leader", hears(3, wire.TypeHeartbeat, leading), []string{"listener -> follower: heard the leader", "follower -> candidate: joining", "ELECTION to all"}},
			{"its answer is lost", passes(limit), []string{"candidate -> follower: the leader answered"}},
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			test.start(t).play(test.steps)
		})
	}
}

// TestProbeOfAnEarlierElection: a probe of the address that takes long ends when
// the board holds another election already, and must not end that one early: neither
// while it waits for another board, nor while it waits for answers once more.
func TestProbeOfAnEarlierElection(t *testing.T) {
	for _, a := range []wire.Algorithm{wire.AlgorithmBully, wire.AlgorithmScore} {
		for _, again := range []bool{false, true} {
			b := newFamilyBoard(t, a)
			if began := described(b.sleep(b.listenWindow() + b.algorithm.ElectionDuration())); !slices.Contains(began, "probe") {
				t.Fatalf("%v: does not probe", a)
			}
			b.hears(3, wire.TypeAnswer) // late
			for again && b.seen.DeadlineSet(election.CoordinatorDue) {
				b.sleep(testInterval)
			}
			if got := probed(b); len(got) > 0 {
				t.Errorf("%v: the probe's end made it do %v; it holds an election again: %v", a, got, again)
			}
		}
	}
}

// TestIntroduction: where ELECTIONs are unicast, a board that joins must learn whose
// rank is higher than its own from somewhere else.
func TestIntroduction(t *testing.T) {
	for fanout, want := range map[election.Fanout][]string{election.FanoutMulticast: nil, election.FanoutUnicast: {"HELLO to 1"}} {
		b := newFamilyBoard(t, wire.AlgorithmBully, func(c *election.Config) { c.Fanout = fanout })
		b.follow(3)
		first := hears(1, wire.TypeQuery, func(m *wire.Message) { m.Query.Round = 1 })
		again := hears(1, wire.TypeQuery, func(m *wire.Message) { m.Query.Round = 2 })
		b.play([]step{{fanout.String(), first, want}, {fanout.String() + ", again", again, nil}})
	}
}

// TestAskedLeaderDies: a board that has just started does not know yet how long an answer takes, and gives the leader
// that it asks for the lead several intervals. If that leader dies meanwhile, the board claims as soon as it would
// suspect the leader. Else one that joins would hear of nobody, and two would claim.
func TestAskedLeaderDies(t *testing.T) {
	b := newBoard(t, wire.AlgorithmBully, func(c *election.Config) { c.Detector = election.DetectorAsk })
	b.sleep(time.Millisecond)
	b.play([]step{
		{"outranks the leader", hears(1, wire.TypeHeartbeat, leading), []string{"listener -> follower: heard the leader", "follower -> candidate: joining", "QUERY to 1"}},
		{"the leader may be alive", passes(testInterval), nil},
		{"the leader is late", passes(testInterval), []string{"candidate -> leader: joining", "take", "COORDINATOR to all"}},
	})
}
