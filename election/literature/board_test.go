package literature

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"topdog/election"
	"topdog/wire"
)

// testInterval is H in the tests of this package.
const testInterval = 100 * time.Millisecond

// limit is T, the time limit of most of these algorithms in the tests: with the detector
// fixed it is H.
const limit = testInterval

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
	if b.Core, err = election.New(b.cfg, definition, 0); err != nil {
		t.Fatal(err)
	}
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

// ahead is a message of a later term.
func ahead(m *wire.Message) { m.Term++ }

// hears has the core hear a message of another board.
func (b *board) hears(sender wire.ID, kind wire.Type, change ...func(*wire.Message)) []string {
	return described(b.Step(b.clock, b.from(sender, kind, change...)))
}

// described writes effects in a way that tests can compare and people read.
func described(effects []election.Effect) []string {
	var lines []string
	for _, e := range effects {
		switch e.Kind {
		case election.EffectSend:
			to := "all"
			if e.To != wire.Nobody {
				to = e.To.String()
			}
			if e.Floating {
				to = "the address"
			}
			lines = append(lines, fmt.Sprintf("%v to %s", e.Message.Type, to))
		case election.EffectAcquire:
			lines = append(lines, "take")
		case election.EffectRelease:
			lines = append(lines, "release")
		case election.EffectProbe:
			lines = append(lines, "probe")
		case election.EffectChange:
			lines = append(lines, fmt.Sprintf("%v -> %v: %v", e.Change.From, e.Change.To, e.Change.Reason))
		case election.EffectNotice:
			lines = append(lines, fmt.Sprintf("notice about %v", e.Notice.Board))
		case election.EffectFinished:
			lines = append(lines, "finished")
		}
	}
	return lines
}

func same(t *testing.T, want, got []string) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
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
	return func(b *board) []string { return b.hears(sender, kind, change...) }
}

func passes(d time.Duration) func(b *board) []string {
	return func(b *board) []string { return described(b.sleep(d)) }
}

// notices is how a board learns of its leader's death before its detector does.
func notices(b *board) []string { return described(b.Suspect(b.clock)) }

// probed ends a probe that an election of before began.
func probed(b *board) []string { return described(b.Probed(b.clock, false)) }
