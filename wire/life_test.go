package wire

import (
	"net/netip"
	"testing"
	"time"
)

const (
	keyA Fingerprint = 0x0a
	keyB Fingerprint = 0x8000000b
)

// signedWith returns the message as it is when it was signed with the key.
func (m *Message) signedWith(key Fingerprint) *Message {
	m.Key = key
	return m
}

// meetWith makes the guard listen to the speaker, who signs with the key.
func meetWith(t testing.TB, g *Guard, now time.Duration, s *speaker, key Fingerprint) {
	t.Helper()
	v := g.Admit(now, here, s.says(TypeHello).signedWith(key))
	if v = g.Admit(now, here, s.proves(t, v).signedWith(key)); v.Drop != Accepted {
		t.Fatalf("%v does not prove itself with %v: %+v", s.contact, key, v)
	}
}

// TestChangeOfKeyLosesNothing: a board begins to sign with another key. Each of its messages counts,
// before it has proven itself with that key, after it, and when the old key is gone.
func TestChangeOfKeyLosesNothing(t *testing.T) {
	g, a := newGuard(true), newSpeaker(2, 20)
	meetWith(t, g, 0, a, keyA)
	g.AcceptKeys(Keys{Signs: keyA, Also: keyB})
	expect(t, "with the old key", g.Admit(ms, here, a.says(TypeHeartbeat).signedWith(keyA)), Verdict{})
	late := a.says(TypeHeartbeat).signedWith(keyA)

	first := a.says(TypeHeartbeat).signedWith(keyB)
	v := g.Admit(2*ms, here, first)
	expect(t, "with the new key", v, Verdict{Replies: []Message{challengeTo(a, 2)}})
	expect(t, "its copy", g.Admit(2*ms, here, first), Verdict{Drop: Duplicate})
	expect(t, "a late one with the old key", g.Admit(2*ms, here, late), Verdict{})
	expect(t, "before the proof", g.Admit(3*ms, here, a.says(TypeHeartbeat).signedWith(keyB)), Verdict{})
	expect(t, "the proof", g.Admit(4*ms, here, a.proves(t, v).signedWith(keyB)), Verdict{})
	expect(t, "after the proof", g.Admit(5*ms, here, a.says(TypeHeartbeat).signedWith(keyB)), Verdict{})

	g.AcceptKeys(Keys{Signs: keyB})
	expect(t, "when the old key is gone", g.Admit(6*ms, here, a.says(TypeHeartbeat).signedWith(keyB)), Verdict{})
}

// TestProofCountsOnce: a known life answers a challenge that was drawn for another key, or for another address, and its
// message counts as any other does. Then the board starts again. The recorded answer must not bring the old life back.
func TestProofCountsOnce(t *testing.T) {
	for _, test := range []struct {
		name        string
		source      netip.Addr // from which the challenged message comes
		key         Fingerprint
		beforeKnown bool // it comes before the life is known
	}{
		{"another key", here, keyB, false},
		{"another address", elsewhere, keyA, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			g, old, young := newGuard(true), newSpeaker(2, 20), newSpeaker(2, 21)
			g.AcceptKeys(Keys{Signs: keyA, Also: keyB})
			var v Verdict
			challenged := func() { v = g.Admit(0, test.source, old.says(TypeHeartbeat).signedWith(test.key)) }
			if test.beforeKnown {
				challenged()
			}
			meetWith(t, g, 0, old, keyA)
			if !test.beforeKnown {
				challenged()
			}
			answer := old.proves(t, v).signedWith(keyA)
			expect(t, "the answer", g.Admit(ms, here, answer), Verdict{})
			meetWith(t, g, 30*ms, young, keyA)
			if v := g.Admit(60*ms, test.source, answer); v.Drop != Unproven || !g.listensTo(young.contact) {
				t.Errorf("the recorded answer of the old life: %+v", v)
			}
		})
	}
}

// TestHeldBackProof: somebody holds an answer back, until the life that has given it is over, or has said more with the same key.
// Nothing that was heard is new again by it.
func TestHeldBackProof(t *testing.T) {
	t.Run("of a life that is over", func(t *testing.T) {
		g, old, young := newGuard(true), newSpeaker(2, 20), newSpeaker(2, 21)
		v := g.Admit(0, sourceOf(66), old.says(TypeHeartbeat).signedWith(keyA))
		heldBack := old.proves(t, v).signedWith(keyA)
		meetWith(t, g, 0, old, keyA)
		meetWith(t, g, ms, young, keyA)
		if v := g.Admit(2*ms, sourceOf(66), heldBack); v.Drop != Unproven || !g.listensTo(young.contact) {
			t.Errorf("the answer of the old life: %+v", v)
		}
	})
	t.Run("behind others with its key", func(t *testing.T) {
		g, a := newGuard(true), newSpeaker(2, 20)
		g.AcceptKeys(Keys{Signs: keyA, Also: keyB})
		meetWith(t, g, 0, a, keyA)
		v := g.Admit(0, here, a.says(TypeHeartbeat).signedWith(keyB))
		heldBack, next := a.proves(t, v).signedWith(keyB), a.says(TypeHeartbeat).signedWith(keyB)
		expect(t, "the next message", g.Admit(ms, here, next), Verdict{})
		expect(t, "the answer", g.Admit(2*ms, here, heldBack), Verdict{})
		expect(t, "the next message again", g.Admit(3*ms, here, next), Verdict{Drop: Duplicate})
		g.AcceptKeys(Keys{Signs: keyB})
		expect(t, "when the old key is gone", g.Admit(4*ms, here, a.says(TypeHeartbeat).signedWith(keyB)), Verdict{})
	})
}

// TestChangeOfKeyGoesBack: half the way there and back again.
func TestChangeOfKeyGoesBack(t *testing.T) {
	g, a := newGuard(true), newSpeaker(2, 20)
	meetWith(t, g, 0, a, keyA)
	g.AcceptKeys(Keys{Signs: keyA, Also: keyB})
	v := g.Admit(ms, here, a.says(TypeHeartbeat).signedWith(keyB))
	expect(t, "the proof", g.Admit(ms, here, a.proves(t, v).signedWith(keyB)), Verdict{})
	expect(t, "back", g.Admit(2*ms, here, a.says(TypeHeartbeat).signedWith(keyA)), Verdict{})
	expect(t, "there", g.Admit(2*ms, here, a.says(TypeHeartbeat).signedWith(keyB)), Verdict{})
	g.AcceptKeys(Keys{Signs: keyA})
	expect(t, "when the new key is gone", g.Admit(3*ms, here, a.says(TypeHeartbeat).signedWith(keyA)), Verdict{})
}

// TestHeldBackAcrossTheChange: a message that somebody has held back gets too old by the messages
// with the other key, too.
func TestHeldBackAcrossTheChange(t *testing.T) {
	g, a := newGuard(true), newSpeaker(2, 20)
	meetWith(t, g, 0, a, keyA)
	held := a.says(TypeHeartbeat).signedWith(keyA)
	v := g.Admit(ms, here, a.says(TypeHeartbeat).signedWith(keyB))
	expect(t, "the proof", g.Admit(ms, here, a.proves(t, v).signedWith(keyB)), Verdict{})
	for range windowSize {
		expect(t, "with the new key", g.Admit(ms, here, a.says(TypeHeartbeat).signedWith(keyB)), Verdict{})
	}
	expect(t, "held back", g.Admit(ms, here, held), Verdict{Drop: Replayed})
}

// TestRecordingWithTheOtherKey: what a board has sent with the second key before it has proven
// itself with it is over with the proof.
func TestRecordingWithTheOtherKey(t *testing.T) {
	g, a := newGuard(true), newSpeaker(2, 20)
	meetWith(t, g, 0, a, keyA)
	v := g.Admit(ms, here, a.says(TypeHeartbeat).signedWith(keyB))
	suppressed := a.says(TypeHeartbeat).signedWith(keyB)
	expect(t, "the proof", g.Admit(ms, here, a.proves(t, v).signedWith(keyB)), Verdict{})
	expect(t, "sent before the proof", g.Admit(ms, here, suppressed), Verdict{Drop: Replayed})
}

// The thief has the key A, and no other. What he says while A is accepted counts, as it does of
// everybody who has the key. When A is not accepted any more, nothing of it is left.

// TestThiefSpendsTheNumbers: he speaks for a board that lives, with the greatest number.
func TestThiefSpendsTheNumbers(t *testing.T) {
	for name, proven := range map[string]bool{"proven with both keys": true, "proven with the stolen key": false} {
		t.Run(name, func(t *testing.T) {
			g, a := newGuard(true), newSpeaker(2, 20)
			meetWith(t, g, 0, a, keyA)
			if proven {
				v := g.Admit(0, here, a.says(TypeHeartbeat).signedWith(keyB))
				g.Admit(0, here, a.proves(t, v).signedWith(keyB))
			}
			thief := &speaker{contact: a.contact, sequence: ^Sequence(0) - 1}
			expect(t, "the thief", g.Admit(ms, here, thief.says(TypeHeartbeat).signedWith(keyA)), Verdict{})
			g.AcceptKeys(Keys{Signs: keyB})
			v := g.Admit(2*time.Second, here, a.says(TypeHeartbeat).signedWith(keyB))
			if !proven {
				v = g.Admit(2*time.Second, here, a.proves(t, v).signedWith(keyB))
			}
			expect(t, "the board", v, Verdict{})
		})
	}
}

// TestThiefRaisesTheDead: he has recorded a life that has signed with B, and proves with A that it lives.
func TestThiefRaisesTheDead(t *testing.T) {
	g, dead := newGuard(true), newSpeaker(2, 20)
	var recording []*Message
	for range 10 {
		recording = append(recording, dead.says(TypeHeartbeat).signedWith(keyB))
	}
	thief := newSpeaker(2, 20)
	meetWith(t, g, 0, thief, keyA)
	g.AcceptKeys(Keys{Signs: keyB})
	for _, m := range recording {
		if v := g.Admit(ms, here, m); v.Drop != Unproven {
			t.Fatalf("%v: %+v", m, v)
		}
	}
}

// TestThiefFillsTheTable: he makes up a full group. There is room again when his key is gone.
func TestThiefFillsTheTable(t *testing.T) {
	g, a := newGuard(true), newSpeaker(2, 20)
	for i := range MaxBoards {
		meetWith(t, g, time.Duration(i)*10*ms, newSpeaker(ID(1000+i), 1), keyA)
	}
	now := MaxBoards * 10 * ms
	expect(t, "no room", g.Admit(now, here, a.says(TypeHello).signedWith(keyB)), Verdict{Drop: TableFull})
	g.AcceptKeys(Keys{Signs: keyB})
	meetWith(t, g, now, a, keyB)
}

// TestThiefReplacesALife: he begins another life of a board that lives. The board is heard again
// when it has proven itself, and the life that he has made is over with his key.
func TestThiefReplacesALife(t *testing.T) {
	g, a := newGuard(true), newSpeaker(2, 20)
	meetWith(t, g, 0, a, keyB)
	meetWith(t, g, 0, newSpeaker(2, 21), keyA)
	g.AcceptKeys(Keys{Signs: keyB})
	meetWith(t, g, time.Second, a, keyB)
}
