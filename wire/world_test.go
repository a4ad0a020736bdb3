package wire

import (
	"encoding/binary"
	"math/rand/v2"
	"net/netip"
	"testing"
	"time"
)

// world has a guard, boards that speak, restart and die, and an adversary who
// records every packet, and may suppress, delay and replay any of them at any
// time, from a board's address and from his own. It knows what the guard must never do.
//
// The boards change their key, and go back, as they like. If the adversary is a thief, he has
// the key A; then he is believed until the guard does not accept it any more.
type world struct {
	t             testing.TB
	choose        func(n int) int // a number below n
	authenticated bool
	thief         bool
	keys          Keys // that the guard accepts

	now      time.Duration
	guard    *Guard
	boards   []*speaker
	restarts map[ID]int
	tape     []recorded

	clock    int           // counts events, to tell before from after
	drawn    map[Nonce]int // when the guard first used a nonce
	nonces   uint64
	lives    uint32
	begun    map[proven]int // when the guard drew the nonce that the life has met
	accepted map[accepted]bool
	count    int
}

type recorded struct {
	message Message
	sent    int
}

type accepted struct {
	proven
	sequence Sequence
}

// proven is a life, and the key with which it has proven itself.
type proven struct {
	contact
	key Fingerprint
}

func newWorld(t testing.TB, authenticated, thief bool, choose func(n int) int) *world {
	w := &world{t: t, choose: choose, authenticated: authenticated, thief: authenticated && thief, drawn: make(map[Nonce]int), restarts: make(map[ID]int)}
	if authenticated {
		w.keys = Keys{Signs: keyA, Also: keyB}
	}
	w.boot()
	// One of the boards shares our id.
	for _, id := range []ID{2, 3, 4, us} {
		w.boards = append(w.boards, newSpeaker(id, w.life()))
	}
	for _, s := range w.boards {
		s.key = w.keys.Signs
	}
	return w
}

func (w *world) life() Incarnation {
	w.lives++
	return Incarnation(w.lives)
}

// boot replaces the guard by a new one that knows nothing.
func (w *world) boot() {
	w.guard = NewGuard(us, w.life(), w.keys, func() (n Nonce) {
		w.nonces++
		binary.BigEndian.PutUint64(n[:], w.nonces)
		return n
	})
	w.begun, w.accepted = make(map[proven]int), make(map[accepted]bool)
}

// step lets one thing happen.
func (w *world) step() {
	w.clock++
	s := w.boards[w.choose(len(w.boards))]
	switch w.choose(16) {
	case 0:
		w.now += time.Duration(1+w.choose(1500)) * time.Millisecond
	case 1: // the board dies, and another life begins
		// A plain guard can keep apart two lives of a board, see Guard.beginLife;
		// the tape may hold no more.
		if w.authenticated || w.restarts[s.id] == 0 {
			w.restarts[s.id]++
			key := s.key
			*s = *newSpeaker(s.id, w.life())
			s.key = key
		}
	case 2:
		switch w.choose(8) {
		case 0:
			w.boot()
		case 1:
			w.dropKey(w.choose(2) == 0)
		case 2, 3:
			if w.keys.Also != 0 {
				s.key ^= keyA ^ keyB
			}
		}
	case 3, 4, 5, 6, 7: // the adversary
		if len(w.tape) > 0 {
			w.deliverFrom([]netip.Addr{here, elsewhere}[w.choose(2)], w.tape[w.choose(len(w.tape))])
		}
	case 8: // suppressed, but recorded
		if w.thief && w.choose(2) == 0 {
			w.forge(s)
		}
		w.record(s.says(TypeHeartbeat))
	case 9:
		m := s.says(TypeChallenge)
		m.Challenge = Challenge{w.guard.self.id, w.guard.self.incarnation, Nonce{0xcc}}
		w.deliver(w.record(m))
	default:
		w.now += time.Duration(w.choose(30)) * time.Millisecond
		w.deliver(w.record(s.says(TypeHeartbeat)))
	}
}

// dropKey has the guard accept one key only. Whoever has not changed to it does so then.
func (w *world) dropKey(a bool) {
	if w.keys.Also == 0 || !a && w.thief {
		return // nobody keeps a stolen key
	}
	w.keys = Keys{Signs: keyA}
	if a {
		w.keys = Keys{Signs: keyB}
	}
	for _, s := range w.boards {
		s.key = w.keys.Signs
	}
	w.guard.AcceptKeys(w.keys)
}

// forge has the thief say anything for any life, the dead ones too. He answers every challenge.
func (w *world) forge(s *speaker) {
	said := &speaker{s.contact, Sequence(1 + w.choose(1<<16)), keyA}
	if w.choose(2) == 0 {
		said.incarnation = Incarnation(1 + w.choose(int(w.lives)+1))
	}
	m := said.says(TypeHeartbeat)
	from := contact{m.Sender, m.Incarnation}
	if c := w.guard.challenges.unmet[asked{from, here}]; c != nil && w.choose(4) > 0 {
		m = said.says(TypeProof)
		m.Proof.Nonce = c.nonce
	}
	w.deliver(w.record(m))
}

func (w *world) record(m *Message) recorded {
	w.tape = append(w.tape, recorded{*m, w.clock})
	return w.tape[len(w.tape)-1]
}

// elsewhere is the adversary's own address.
var elsewhere = sourceOf(66)

func (w *world) deliver(r recorded) { w.deliverFrom(here, r) }

// deliverFrom gives the packet to the guard, judges its verdict, and lets the live boards answer: the adversary hands on to
// them what is sent to his address.
func (w *world) deliverFrom(source netip.Addr, r recorded) {
	if w.authenticated && !w.keys.Accept(r.message.Key) { // the codec has verified it before the keys changed
		if v := w.guard.Admit(w.now, source, &r.message); v.Drop != BadTag || len(v.Replies) > 0 {
			w.t.Fatalf("%v, whose key is not accepted any more: %+v", &r.message, v)
		}
		return
	}
	from := proven{contact{r.message.Sender, r.message.Incarnation}, r.message.Key}
	known := w.guard.hasProof(from)
	v := w.guard.Admit(w.now, source, &r.message)
	w.judge(&r, v, !known && w.guard.hasProof(from))
	for _, reply := range v.Replies {
		if reply.Type != TypeChallenge {
			continue
		}
		if _, known := w.drawn[reply.Challenge.Nonce]; !known {
			w.drawn[reply.Challenge.Nonce] = w.clock
		}
		for _, s := range w.boards {
			if (contact{reply.Challenge.Target, reply.Challenge.Incarnation}) != s.contact {
				continue
			}
			m := s.says(TypeProof)
			m.Proof.Nonce = reply.Challenge.Nonce
			proof := w.record(m)
			w.clock++
			if w.choose(4) > 0 { // else the adversary keeps it for later
				w.deliver(proof)
			}
		}
	}
}

// hasProof tells whether the life has proven itself with the key.
func (g *Guard) hasProof(p proven) bool {
	b := g.board(p.contact)
	return b != nil && (b.current.incarnation == p.incarnation && b.current.provenWith(p.key) ||
		b.hasFormer && b.former.incarnation == p.incarnation && b.former.provenWith(p.key))
}

// judge looks at what the guard has said of a packet, and whether it has proven a life.
func (w *world) judge(r *recorded, v Verdict, began bool) {
	m := &r.message
	from := proven{contact{m.Sender, m.Incarnation}, m.Key}
	if v.Drop != Accepted {
		if began || v.Namesake {
			w.t.Fatalf("%v was dropped, and yet: %+v", m, v)
		}
		return
	}
	w.count++
	if v.Namesake != (m.Sender == us) {
		w.t.Fatalf("%v: %+v", m, v)
	}
	if w.authenticated && began {
		drawn, ok := w.drawn[m.Proof.Nonce]
		if m.Type != TypeProof || !ok {
			w.t.Fatalf("%v began a life without a proof", m)
		}
		w.begun[from] = drawn
	}
	if w.thief && w.keys.Accept(keyA) {
		return // whoever has an accepted key can say anything
	}
	key := accepted{from, m.Sequence}
	if w.accepted[key] {
		w.t.Fatalf("%v was accepted twice", m)
	}
	w.accepted[key] = true
	if !w.authenticated {
		return
	}
	begun, ok := w.begun[from]
	if !ok && w.keys.Also != 0 { // it has proven itself with the other key
		begun, ok = w.begun[proven{from.contact, m.Key ^ keyA ^ keyB}]
	}
	if !ok || r.sent < begun {
		w.t.Fatalf("%v was accepted, though sent at %d, before the challenge at %d (%v)", m, r.sent, begun, ok)
	}
}

// TestAdversary lets anything happen in any order.
func TestAdversary(t *testing.T) {
	for _, kind := range []struct{ authenticated, thief bool }{{false, false}, {true, false}, {true, true}} {
		total := 0
		for seed := range uint64(60) {
			r := rand.New(rand.NewPCG(seed, 5))
			w := newWorld(t, kind.authenticated, kind.thief, r.IntN)
			for range 1000 {
				w.step()
			}
			total += w.count

			// When the adversary goes away, everybody who is alive is heard.
			w.now += 2 * time.Second
			w.dropKey(true)
			w.choose = func(n int) int { return n - 1 }
			for range 2 {
				for _, s := range w.boards {
					w.clock++
					w.deliver(w.record(s.says(TypeHeartbeat)))
				}
			}
			for _, s := range w.boards {
				m := s.says(TypeHeartbeat)
				if v := w.guard.Admit(w.now, here, m); v.Drop != Accepted {
					t.Fatalf("seed %d: %v is %v, though nobody interferes", seed, m, v.Drop)
				}
			}
		}
		if total < 60*100 {
			t.Errorf("%+v: only %d messages were accepted; the test proves little", kind, total)
		}
	}
}
