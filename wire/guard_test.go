package wire

import (
	"encoding/binary"
	"net/netip"
	"testing"
	"time"

	"topdog/internal/lab/assert"
)

const (
	us     ID          = 0x0a000001
	ourInc Incarnation = 0x11111111
	ms                 = time.Millisecond
)

const (
	keyA Fingerprint = 0x0a
	keyB Fingerprint = 0x8000000b
)

// here is where packets come from in most tests.
var here = netip.MustParseAddr("10.0.0.2")

// sourceOf returns one of many addresses.
func sourceOf(n int) netip.Addr { return netip.AddrFrom4([4]byte{10, 0, 0, byte(n)}) }

// counting returns a source of nonces that are easy to recognise, and never the same.
func counting() func() Nonce {
	var n uint64
	return func() (nonce Nonce) {
		n++
		binary.BigEndian.PutUint64(nonce[8:], n)
		return nonce
	}
}

// speaker is another board as the guard hears it.
type speaker struct {
	contact
	sequence Sequence
	key      Fingerprint // it signs with
}

// says returns the next message of the board.
func (s *speaker) says(kind Type) *Message {
	s.sequence++
	return &Message{Header: Header{Type: kind, Algorithm: AlgorithmHeir, Sender: s.id,
		Incarnation: s.incarnation, Sequence: s.sequence, Key: s.key}}
}

// proves answers the challenge in the verdict.
func (s *speaker) proves(t testing.TB, v Verdict) *Message {
	t.Helper()
	for _, r := range v.Replies {
		if r.Type == TypeChallenge && (contact{r.Challenge.Target, r.Challenge.Incarnation}) == s.contact {
			m := s.says(TypeProof)
			m.Proof.Nonce = r.Challenge.Nonce
			return m
		}
	}
	t.Fatalf("no challenge for %v in %+v", s.contact, v)
	return nil
}

// challenges asks our present life for a proof.
func (s *speaker) challenges() *Message {
	m := s.says(TypeChallenge)
	m.Challenge = Challenge{Target: us, Incarnation: ourInc, Nonce: Nonce{0xcc, 15: byte(s.sequence)}}
	return m
}

func newSpeaker(id ID, incarnation Incarnation) *speaker {
	return &speaker{contact: contact{id, incarnation}, key: keyA}
}

// bothKeys are those that a guard of the tests accepts in a group with a key.
var bothKeys = Keys{Signs: keyA, Also: keyB}

func newGuard(authenticated bool) *Guard {
	if !authenticated {
		return NewGuard(us, ourInc, Keys{}, counting())
	}
	return NewGuard(us, ourInc, bothKeys, counting())
}

// meet makes the guard listen to the speaker.
func meet(t testing.TB, g *Guard, now time.Duration, s *speaker) {
	t.Helper()
	known := g.listensTo(s.contact)
	v := g.Admit(now, here, s.says(TypeHello))
	if v.Drop == Unproven {
		v = g.Admit(now, here, s.proves(t, v))
	}
	if v.Drop != Accepted || known || !g.listensTo(s.contact) {
		t.Fatalf("meeting %v, known %v: %+v", s.contact, known, v)
	}
}

// fill makes the guard listen to so many boards, which sign with the key A.
func fill(t testing.TB, g *Guard, boards int) (speakers []*speaker) {
	t.Helper()
	for i := range boards {
		s := newSpeaker(ID(1000+i), 1)
		meet(t, g, time.Duration(i)*10*ms, s)
		speakers = append(speakers, s)
	}
	return speakers
}

// listensTo tells whether the guard has begun to listen to that life of a board.
func (g *Guard) listensTo(c contact) bool {
	b := g.board(c)
	return b != nil && (b.current.incarnation == c.incarnation || b.hasFormer && b.former.incarnation == c.incarnation)
}

func expect(t testing.TB, what string, got, want Verdict) {
	t.Helper()
	assert.Equal(t, want, got, "%s", what)
}

func challengeTo(s *speaker, nonce byte) Message {
	return Message{
		Header:    Header{Type: TypeChallenge, Reply: true},
		Challenge: Challenge{Target: s.id, Incarnation: s.incarnation, Nonce: Nonce{15: nonce}},
	}
}

func proofOf(m *Message) Message {
	return Message{Header: Header{Type: TypeProof, Reply: true}, Proof: Proof{Nonce: m.Challenge.Nonce}}
}

func TestChallengeIsRepeatedMoreAndMoreSlowly(t *testing.T) {
	g, a := newGuard(true), newSpeaker(2, 20)
	type ask struct {
		At    time.Duration
		Nonce byte
	}
	var got []ask
	for now := time.Duration(0); now < 2200*ms; now += ms {
		v := g.Admit(now, here, a.says(TypeHello))
		for _, r := range v.Replies {
			got = append(got, ask{now, r.Challenge.Nonce[15]})
		}
	}
	want := []ask{{0, 1}, {20 * ms, 1}, {60 * ms, 1}, {140 * ms, 1}, {300 * ms, 1}, {620 * ms, 2}, {1260 * ms, 3}, {1900 * ms, 4}}
	assert.Equal(t, want, got, "challenges")
}

// TestSlowProofCounts: a round trip that takes longer than the retry must not
// chase its own nonce for ever.
func TestSlowProofCounts(t *testing.T) {
	g, a := newGuard(true), newSpeaker(2, 20)
	v := g.Admit(0, here, a.says(TypeHello))
	for now := ms; now < 300*ms; now += ms {
		g.Admit(now, here, a.says(TypeHello))
	}
	expect(t, "proof after 300 ms", g.Admit(300*ms, here, a.proves(t, v)), Verdict{})
}

// The recordings: whatever was recorded of lives that are over must convince nobody.

// TestRecordingOfDeadBoardConvincesNobody plays a whole recorded life, with its
// proofs, to a guard that has never heard of it.
func TestRecordingOfDeadBoardConvincesNobody(t *testing.T) {
	listener, dead := newGuard(true), newSpeaker(2, 20)
	v := listener.Admit(0, here, dead.says(TypeHello))
	recording := []*Message{dead.says(TypeHeartbeat), dead.proves(t, v), dead.says(TypeHeartbeat), dead.challenges(), dead.says(TypeCoordinator)}
	for _, m := range recording[1:] {
		if v := listener.Admit(0, here, m); v.Drop != Accepted {
			t.Fatalf("the recording is no good: %v is %v", m, v.Drop)
		}
	}

	// A guard that was just made, of another life of ours, draws other nonces.
	fresh := NewGuard(us, ourInc+1, bothKeys, func() Nonce { return Nonce{0xff} })
	for now := time.Duration(0); now < 3*time.Second; now += 10 * ms {
		for _, m := range recording {
			if v := fresh.Admit(now, here, m); v.Drop != Unproven || fresh.listensTo(dead.contact) {
				t.Fatalf("at %v, %v: %+v", now, m, v)
			}
		}
	}
}

// TestRecordingOfEarlierLifeConvincesNobody plays the life before the present one
// to a guard that knew it.
func TestRecordingOfEarlierLifeConvincesNobody(t *testing.T) {
	g, old, young := newGuard(true), newSpeaker(2, 20), newSpeaker(2, 21)
	meet(t, g, 0, old)
	var recording []*Message
	for range 100 {
		m := old.says(TypeHeartbeat)
		recording = append(recording, m)
		g.Admit(0, here, m)
	}
	suppressed := old.says(TypeHeartbeat) // recorded, but never heard
	meet(t, g, 0, young)
	for _, m := range append(recording, suppressed) {
		if v := g.Admit(ms, here, m); v.Drop != Unproven {
			t.Fatalf("%v: %+v", m, v)
		}
	}
	expect(t, "present life", g.Admit(ms, here, young.says(TypeHeartbeat)), Verdict{})
}

// TestReplayWithinLifeConvincesNobody plays a life to a guard that listens to it.
func TestReplayWithinLifeConvincesNobody(t *testing.T) {
	g, a := newGuard(true), newSpeaker(2, 20)
	meet(t, g, 0, a)
	var recording []*Message
	for range 200 {
		m := a.says(TypeHeartbeat)
		recording = append(recording, m)
		expect(t, "live", g.Admit(0, here, m), Verdict{})
	}
	for i, m := range recording {
		want := Replayed
		if len(recording)-i <= windowSize {
			want = Duplicate
		}
		expect(t, "replayed", g.Admit(0, here, m), Verdict{Drop: want})
	}
}

// TestRecordingOfOurOwnEarlierLife must not make us believe in a namesake.
func TestRecordingOfOurOwnEarlierLife(t *testing.T) {
	g, past := newGuard(true), newSpeaker(us, ourInc-1)
	for now := time.Duration(0); now < time.Second; now += 10 * ms {
		if v := g.Admit(now, here, past.says(TypeHeartbeat)); v.Drop != Unproven || v.Namesake {
			t.Fatalf("%+v", v)
		}
	}
}

// TestRepliesAreLimited: recordings of many boards must not make a loudspeaker of us.
func TestRepliesAreLimited(t *testing.T) {
	g := newGuard(true)
	proofs, challenges := 0, 0
	count := func(now time.Duration, id ID) {
		s := newSpeaker(2, Incarnation(id))
		for _, r := range g.Admit(now, sourceOf(int(id)), s.challenges()).Replies {
			if r.Type == TypeProof {
				proofs++
			} else {
				challenges++
			}
		}
	}
	id := ID(0)
	for range 10_000 {
		id++
		count(0, id)
	}
	if proofs != replyBurst || challenges != replyBurst {
		t.Errorf("at once: %d proofs, %d challenges; want %d of each", proofs, challenges, replyBurst)
	}
	proofs, challenges = 0, 0
	for now := ms; now <= 2*time.Second; now += ms {
		id++
		count(now, id)
	}
	// Half of the challenges is kept for other addresses as it comes back.
	if proofs != 400 || challenges > 400 || challenges < 400-replyBurst/2 {
		t.Errorf("within 2 s: %d proofs, %d challenges; want 400 of each, but for challenges that are kept", proofs, challenges)
	}
	if len(g.challenges.unmet) > maxChallenges {
		t.Errorf("%d challenges remembered", len(g.challenges.unmet))
	}

	proofs, challenges = 0, 0
	for range 1000 {
		id++
		count(time.Hour, id)
	}
	if proofs != replyBurst || challenges != replyBurst {
		t.Errorf("after a quiet hour: %d proofs, %d challenges; want %d of each", proofs, challenges, replyBurst)
	}
}

// TestChallengesAreKeptForTheirLife holds the arithmetic of maxChallenges:
// however many lives are recorded, nobody's challenge is forgotten before it is too old anyway.
func TestChallengesAreKeptForTheirLife(t *testing.T) {
	g, a := newGuard(true), newSpeaker(3, 30)
	lives := Incarnation(0)
	flood := func(from, to time.Duration) {
		for now := from; now < to; now += ms {
			for range 5 {
				lives++
				g.Admit(now, sourceOf(int(lives)), newSpeaker(2, lives).says(TypeHello))
			}
		}
	}
	flood(0, 3*time.Second)
	if len(g.challenges.unmet) != maxChallenges {
		t.Fatalf("%d challenges, the flood is too weak", len(g.challenges.unmet))
	}
	const quiet = 10 * time.Second // fills the limit again
	v := g.Admit(quiet, here, a.says(TypeHello))
	flood(quiet, quiet+nonceLife)
	expect(t, "proof at the last moment", g.Admit(quiet+nonceLife, here, a.proves(t, v)), Verdict{})
}

// TestFloodDoesNotLockOut: while recordings of many lives are played as fast as
// anybody can, a real board still gets to prove itself.
func TestFloodDoesNotLockOut(t *testing.T) {
	g, a := newGuard(true), newSpeaker(3, 30)
	for now := time.Duration(0); now < 5*time.Second; now += ms {
		for i := range 20 {
			g.Admit(now, here, newSpeaker(2, Incarnation(i)).says(TypeHello))
		}
		v := g.Admit(now, here, a.says(TypeHello))
		if len(v.Replies) > 0 {
			if v := g.Admit(now+ms/2, here, a.proves(t, v)); v.Drop == Accepted {
				return
			}
		}
	}
	t.Error("no chance to prove itself within 5 s")
}

func TestTableFull(t *testing.T) {
	for _, authenticated := range []bool{false, true} {
		g := newGuard(authenticated)
		speakers := fill(t, g, MaxBoards)
		start := MaxBoards * 10 * ms
		one := newSpeaker(5000, 1)
		expect(t, "one too many", g.Admit(start, here, one.says(TypeHello)), Verdict{Drop: TableFull})

		// Restarts need no room.
		again := newSpeaker(speakers[7].id, 2)
		v := g.Admit(start, here, again.says(TypeHello))
		if authenticated {
			v = g.Admit(start, here, again.proves(t, v))
		}
		expect(t, "restart", v, Verdict{})

		// After an hour the one that was silent for longest makes room: the second
		// one, since the first was heard again.
		g.Admit(start, here, speakers[0].says(TypeHello))
		meet(t, g, start+forgetAfter, one)
		if g.boards[speakers[0].id] == nil || g.boards[speakers[1].id] != nil || len(g.boards) != MaxBoards {
			t.Errorf("authenticated %v: wrong board forgotten, %d left", authenticated, len(g.boards))
		}
	}
}

// TestLastPlace: two boards are challenged while there is one place, and both prove themselves.
func TestLastPlace(t *testing.T) {
	g, a, b := newGuard(true), newSpeaker(2, 20), newSpeaker(3, 30)
	fill(t, g, MaxBoards-1)
	now := MaxBoards * 10 * ms
	forA, forB := g.Admit(now, here, a.says(TypeHello)), g.Admit(now, here, b.says(TypeHello))
	expect(t, "first", g.Admit(now, here, a.proves(t, forA)), Verdict{})
	expect(t, "second", g.Admit(now, here, b.proves(t, forB)), Verdict{Drop: TableFull})
}

func TestRandomNonce(t *testing.T) {
	if a, b := RandomNonce(), RandomNonce(); a == b || a == (Nonce{}) {
		t.Errorf("nonces %x, %x", a, b)
	}
}

// TestSeveralNamesakes: boards with our id prove themselves one by one, and none ends another. More
// of them than there are cards to clone push out the one that was silent for longest.
func TestSeveralNamesakes(t *testing.T) {
	for _, authenticated := range []bool{false, true} {
		g := newGuard(authenticated)
		var twins []*speaker
		for n := range Incarnation(maxNamesakes) {
			twins = append(twins, newSpeaker(us, 20+n))
			meet(t, g, time.Duration(n)*ms, twins[n])
		}
		for _, twin := range twins {
			v := g.Admit(20*ms, here, twin.says(TypeHello))
			if v.Drop != Accepted || !v.Namesake || len(v.Replies) > 0 {
				t.Errorf("authenticated %v, life %v: %+v, want a namesake that is known", authenticated, twin.incarnation, v)
			}
		}
		g.Admit(30*ms, here, twins[0].says(TypeHello))
		meet(t, g, 30*ms, newSpeaker(us, 40))
		if !g.listensTo(twins[0].contact) || g.listensTo(twins[1].contact) || len(g.namesakes) != maxNamesakes {
			t.Errorf("authenticated %v: wrong namesake forgotten, %d left", authenticated, len(g.namesakes))
		}
	}
}

// TestThiefFillsTheTable: whoever has stolen a key makes up a full group. There is room again when his key is gone.
func TestThiefFillsTheTable(t *testing.T) {
	g, a := newGuard(true), newSpeaker(2, 20)
	fill(t, g, MaxBoards)
	a.key = keyB
	now := MaxBoards * 10 * ms
	expect(t, "no room", g.Admit(now, here, a.says(TypeHello)), Verdict{Drop: TableFull})
	g.AcceptKeys(Keys{Signs: keyB})
	meet(t, g, now, a)
}
