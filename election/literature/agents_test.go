package literature

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"topdog/election"
	"topdog/wire"
)

// agentsBoard returns board 2 in a group of four: 4 leads, and 1 is the judge of
// round 4, which trusts all of them.
func agentsBoard(t *testing.T, change ...func(*election.Config)) *agentsUnderTest {
	t.Helper()
	b := &agentsUnderTest{board: newBoard(t, wire.AlgorithmAgents, change...)}
	b.agents = b.algorithm.(*agents)
	b.hears(1, wire.TypeHello)
	b.hears(3, wire.TypeHello)
	b.hears(4, wire.TypeHeartbeat, leading)
	b.hears(1, wire.TypeOK, ok(4, 1, 2, 3, 4))
	if b.Role() != election.Follower || b.Leader() != 4 || b.judge != 1 || b.current != 4 {
		t.Fatalf("the board is a %v of %v in round %d, whose judge is %v", b.Role(), b.Leader(), b.current, b.judge)
	}
	return b
}

type agentsUnderTest struct {
	*board
	*agents
}

func round(k uint32) func(*wire.Message) {
	return func(m *wire.Message) { m.Round.Number = k }
}

func ok(k uint32, trust ...wire.ID) func(*wire.Message) {
	return func(m *wire.Message) { m.OK = wire.OK{Round: k, Trust: trust} }
}

func report(k, timestamp uint32, list ...wire.Standing) func(*wire.Message) {
	return func(m *wire.Message) { m.Report = wire.Report{Round: k, Timestamp: timestamp, Standings: list} }
}

func naming(id wire.ID) func(*wire.Message) {
	return func(m *wire.Message) { m.Leader.Leader = id }
}

func priority(p uint8) func(*wire.Message) {
	return func(m *wire.Message) { m.Priority = p }
}

// TestAgentsTasks holds what a board does that is not the judge, line by line of the
// pseudo-code.
func TestAgentsTasks(t *testing.T) {
	for _, test := range []struct {
		name      string
		play      func(b *agentsUnderTest) []string
		want      []string
		wantRound uint32
		wantJudge wire.ID
	}{
		{"OK of this round (36)", func(b *agentsUnderTest) []string {
			return b.hears(1, wire.TypeOK, ok(4, 1, 2))
		}, []string{"ACK to 1"}, 4, 1},
		{"OK without this board (33)", func(b *agentsUnderTest) []string {
			return b.hears(1, wire.TypeOK, ok(5, 1, 3, 4)) // of round 6, 3 is the judge
		}, []string{"START to all"}, 6, 3},
		{"OK without this board so soon after that", func(b *agentsUnderTest) []string {
			b.hears(1, wire.TypeOK, ok(5, 1, 3, 4))
			return b.hears(3, wire.TypeOK, ok(6, 1, 3, 4))
		}, nil, 6, 3},
		{"OK without this board one δ after that", func(b *agentsUnderTest) []string {
			b.hears(1, wire.TypeOK, ok(5, 1, 3, 4))
			b.sleep(b.okInterval())
			return b.hears(3, wire.TypeOK, ok(6, 1, 3, 4)) // of round 7, 4 is the judge
		}, []string{"START to all"}, 7, 4},
		{"OK of a later round (41)", func(b *agentsUnderTest) []string {
			return b.hears(3, wire.TypeOK, ok(6, 1, 2, 3, 4))
		}, []string{"ACK to 3"}, 6, 3},
		{"OK of a later round from somebody else", func(b *agentsUnderTest) []string {
			return b.hears(1, wire.TypeOK, ok(6, 1, 2, 3, 4))
		}, []string{"ACK to 1"}, 6, 1},
		{"OK of an earlier round (44)", func(b *agentsUnderTest) []string {
			return b.hears(3, wire.TypeOK, ok(3, 1, 2, 3, 4))
		}, []string{"START to 3"}, 4, 1},
		{"OK of this round from a second judge of larger id", func(b *agentsUnderTest) []string {
			return b.hears(3, wire.TypeOK, ok(4, 1, 2, 3, 4))
		}, []string{"ACK to 3"}, 4, 3},
		{"OK of this round from a second judge of smaller id", func(b *agentsUnderTest) []string {
			b.hears(3, wire.TypeOK, ok(4, 1, 2, 3, 4))
			return b.hears(1, wire.TypeOK, ok(4, 1, 2, 3, 4))
		}, nil, 4, 3},
		{"START of a later round (42)", func(b *agentsUnderTest) []string {
			return b.hears(1, wire.TypeStart, round(6)) // by multicast, so 3 has heard it
		}, nil, 6, 3},
		{"START of a round of which it is the judge (27)", func(b *agentsUnderTest) []string {
			return b.hears(1, wire.TypeStart, round(5))
		}, []string{"OK to all"}, 5, 2},
		{"START of this round", func(b *agentsUnderTest) []string {
			return b.hears(3, wire.TypeStart, round(4))
		}, nil, 4, 1},
		{"START of an earlier round, which the judge answers", func(b *agentsUnderTest) []string {
			return b.hears(3, wire.TypeStart, round(3))
		}, nil, 4, 1},
		{"START of an earlier round, to the judge (44)", func(b *agentsUnderTest) []string {
			b.hears(1, wire.TypeStart, round(5))
			return b.hears(3, wire.TypeStart, round(3))
		}, []string{"START to 3"}, 5, 2},
		{"START after the counter has wrapped", func(b *agentsUnderTest) []string {
			b.hears(1, wire.TypeOK, ok(1<<31, 1, 2, 3, 4))
			b.hears(1, wire.TypeOK, ok(1<<32-1, 1, 2, 3, 4))
			return b.hears(3, wire.TypeStart, round(2))
		}, nil, 2, 3},
		{"COLLECT (68)", func(b *agentsUnderTest) []string {
			return b.hears(1, wire.TypeCollect, round(4))
		}, []string{"REPORT to 1"}, 4, 1},
		{"COLLECT of an earlier round", func(b *agentsUnderTest) []string {
			return b.hears(3, wire.TypeCollect, round(3))
		}, []string{"START to 3"}, 4, 1},
		{"LEADER names this board (64)", func(b *agentsUnderTest) []string {
			b.hears(1, wire.TypeCollect, round(4))
			return b.hears(1, wire.TypeLeader, naming(2))
		}, []string{"follower -> leader: the judge named it", "take", "COORDINATOR to all"}, 4, 1},
		{"LEADER names another board", func(b *agentsUnderTest) []string {
			b.hears(1, wire.TypeCollect, round(4))
			return b.hears(1, wire.TypeLeader, naming(3))
		}, nil, 4, 1},
		{"LEADER is not from the judge", func(b *agentsUnderTest) []string {
			b.hears(1, wire.TypeCollect, round(4))
			return b.hears(3, wire.TypeLeader, naming(2))
		}, nil, 4, 1},
		{"LEADER after the leader was heard", func(b *agentsUnderTest) []string {
			b.hears(1, wire.TypeCollect, round(4))
			b.sleep(time.Millisecond)
			b.hears(4, wire.TypeHeartbeat, leading)
			return b.hears(1, wire.TypeLeader, naming(2))
		}, nil, 4, 1},
		{"LEADER without COLLECT while the leader is trusted", func(b *agentsUnderTest) []string {
			return b.hears(1, wire.TypeLeader, naming(2))
		}, nil, 4, 1},
		{"LEADER for a board that must not lead", func(b *agentsUnderTest) []string {
			b.Reprioritise(b.clock, 0, false)
			b.hears(1, wire.TypeCollect, round(4))
			return b.hears(1, wire.TypeLeader, naming(2))
		}, nil, 4, 1},
		{"a leader that is asked by COLLECT lives", func(b *agentsUnderTest) []string {
			b.hears(4, wire.TypeResign, func(m *wire.Message) { m.Resign.Successor = 2 })
			b.sleep(time.Millisecond)
			return b.hears(1, wire.TypeCollect, round(4))
		}, []string{"HEARTBEAT to all"}, 4, 1},
		{"a leader that is named", func(b *agentsUnderTest) []string {
			b.hears(4, wire.TypeResign, func(m *wire.Message) { m.Resign.Successor = 2 })
			b.sleep(time.Millisecond)
			return b.hears(1, wire.TypeLeader, naming(2))
		}, []string{"HEARTBEAT to all"}, 4, 1},
		{"the leader dies, which is not the judge (8)", func(b *agentsUnderTest) []string {
			return described(b.sleep(3 * testInterval))
		}, nil, 4, 1},
		{"the leader dies, which is the judge", func(b *agentsUnderTest) []string {
			b.hears(4, wire.TypeOK, ok(7, 1, 2, 3, 4))
			return described(b.sleep(3 * testInterval)) // of round 8, 1 is the judge
		}, []string{"START to all"}, 8, 1},
		{"no OK for 2δ (38)", func(b *agentsUnderTest) []string {
			b.sleep(3 * testInterval)
			return described(b.sleep(testInterval)) // of round 5, this board is the judge
		}, []string{"OK to all", "follower -> candidate: the leader fell silent", "COLLECT to all"}, 5, 2},
		{"joining", func(b *agentsUnderTest) []string {
			b.Link(b.clock, false)
			b.Link(b.clock, true)
			b.hears(4, wire.TypeHeartbeat, leading)
			return b.hears(1, wire.TypeOK, ok(4, 1, 3, 4)) // of round 5, this board is the judge
		}, []string{"OK to all"}, 5, 2},
	} {
		t.Run(test.name, func(t *testing.T) {
			b := agentsBoard(t)
			got := slices.DeleteFunc(test.play(b), func(s string) bool { return s == "HELLO to all" })
			if diff := cmp.Diff(test.want, got, equateEmpty); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if b.current != test.wantRound || b.judge != test.wantJudge {
				t.Errorf("it is in round %d, whose judge is %v, want %d and %v", b.current, b.judge, test.wantRound, test.wantJudge)
			}
		})
	}
}

// TestAgentsUnicast holds what a board does with START where each board is sent one of its own.
func TestAgentsUnicast(t *testing.T) {
	for _, test := range []struct {
		name      string
		sender    wire.ID
		round     uint32
		wantRound uint32
		wantJudge wire.ID
	}{
		{"START of a later round (17)", 1, 6, 6, 3},
		{"START of an earlier round (44)", 3, 3, 4, 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			b := agentsBoard(t, func(c *election.Config) { c.Fanout = election.FanoutUnicast })
			same(t, []string{"START to 3"}, b.hears(test.sender, wire.TypeStart, round(test.round)))
			if b.current != test.wantRound || b.judge != test.wantJudge {
				t.Errorf("it is in round %d, whose judge is %v, want %d and %v", b.current, b.judge, test.wantRound, test.wantJudge)
			}
		})
	}
}

// equateEmpty makes no difference between nil and an empty list.
var equateEmpty = cmp.FilterValues(func(a, b []string) bool { return len(a) == 0 && len(b) == 0 }, cmp.Ignore())

// TestAgentsJudge holds whom the judge trusts: everybody at first, and after 2δ those
// whose ACK it has had within the last 2δ (lines 28 and 29).
func TestAgentsJudge(t *testing.T) {
	b := agentsBoard(t)
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
		if diff := cmp.Diff(want, b.Trust()); diff != "" {
			t.Errorf("after %d times δ (-want +got):\n%s", i, diff)
		}
		b.sleep(b.okInterval())
	}
}

// TestAgentsChoice holds whom the judge names: it hears these reports, and 4 is dead.
func TestAgentsChoice(t *testing.T) {
	type heard struct {
		from      wire.ID
		priority  uint8 // of its messages
		timestamp uint32
		list      []wire.Standing
	}
	list := func(p1, p2, p3, p4 uint8) []wire.Standing {
		return []wire.Standing{{ID: 1, Priority: p1}, {ID: 2, Priority: p2}, {ID: 3, Priority: p3}, {ID: 4, Priority: p4}}
	}
	for _, test := range []struct {
		name    string
		reports []heard
		want    []string
	}{
		{"the newest list counts", []heard{{1, 100, 5, list(200, 100, 100, 250)}, {3, 100, 2, list(100, 100, 200, 250)}},
			[]string{"LEADER of 1"}},
		{"the newest list comes last", []heard{{1, 100, 5, list(200, 100, 100, 250)}, {3, 100, 7, list(100, 100, 200, 250)}},
			[]string{"LEADER of 3"}},
		{"equal priorities", []heard{{1, 100, 5, list(100, 100, 100, 100)}, {3, 100, 5, list(100, 100, 100, 100)}},
			[]string{"LEADER of 3"}},
		{"this board is the most important one", []heard{{1, 100, 5, list(100, 150, 100, 250)}, {3, 100, 5, nil}},
			[]string{"candidate -> leader: the judge named it", "take", "COORDINATOR to all", "LEADER of 2"}},
		{"the most important one has not reported", []heard{{1, 100, 5, list(120, 100, 200, 250)}},
			[]string{"LEADER of 1"}},
		{"the most important one must not lead any more", []heard{{1, 100, 5, list(120, 100, 200, 250)}, {3, 0, 5, nil}},
			[]string{"LEADER of 1"}},
		{"the suspect comes last", []heard{{4, 100, 5, list(100, 100, 100, 250)}, {3, 100, 5, nil}},
			[]string{"LEADER of 3"}},
		{"who is not in the list comes after those that are", []heard{{1, 100, 5, list(100, 90, 0, 0)[:2]}, {3, 250, 5, nil}},
			[]string{"LEADER of 1"}},
		{"there is no list", []heard{{1, 100, 0, nil}, {3, 150, 0, nil}},
			[]string{"LEADER of 3"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			b := agentsBoard(t)
			b.hears(1, wire.TypeStart, round(5))
			b.Suspect(b.clock)
			b.sleep(time.Millisecond)
			for _, r := range test.reports {
				b.hears(r.from, wire.TypeReport, priority(r.priority), report(5, r.timestamp, r.list...))
			}
			if r := b.Role(); r != election.Candidate && test.reports[0].from != 4 {
				t.Fatalf("the judge is a %v", r)
			}
			var got []string
			for at := b.clock; b.clock < at+2*b.delay(); {
				effects := b.sleep(time.Millisecond)
				for i, line := range described(effects) {
					if line == "LEADER to all" {
						line = "LEADER of " + effects[i].Message.Leader.Leader.String()
					}
					got = append(got, line)
				}
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}
