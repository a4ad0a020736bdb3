package literature

import (
	"slices"
	"testing"
	"time"

	"topdog/election"
	"topdog/internal/lab/assert"
	"topdog/wire"
)

// testInterval is H in the tests of this package.
const testInterval = 100 * time.Millisecond

// board is a core under test, with a clock that the test turns.
type board struct {
	*election.Core
	t         *testing.T
	cfg       election.Config
	algorithm election.Algorithm
	seen      *election.Board // by the algorithm
	clock     election.Instant
	sequence  wire.Sequence
}

// newBoard returns board 2 of a group that runs an algorithm, with a link. The other
// boards are played by the test itself: 1 is below it in rank, and 3 above it.
func newBoard(t *testing.T, a wire.Algorithm, change ...func(*election.Config)) *board {
	t.Helper()
	cfg := election.Config{
		ID: 2, Incarnation: 22, Name: "pi2", Priority: 100, Interval: testInterval, Algorithm: a,
	}
	for _, c := range change {
		c(&cfg)
	}
	b := newBoardWithoutLink(t, cfg)
	b.Link(b.clock, true)
	return b
}

func newBoardWithoutLink(t *testing.T, cfg election.Config) *board {
	t.Helper()
	b := &board{t: t, cfg: cfg}
	definition := definitions[cfg.Algorithm]
	build := definition.New
	definition.New = func(seen *election.Board) election.Algorithm {
		b.seen, b.algorithm = seen, build(seen)
		return b.algorithm
	}
	var err error
	b.Core, err = election.New(b.cfg, definition, 0)
	assert.NoError(t, err)
	return b
}

// sleep lets d pass, and wakes the core whenever it wants to be woken.
func (b *board) sleep(d time.Duration) (effects []election.Effect) {
	end := b.clock + d
	for {
		at, ok := b.Deadline()
		if !ok || at > end {
			b.clock = end
			return effects
		}
		b.clock = max(b.clock, at)
		effects = append(effects, b.witnessed(b.Wake(b.clock))...)
	}
}

// witnessed has a witness answer that the board asks by these effects.
func (b *board) witnessed(effects []election.Effect) []election.Effect {
	all := slices.Clone(effects)
	if slices.ContainsFunc(all, func(e election.Effect) bool { return e.Kind == election.EffectAskLAN }) {
		all = append(all, b.Evidence(b.clock)...)
	}
	return all
}

// listenWindow is how long a board listens whose detector does not ask.
func (b *board) listenWindow() time.Duration {
	suspectAfter := b.cfg.Interval + b.Status(b.clock).Quality.Margin
	return suspectAfter + b.algorithm.ElectionDuration() + b.cfg.Interval/2
}

// from returns a message of another board, of priority 100, that runs since the test began.
func (b *board) from(sender wire.ID, kind wire.Type, change ...func(*wire.Message)) *wire.Message {
	b.sequence++
	m := &wire.Message{Header: wire.Header{
		Type: kind, Algorithm: b.cfg.Algorithm, Sender: sender, Term: b.Signature().Term, Priority: 100,
		Incarnation: wire.Incarnation(10 * sender), Sequence: b.sequence,
	}}
	m.Heartbeat = wire.Heartbeat{Interval: testInterval, Number: uint8(b.sequence)}
	m.Coordinator = wire.Coordinator{Coordinator: sender, Interval: testInterval, Number: uint8(b.sequence)}
	m.Hello = wire.Hello{Interval: time.Second, Age: b.clock.Truncate(time.Second)}
	for _, c := range change {
		c(m)
	}
	return m
}

func leading(m *wire.Message) { m.Leading = true }

// hears has the core hear a message of another board.
func (b *board) hears(sender wire.ID, kind wire.Type, change ...func(*wire.Message)) []string {
	return described(b.Step(b.clock, b.from(sender, kind, change...)))
}

// described writes effects in a way that tests can compare and people read.
func described(effects []election.Effect) (lines []string) {
	for i := range effects {
		lines = append(lines, string(effects[i].Append(nil)))
	}
	return lines
}

// follow makes the board the follower of another one, which it has just heard.
func (b *board) follow(leader wire.ID) {
	b.t.Helper()
	b.hears(leader, wire.TypeHeartbeat, leading)
	for b.Role() != election.Follower && b.clock < 10*time.Second {
		b.sleep(testInterval) // it holds an election because it joins
		b.hears(leader, wire.TypeHeartbeat, leading)
	}
	if b.Role() != election.Follower || b.Leader() != leader {
		b.t.Fatalf("the board is a %v of %v", b.Role(), b.Leader())
	}
}

// lead makes the board the leader of those that the test plays.
func (b *board) lead() {
	b.t.Helper()
	b.sleep(b.listenWindow() + b.algorithm.ElectionDuration())
	b.Probed(b.clock, false)
	if b.Role() != election.Leader {
		b.t.Fatalf("the board does not lead, it is a %v", b.Role())
	}
}

// agentsBoard returns board 2 in a group of four: 4 leads, and 1 is the judge of
// round 4, which trusts all of them.
func agentsBoard(t *testing.T, change ...func(*election.Config)) *board {
	t.Helper()
	b := newBoard(t, wire.AlgorithmAgents, change...)
	b.hears(1, wire.TypeHello)
	b.hears(3, wire.TypeHello)
	b.hears(4, wire.TypeHeartbeat, leading)
	b.hears(1, wire.TypeOK, func(m *wire.Message) { m.OK = wire.OK{Round: 4, Trust: []wire.ID{1, 2, 3, 4}} })
	if a := b.algorithm.(*agents); b.Role() != election.Follower || b.Leader() != 4 || a.judge != 1 || a.current != 4 {
		t.Fatalf("the board is a %v of %v in round %d, whose judge is %v", b.Role(), b.Leader(), a.current, a.judge)
	}
	return b
}

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

// newScoreBoard returns board 2, whose score is 100, or 5 if it is set from a command.
func newScoreBoard(t *testing.T, change ...func(*election.Config)) *board {
	t.Helper()
	b := newBoard(t, wire.AlgorithmScore, change...)
	b.SetScore(b.clock, 5)
	b.sleep(time.Millisecond) // it says HELLO and asks who leads
	return b
}

// newMember returns a board that runs minid or candidates in a group which it has known for long.
func newMember(t *testing.T, algorithm wire.Algorithm, id, leader wire.ID, others ...wire.ID) *board {
	t.Helper()
	b := newBoard(t, algorithm, func(c *election.Config) { c.ID = id })
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

// newDivided returns board id of boards 1 to 5. Board 5 leads, and has said that 5, 4 and 3 are candidates.
func newDivided(t *testing.T, id wire.ID) *board {
	t.Helper()
	others := slices.DeleteFunc([]wire.ID{1, 2, 3, 4}, func(other wire.ID) bool { return other == id })
	b := newMember(t, wire.AlgorithmCandidates, id, 5, others...)
	b.hears(5, wire.TypeCoordinator, leading, func(m *wire.Message) { m.Coordinator.Candidates = []wire.ID{5, 4, 3} })
	return b
}

// newCalled returns board 3 of boards 1 to 5, whose leader is at the end that matters with either algorithm. The board
// at the other end has asked it for the leader.
func newCalled(t *testing.T, algorithm wire.Algorithm) *board {
	t.Helper()
	leader, asker := wire.ID(1), wire.ID(5)
	if algorithm == wire.AlgorithmCandidates {
		leader, asker = asker, leader
	}
	b := newMember(t, algorithm, 3, leader, asker, 2, 4)
	b.sleep(time.Millisecond)
	b.hears(asker, wire.TypeElection, b.suspecting)
	b.sleep(time.Millisecond)
	return b
}

// suspecting makes an ELECTION say that this board's leader has failed, and that its
// sender heard it last when this board did.
func (b *board) suspecting(m *wire.Message) {
	known := b.seen.Evidence()
	m.Election = wire.Election{Suspect: known.Leader, Incarnation: known.Incarnation, LastHeard: known.LastHeard, Round: 1}
}

// stand makes the board a candidate that has asked.
func (b *board) stand(reason election.Reason) {
	switch a := b.algorithm.(type) {
	case *minid:
		a.stand(reason)
		a.ask(1, nil)
	case *candidates:
		a.stand(reason)
		a.ask(1, nil)
	}
}
