package election

import (
	"testing"
	"time"

	"topdog/internal/lab/assert"
	"topdog/wire"
)

// The keys of these tests have different marks, as the two keys of a board do.
const oldKey, newKey = wire.Fingerprint(1), wire.Fingerprint(1 << 31)

// with has a message come with a key, and with that sequence number unless it is 0.
func with(key wire.Fingerprint, sequence wire.Sequence) func(*wire.Message) {
	return func(m *wire.Message) {
		m.Key = key
		if sequence != 0 {
			m.Sequence = sequence
		}
	}
}

// TestKeyDropped: somebody with the old key uses up the sequence numbers of a board. What that board says with the new
// key is heard as soon as the old one is dropped, and not what it has said before.
func TestKeyDropped(t *testing.T) {
	const spent = 0xfff00000
	for _, kind := range []wire.Type{wire.TypeHeartbeat, wire.TypeHello} {
		b := newBoard(t)
		beat := func() []Effect { return b.hear(3, wire.TypeHeartbeat, leading, with(newKey, 0)) }
		beat()
		first := b.sequence
		b.hear(3, kind, leading, with(oldKey, spent))
		b.sleep(10 * testInterval)
		if beat(); b.role == Follower {
			t.Fatalf("%v: a %v while the old key is accepted", kind, b.role)
		}
		b.KeyDropped(b.clock, oldKey)
		assert.Is(t, first, b.roster.Peer(3).Newest(), "%v: what came with the new key is forgotten as well", kind)
		if beat(); b.role != Follower || b.leader != 3 || b.lastLeader.lastHeard != b.sequence {
			t.Errorf("%v: a %v of %v, which was heard at %v last and not at %v", kind, b.role, b.leader, b.lastLeader.lastHeard, b.sequence)
		}
	}
}

// TestKeyDroppedKeepsPromise: a RESIGN from before the heartbeat on which a promise rests does not release it, with
// whichever key each of them came. The promise ends when it would have ended anyway.
func TestKeyDroppedKeepsPromise(t *testing.T) {
	b := newVoter(t)
	resign := b.sequence + 1
	b.sequence++
	b.hear(3, wire.TypeHeartbeat, leading, with(oldKey, 0))
	until := b.votes.promise.Until
	if until <= b.clock {
		t.Fatalf("no promise: %+v", b.votes.promise)
	}
	b.KeyDropped(b.clock, oldKey)
	b.hear(3, wire.TypeResign, with(newKey, resign))
	if p := b.votes.promise; p.Until != until || !p.Is(3, b.roster.Peer(3).Incarnation) {
		t.Errorf("the promise was until %v, and is %+v", until, p)
	}
	b.sleep(until - b.clock)
	b.sleep(time.Millisecond)
	if p := b.votes.promise; p.Is(3, b.roster.Peer(3).Incarnation) {
		t.Errorf("the promise has not ended: %+v", p)
	}
}
