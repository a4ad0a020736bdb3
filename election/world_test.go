package election

import (
	"slices"
	"testing"
	"time"

	"topdog/internal/lab/assert"
	"topdog/wire"
)

// testInterval is H in the tests of this package.
const testInterval = 100 * time.Millisecond

const ms = time.Millisecond

// board is a core under test, with a clock that the test turns.
type board struct {
	*Core
	t        *testing.T
	clock    Instant
	sequence wire.Sequence // of the other boards
	sent     wire.Sequence // of this one
	deaf     bool          // no witness answers
}

// newBoard returns board 2 with a link. The boards 1 and 3 of the tests are
// played by the test itself: below and above it in rank.
func newBoard(t *testing.T, change ...func(*Config)) *board {
	t.Helper()
	cfg := Config{
		ID: 2, Incarnation: 22, Name: "pi2", Priority: 100,
		Interval: testInterval, Algorithm: wire.AlgorithmHeir,
	}
	for _, c := range change {
		c(&cfg)
	}
	definition := Heir
	if cfg.Algorithm == wire.AlgorithmStrict {
		definition = Strict
	}
	c, err := New(cfg, definition, 0)
	assert.NoError(t, err)
	b := &board{Core: c, t: t}
	b.Link(b.clock, true)
	return b
}

// sleep lets d pass, and wakes the core whenever it wants to be woken.
func (b *board) sleep(d time.Duration) (effects []Effect) {
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

// witnessed has the witness answer that the board asks by these effects, if it does.
func (b *board) witnessed(effects []Effect) []Effect {
	all := slices.Clone(effects)
	if !b.deaf && slices.ContainsFunc(all, func(e Effect) bool { return e.Kind == EffectAskLAN }) {
		all = append(all, b.Evidence(b.clock)...)
	}
	return all
}

// lead makes the board the leader of those that the test plays.
func (b *board) lead() {
	b.t.Helper()
	b.sleep(300 * time.Millisecond)
	b.Probed(b.clock, false)
	b.sleep(200 * time.Millisecond)
	if b.role != Leader {
		b.t.Fatalf("the board does not lead, it is a %v", b.role)
	}
}

// from returns a message of another board, of priority 100, that runs since the test began.
func (b *board) from(sender wire.ID, kind wire.Type, change ...func(*wire.Message)) *wire.Message {
	b.sequence++
	m := &wire.Message{Header: wire.Header{
		Type: kind, Algorithm: b.cfg.Algorithm, Sender: sender, Term: b.term, Priority: 100,
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

// hear has the core hear a message of another board.
func (b *board) hear(sender wire.ID, kind wire.Type, change ...func(*wire.Message)) []Effect {
	return b.witnessed(b.Step(b.clock, b.from(sender, kind, change...)))
}

// described writes effects in a way that tests can compare and people read.
func described(effects []Effect) (lines []string) {
	for i := range effects {
		lines = append(lines, string(effects[i].Append(nil)))
	}
	return lines
}
