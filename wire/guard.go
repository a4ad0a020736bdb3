package wire

import (
	"maps"
	"net/netip"
	"time"
)

// Limits of the guard. None of them is part of the protocol: boards may choose
// differently and still understand each other.
const (
	// challengeRetry is how long a challenge is given before the next message of
	// its target causes another one. It doubles with every repetition up to
	// challengeRetryMost, so that recordings of the dead cost little. A round
	// trip on a LAN takes less than 1 ms, on a busy wireless one up to 20.
	challengeRetry     = 20 * time.Millisecond
	challengeRetryMost = challengeRetry << 5

	// nonceLife is how long a nonce may be given back. It bounds how old a
	// PROOF can be that somebody held back on its way.
	nonceLife = time.Second

	// nonceReuse is how long repetitions carry the same nonce, so that a proof
	// that takes longer than challengeRetry is still recognised when it arrives.
	nonceReuse = nonceLife / 2

	// replyEvery and replyBurst limit the replies to unproven senders, of either kind:
	// 200 a second, and at once as many as a full group needs when it meets a new board.
	// A PROOF is asked of one board. Every board of the group would challenge the sender of the
	// same recording, so the challenges of all boards together have that limit, and each board
	// its share of it: as many boards as it listens to do the same.
	replyEvery = 5 * time.Millisecond
	replyBurst = MaxBoards + 1

	// When half of the challenges that may be sent at once are spent, the other half is kept for
	// source addresses that have not spent theirs: sourceBurst at once, and then a part of the board's share
	// as if there were a flood from as many addresses as have a limit of their own (sources). So the
	// recordings that somebody plays do not keep the board from challenging a new one at another address.
	sources     = 256
	sourceBurst = 4
	leastBurst  = 2 * sourceBurst // of a board in a large group

	// maxChallenges bounds the challenges that are remembered. At most
	// replyBurst + nonceLife/replyEvery = 456 are sent within the life of a nonce, so
	// the oldest of 512 can be forgotten without loss.
	maxChallenges = 512

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
	self          contact
	authenticated bool
	nonce         func() Nonce

	boards     map[ID]*board
	namesakes  map[Incarnation]*board // the boards with our id
	challenges map[asked]*outstanding

	// A message of an unproven sender may be a recording, which somebody can play at any
	// rate, so replies to them are limited: each kind by itself, so that a flood of one
	// does not use up the other.
	challengeLimit Limit
	sourceLimits   [sources]Limit // of challenges, by the last byte of the source address
	proofLimit     Limit
}

// contact is one life of one board.
type contact struct {
	id          ID
	incarnation Incarnation
}

// asked is whom a challenge is for: a life that was heard from an address. Whoever plays a board's
// packets from elsewhere gets challenges of his own, and does not delay those of the board.
type asked struct {
	contact
	source netip.Addr
}

// before orders by id, then incarnation, then address.
func (a asked) before(b asked) bool {
	switch {
	case a.id != b.id:
		return a.id < b.id
	case a.incarnation != b.incarnation:
		return a.incarnation < b.incarnation
	default:
		return a.source.Less(b.source)
	}
}

// board is what the guard remembers of one id.
type board struct {
	current life
	// former is the life before the current one, which only plain groups hear on.
	former    life
	hasFormer bool
	heardAt   time.Duration
}

// outstanding is a challenge that was not met yet.
type outstanding struct {
	nonce   Nonce
	drawnAt time.Duration // when the nonce was
	askedAt time.Duration // when it was sent last
	retry   time.Duration // how long to wait from then
}

// Verdict is what a Guard says about a message. The zero Verdict accepts it.
type Verdict struct {
	// Drop is Accepted, Own, Duplicate, Replayed, Unproven or TableFull.
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

// NewGuard returns a guard for the board self in its present incarnation. Nonces
// come from nonce (RandomNonce, outside of tests).
func NewGuard(self ID, incarnation Incarnation, authenticated bool, nonce func() Nonce) *Guard {
	return &Guard{
		self:          contact{self, incarnation},
		authenticated: authenticated,
		nonce:         nonce,
		boards:        make(map[ID]*board),
		namesakes:     make(map[Incarnation]*board),
		challenges:    make(map[asked]*outstanding),
	}
}

// Admit judges a message that Codec.Decode has accepted, and that came from an address. now is
// the reading of a monotonic clock and must not go backwards.
func (g *Guard) Admit(now time.Duration, source netip.Addr, m *Message) Verdict {
	from := asked{contact{m.Sender, m.Incarnation}, source}
	if from.contact == g.self {
		return Verdict{Drop: Own}
	}
	b := g.board(from.contact)
	switch {
	case b != nil && b.current.incarnation == from.incarnation:
		return g.admitKnown(now, from, b, &b.current, m)
	case b != nil && b.hasFormer && b.former.incarnation == from.incarnation:
		return g.admitKnown(now, from, b, &b.former, m)
	case g.authenticated:
		return g.admitUnknown(now, from, m)
	default:
		return g.beginLife(now, from.contact, m.Key, newWindow(m.Sequence, 0))
	}
}

// board returns what is remembered of a board, or nil. Several with our id may live, and
// each has proven itself. Any other id is that of one board, so a new life ends the old one.
func (g *Guard) board(c contact) *board {
	if c.id == g.self.id {
		return g.namesakes[c.incarnation]
	}
	return g.boards[c.id]
}

// admitKnown judges a message of a life that was admitted before.
func (g *Guard) admitKnown(now time.Duration, from asked, b *board, l *life, m *Message) Verdict {
	if g.authenticated && !l.provenWith(m.Key) {
		return g.admitOtherKey(now, from, b, l, m)
	}
	return g.admitNew(now, b, l, m)
}

// admitOtherKey judges a message of a life that has proven itself, but not with the key of the
// message. Both keys are accepted, so it counts; and the life is asked to prove itself with this
// one as well, before the other is not accepted any more.
func (g *Guard) admitOtherKey(now time.Duration, from asked, b *board, l *life, m *Message) Verdict {
	v := g.admitNew(now, b, l, m)
	if m.Type == TypeProof && g.provedBy(now, from, m.Proof.Nonce) {
		if v.Drop == Accepted {
			g.proved(from)
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
		// Needs no limit: one fresh and verified message, one reply.
		v.Replies = []Message{proofFor(m)}
	}
	return v
}

// admitUnknown judges a verified message of a life that has not proven itself. It
// does not disturb what is known of the id: the message may be a recording.
func (g *Guard) admitUnknown(now time.Duration, from asked, m *Message) Verdict {
	if m.Type == TypeProof && g.provedBy(now, from, m.Proof.Nonce) {
		g.proved(from)
		return g.beginLife(now, from.contact, m.Key, newWindow(m.Sequence, m.Sequence))
	}
	v := Verdict{Drop: Unproven, ReplyByMulticast: from.id == g.self.id}
	// One round trip is enough for both if neither side has listened to the other.
	if g.challenged(m) && g.proofLimit.Allow(now, Rate{replyEvery, replyBurst}) {
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
	nonce, ask := g.challenge(now, from)
	if !ask {
		return
	}
	v.Replies = append(v.Replies, Message{
		Header:    Header{Type: TypeChallenge, Reply: true},
		Challenge: Challenge{Target: from.id, Incarnation: from.incarnation, Nonce: nonce},
	})
}

// AcceptKeys forgets what was heard with other keys than these. A life that has not proven
// itself with one of them is unknown from now on, and has to prove itself as at first contact.
func (g *Guard) AcceptKeys(keys Keys) {
	ends := func(id ID, b *board) bool {
		if b.current.keep(keys) {
			return false
		}
		g.end(contact{id, b.current.incarnation})
		return true
	}
	maps.DeleteFunc(g.boards, ends)
	maps.DeleteFunc(g.namesakes, func(_ Incarnation, b *board) bool { return ends(g.self.id, b) })
}

// end forgets the challenges of a life that is listened to no more. What answers one of them may have been sent, and even heard,
// before that: it must not begin the life again, whose packets would be new once more.
func (g *Guard) end(c contact) {
	maps.DeleteFunc(g.challenges, func(from asked, _ *outstanding) bool { return from.contact == c })
}

// beginLife begins a life, and so ends the one that the id had before.
func (g *Guard) beginLife(now time.Duration, from contact, key Fingerprint, w window) Verdict {
	b := g.board(from)
	if b == nil {
		if b = g.enter(now, from); b == nil {
			return Verdict{Drop: TableFull}
		}
	} else if !g.authenticated {
		// Without a key nobody can tell a late packet of the old life from a
		// second board. Keep its window, so that at least nothing is heard twice.
		b.former, b.hasFormer = b.current, true
	} else {
		g.end(contact{from.id, b.current.incarnation})
	}
	b.current = beginWith(from.incarnation, key, w)
	b.heardAt = now
	return Verdict{Namesake: from.id == g.self.id}
}

// enter makes an entry for a board that is not remembered, or returns nil if there is no room.
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

// forgetNamesake forgets the one that was silent for longest.
func (g *Guard) forgetNamesake() {
	var longest Incarnation
	for i, b := range g.namesakes {
		silent := g.namesakes[longest]
		if silent == nil || b.heardAt < silent.heardAt || b.heardAt == silent.heardAt && i < longest {
			longest = i
		}
	}
	delete(g.namesakes, longest)
	g.end(contact{g.self.id, longest})
}

// challenged reports whether m asks this very life of ours for a proof. Plain
// groups have no challenges, and one that appears there is not answered.
func (g *Guard) challenged(m *Message) bool {
	return g.authenticated && m.Type == TypeChallenge &&
		contact{m.Challenge.Target, m.Challenge.Incarnation} == g.self
}

func proofFor(m *Message) Message {
	return Message{Header: Header{Type: TypeProof, Reply: true}, Proof: Proof{Nonce: m.Challenge.Nonce}}
}

// provedBy reports whether the nonce is the one that the life was challenged with, in time.
func (g *Guard) provedBy(now time.Duration, from asked, n Nonce) bool {
	c := g.challenges[from]
	return c != nil && now-c.drawnAt <= nonceLife && n == c.nonce
}

// proved ends a challenge that was met. It does not count, so that boards which all start at once
// have to wait for nothing but their proofs.
func (g *Guard) proved(from asked) {
	delete(g.challenges, from)
	all, one := g.challengeRates()
	g.challengeLimit.giveBack(all)
	g.sourceLimit(from.source).giveBack(one)
}

// mayChallenge reports whether one more challenge may be sent, and counts it.
func (g *Guard) mayChallenge(now time.Duration, source netip.Addr) bool {
	all, one := g.challengeRates()
	if !g.challengeLimit.has(now, all, 1) {
		return false
	}
	own, plenty := g.sourceLimit(source).Allow(now, one), g.challengeLimit.has(now, all, all.Burst/2+1)
	return (own || plenty) && g.challengeLimit.Allow(now, all)
}

// challengeRates returns this board's share of the challenges of its group, and how much of that one
// source address may have of the half that is kept.
func (g *Guard) challengeRates() (all, one Rate) {
	boards := len(g.boards) + 1
	every := time.Duration(boards) * replyEvery
	return Rate{every, max(replyBurst/boards, leastBurst)}, Rate{sources * every, sourceBurst}
}

// sourceLimit returns the limit of a source address. Boards of one subnet share one if it has more than 256 addresses.
func (g *Guard) sourceLimit(source netip.Addr) *Limit { return &g.sourceLimits[source.As16()[15]] }

// challenge returns the nonce to challenge the life with, if it is time to.
func (g *Guard) challenge(now time.Duration, from asked) (nonce Nonce, ask bool) {
	c := g.challenges[from]
	if c != nil && now-c.askedAt < c.retry || !g.mayChallenge(now, from.source) {
		return Nonce{}, false
	}
	if c == nil {
		if len(g.challenges) >= maxChallenges {
			g.forgetOldestChallenge()
		}
		c = &outstanding{nonce: g.nonce(), drawnAt: now, retry: challengeRetry}
		g.challenges[from] = c
	} else {
		c.retry = min(2*c.retry, challengeRetryMost)
		if now-c.drawnAt >= nonceReuse {
			c.nonce, c.drawnAt = g.nonce(), now
		}
	}
	c.askedAt = now
	return c.nonce, true
}

func (g *Guard) forgetOldestChallenge() {
	var oldest asked
	var at time.Duration
	found := false
	for from, c := range g.challenges {
		// Equal times are told apart by id, so that a simulation repeats itself exactly.
		if !found || c.askedAt < at || c.askedAt == at && from.before(oldest) {
			oldest, at, found = from, c.askedAt, true
		}
	}
	delete(g.challenges, oldest)
}

// hasRoom reports whether the id is known or could become so.
func (g *Guard) hasRoom(now time.Duration, id ID) bool {
	return id == g.self.id || g.boards[id] != nil || len(g.boards) < MaxBoards || g.longestSilent(now) != Nobody
}

// makeRoom makes sure that one more board fits, if that is possible.
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
