package election

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"topdog/wire"
)

// newBully returns board 2 of a group that runs an algorithm of the bully's family.
// It has heard the boards 1 and 3, which the test plays.
func newBully(t *testing.T, a wire.Algorithm, change ...func(*Config)) *board {
	t.Helper()
	b := newBoard(t, append([]func(*Config){func(c *Config) { c.Algorithm = a }}, change...)...)
	b.told(1, wire.TypeHello)
	b.told(3, wire.TypeHello)
	b.sleep(time.Millisecond) // it says HELLO and asks who leads
	return b
}

// told has the core hear a message of another board that runs the same algorithm.
func (b *board) told(sender wire.ID, kind wire.Type, change ...func(*wire.Message)) []string {
	m := b.from(sender, kind, change...)
	m.Algorithm = b.cfg.Algorithm
	return described(b.Step(b.clock, m))
}

// follow makes the board the follower of another one, which it has just heard.
func (b *board) follow(leader wire.ID) {
	b.t.Helper()
	b.told(leader, wire.TypeHeartbeat, leading)
	for b.role != Follower && b.clock < 10*time.Second {
		b.sleep(testInterval) // it holds an election because it joins
		b.told(leader, wire.TypeHeartbeat, leading)
	}
	if b.role != Follower || b.leader != leader {
		b.t.Fatalf("the board is a %v of %v", b.role, b.leader)
	}
}

// reign makes the board the leader of those that the test plays.
func (b *board) reign() {
	b.t.Helper()
	b.sleep(b.listenWindow() + b.algorithm.lasts())
	b.Probed(b.clock, false)
	if b.role != Leader {
		b.t.Fatalf("the board does not lead, it is a %v", b.role)
	}
}

// step is what a test has a board experience, and what the board does then.
type step struct {
	name string
	do   func(b *board) []string
	want []string
}

func (b *board) play(steps []step) {
	b.t.Helper()
	for _, s := range steps {
		if diff := cmp.Diff(s.want, s.do(b)); diff != "" {
			b.t.Fatalf("%s: -want +got:\n%s", s.name, diff)
		}
	}
}

func hears(sender wire.ID, kind wire.Type, change ...func(*wire.Message)) func(b *board) []string {
	return func(b *board) []string { return b.told(sender, kind, change...) }
}

func passes(d time.Duration) func(b *board) []string {
	return func(b *board) []string { return described(b.sleep(d)) }
}

// notices is how a board learns of its leader's death before its detector does.
func notices(b *board) []string { return described(b.Suspect(b.clock)) }

// probed ends a probe that an election of before began.
func probed(b *board) []string { return described(b.Probed(b.clock, false)) }

// limit is T, the time limit of these algorithms in the tests: with the detector fixed it is H.
const limit = testInterval

func TestBullySteps(t *testing.T) {
	fresh := func(t *testing.T) *board { return newBully(t, wire.AlgorithmBully) }
	following3 := func(t *testing.T) *board { b := fresh(t); b.follow(3); return b }
	alone := func(t *testing.T) *board {
		b := newBoard(t, func(c *Config) { c.Algorithm = wire.AlgorithmBully })
		b.reign()
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

// ahead is a message of a later term.
func ahead(m *wire.Message) { m.Term++ }

// TestProbeOfAnEarlierElection: a probe of the address that takes long ends when
// the board holds another election already, and must not end that one early.
func TestProbeOfAnEarlierElection(t *testing.T) {
	for _, a := range []wire.Algorithm{wire.AlgorithmBully, wire.AlgorithmScore} {
		b := newBully(t, a)
		b.sleep(b.listenWindow() + b.algorithm.lasts())
		if b.probe != probePending {
			t.Fatalf("%v: does not probe", a)
		}
		b.told(3, wire.TypeAnswer) // late
		if got := probed(b); len(got) > 0 {
			t.Errorf("%v: the probe's end made it do %v while it waits for another board", a, got)
		}
		b.probe = probePending
		for b.alarms[alarmVerdict] != never {
			b.sleep(testInterval)
		}
		if got := probed(b); len(got) > 0 {
			t.Errorf("%v: the probe's end made it do %v while it waits for answers", a, got)
		}
	}
}

// TestIntroduction: where ELECTIONs are unicast, a board that joins must learn whose
// rank is higher than its own from somewhere else.
func TestIntroduction(t *testing.T) {
	for fanout, want := range map[Fanout][]string{FanoutMulticast: nil, FanoutUnicast: {"HELLO to 1"}} {
		b := newBully(t, wire.AlgorithmBully, func(c *Config) { c.Fanout = fanout })
		b.follow(3)
		first := hears(1, wire.TypeQuery, func(m *wire.Message) { m.Query.Round = 1 })
		again := hears(1, wire.TypeQuery, func(m *wire.Message) { m.Query.Round = 2 })
		b.play([]step{{fanout.String(), first, want}, {fanout.String() + ", again", again, nil}})
	}
}
