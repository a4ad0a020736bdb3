package wire

import (
	"maps"
	"net/netip"
	"time"
)

const (
	// forgetAfter is how long a board may be silent before its place can be
	// given to another one, if all are taken.
	forgetAfter = time.Hour

	// maxNamesakes bounds the lives of other boards with our id that are listened to
	// at the same time: somebody has cloned a card that often.
	maxNamesakes = 8
)

// Guard decides whether a message is new and its sender alive. It keeps
// recordings from convincing anybody, without a clock or a disk: see "Replay
// protection" in the package comment. It is pure: time comes in as a reading of
// a monotonic clock, randomness from the function given to NewGuard. It is not
// safe for concurrent use.
type Guard struct {
	self contact
	keys Keys // that are accepted; zero in a group without a key

	boards     map[ID]*board
	namesakes  map[Incarnation]*board // the boards with our id
	challenges challenges
	proofs     Limit // of PROOFs to unproven senders; CHALLENGEs have a limit of their own
}

// board is what the guard remembers of one id.
type board struct {
	current life
	// former is the life before the current one. Only plain groups still listen to it.
	former    life
	hasFormer bool
	heardAt   time.Duration
}

// Verdict is what a Guard says about a message. The zero Verdict accepts it.
type Verdict struct {
	// Drop is Accepted, Own, Duplicate, Replayed, Unproven, TableFull or BadTag.
	Drop DropReason

	// Namesake marks every accepted message of another live board that uses our id.
	Namesake bool

	// Replies are the messages to send to the sender, whether or not its
	// message was accepted: nearly always none, and at most a PROOF and a
	// CHALLENGE. Their type, Reply flag and body are filled in.
	Replies []Message

	// ReplyByMulticast says that the replies must be multicast: the sender uses
	// our id and so perhaps our address.
	ReplyByMulticast bool
}

// NewGuard returns a guard for the board self in its present incarnation. keys are those of the
// codec. Nonces come from nonce (RandomNonce, outside of tests).
func NewGuard(self ID, incarnation Incarnation, keys Keys, nonce func() Nonce) *Guard {
	return &Guard{
		self:       contact{self, incarnation},
		keys:       keys,
		boards:     make(map[ID]*board),
		namesakes:  make(map[Incarnation]*board),
		challenges: challenges{nonce: nonce, unmet: make(map[asked]*challenge)},
	}
}

// authenticated reports whether the group has a key.
func (g *Guard) authenticated() bool { return g.keys != Keys{} }

// Admit judges a message that Codec.Decode has accepted. source is the address that it came from. now is
// the reading of a monotonic clock and must not go backwards.
func (g *Guard) Admit(now time.Duration, source netip.Addr, m *Message) Verdict {
	from := asked{contact{m.Sender, m.Incarnation}, source}
	b := g.board(from.contact)
	switch {
	case g.authenticated() && !g.keys.Accept(m.Key):
		return Verdict{Drop: BadTag} // the keys have changed since the codec accepted it
	case from.contact == g.self:
		return Verdict{Drop: Own}
	case b != nil && b.current.incarnation == from.incarnation:
		return g.admitKnown(now, from, b, &b.current, m)
	case b != nil && b.hasFormer && b.former.incarnation == from.incarnation:
		return g.admitKnown(now, from, b, &b.former, m)
	case g.authenticated():
		return g.admitUnknown(now, from, m)
	default:
		return g.beginLife(now, from.contact, m.Key, NewWindow(m.Sequence, 0))
	}
}

// board returns what is remembered of a board, or nil. Several boards with our id may live, and
// each has proven itself. Any other id belongs to one board, so a new life ends the old one.
func (g *Guard) board(c contact) *board {
	if c.id == g.self.id {
		return g.namesakes[c.incarnation]
	}
	return g.boards[c.id]
}

// admitKnown judges a message of a life that was admitted before.
func (g *Guard) admitKnown(now time.Duration, from asked, b *board, l *life, m *Message) Verdict {
	if g.authenticated() && !l.provenWith(m.Key) {
		return g.admitOtherKey(now, from, b, l, m)
	}
	return g.admitNew(now, b, l, m)
}

// admitOtherKey judges a message of a life that has proven itself, but not with the key of the
// message. Both keys are accepted, so the message counts. The life is asked to prove itself with this
// key as well, before the other one is no longer accepted.
func (g *Guard) admitOtherKey(now time.Duration, from asked, b *board, l *life, m *Message) Verdict {
	v := g.admitNew(now, b, l, m)
	if m.Type == TypeProof && g.challenges.metBy(now, from, m.Proof.Nonce) {
		if v.Drop == Accepted {
			g.challenges.met(from, g.size())
			l.prove(m.Key, m.Sequence)
		}
		return v
	}
	v.ReplyByMulticast = v.ReplyByMulticast || m.Sender == g.self.id
	g.askForProof(now, from, &v)
	return v
}

// admitNew accepts a message of a known life that was not heard before.
func (g *Guard) admitNew(now time.Duration, b *board, l *life, m *Message) Verdict {
	if drop := l.admit(m.Key, m.Sequence); drop != Accepted {
		return Verdict{Drop: drop}
	}
	b.heardAt = now
	v := Verdict{Namesake: m.Sender == g.self.id, ReplyByMulticast: m.Sender == g.self.id}
	if g.challenged(m) {
		// This needs no limit: there is one reply to each fresh and verified message.
		v.Replies = []Message{proofFor(m)}
	}
	return v
}

// admitUnknown judges a verified message of a life that has not proven itself. It
// does not disturb what is known of the id: the message may be a recording.
func (g *Guard) admitUnknown(now time.Duration, from asked, m *Message) Verdict {
	if m.Type == TypeProof && g.challenges.metBy(now, from, m.Proof.Nonce) {
		g.challenges.met(from, g.size())
		return g.beginLife(now, from.contact, m.Key, NewWindow(m.Sequence, m.Sequence))
	}
	v := Verdict{Drop: Unproven, ReplyByMulticast: from.id == g.self.id}
	// If neither side has listened to the other, one round trip is enough for both.
	if g.challenged(m) && g.proofs.Allow(now, Rate{replyEvery, replyBurst}) {
		v.Replies = append(v.Replies, proofFor(m))
	}
	if !g.hasRoom(now, from.id) {
		v.Drop = TableFull
		return v
	}
	g.askForProof(now, from, &v)
	return v
}

// askForProof adds a challenge of a life to the replies, if it is time to.
func (g *Guard) askForProof(now time.Duration, from asked, v *Verdict) {
	nonce, due := g.challenges.due(now, from, g.size())
	if !due {
		return
	}
	v.Replies = append(v.Replies, Message{
		Header:    Header{Type: TypeChallenge, Reply: true},
		Challenge: Challenge{Target: from.id, Incarnation: from.incarnation, Nonce: nonce},
	})
}

// size is how many boards there are in the group, as far as this one listens to them.
func (g *Guard) size() int { return len(g.boards) + 1 }

// AcceptKeys changes the keys that are accepted, and forgets what was heard with others. A life that has
// not proven itself with one of them is unknown from now on, and has to prove itself as at first contact.
func (g *Guard) AcceptKeys(keys Keys) {
	g.keys = keys
	ends := func(id ID, b *board) bool {
		if b.current.keep(keys) {
			return false
		}
		g.challenges.forget(contact{id, b.current.incarnation})
		return true
	}
	maps.DeleteFunc(g.boards, ends)
	maps.DeleteFunc(g.namesakes, func(_ Incarnation, b *board) bool { return ends(g.self.id, b) })
}

// beginLife begins a life, and so ends the one that the id had before.
func (g *Guard) beginLife(now time.Duration, from contact, key Fingerprint, w Window) Verdict {
	b := g.board(from)
	if b == nil {
		if b = g.enter(now, from); b == nil {
			return Verdict{Drop: TableFull}
		}
	} else if !g.authenticated() {
		// Without a key nobody can tell a late packet of the old life from a
		// second board. Keep its window, so that at least nothing is heard twice.
		b.former, b.hasFormer = b.current, true
	} else {
		g.challenges.forget(contact{from.id, b.current.incarnation})
	}
	b.current = beginWith(from.incarnation, key, w)
	b.heardAt = now
	return Verdict{Namesake: from.id == g.self.id}
}

// enter adds a board that is not remembered, or returns nil if there is no room.
func (g *Guard) enter(now time.Duration, c contact) *board {
	b := new(board)
	if c.id == g.self.id {
		if len(g.namesakes) >= maxNamesakes {
			g.forgetNamesake()
		}
		g.namesakes[c.incarnation] = b
		return b
	}
	if !g.makeRoom(now) {
		return nil
	}
	g.boards[c.id] = b
	return b
}

// forgetNamesake forgets the namesake that was silent for longest.
func (g *Guard) forgetNamesake() {
	var longest Incarnation
	for i, b := range g.namesakes {
		silent := g.namesakes[longest]
		if silent == nil || b.heardAt < silent.heardAt || b.heardAt == silent.heardAt && i < longest {
			longest = i
		}
	}
	delete(g.namesakes, longest)
	g.challenges.forget(contact{g.self.id, longest})
}

// challenged reports whether m asks this very life of ours for a proof. Plain
// groups have no challenges, and one that appears there is not answered.
func (g *Guard) challenged(m *Message) bool {
	return g.authenticated() && m.Type == TypeChallenge &&
		contact{m.Challenge.Target, m.Challenge.Incarnation} == g.self
}

func proofFor(m *Message) Message {
	return Message{Header: Header{Type: TypeProof, Reply: true}, Proof: Proof{Nonce: m.Challenge.Nonce}}
}

// hasRoom reports whether the id is known, or there is room for it.
func (g *Guard) hasRoom(now time.Duration, id ID) bool {
	return id == g.self.id || g.boards[id] != nil || len(g.boards) < MaxBoards || g.longestSilent(now) != Nobody
}

// makeRoom makes room for one more board. It reports whether that was possible.
func (g *Guard) makeRoom(now time.Duration) bool {
	if len(g.boards) < MaxBoards {
		return true
	}
	id := g.longestSilent(now)
	delete(g.boards, id)
	return id != Nobody
}

// longestSilent returns the board that was not heard for longest, if that is longer
// than forgetAfter, and Nobody otherwise.
func (g *Guard) longestSilent(now time.Duration) ID {
	longest, at := Nobody, now-forgetAfter
	for id, b := range g.boards {
		if b.heardAt < at || b.heardAt == at && id < longest {
			longest, at = id, b.heardAt
		}
	}
	return longest
}
