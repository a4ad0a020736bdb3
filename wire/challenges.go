package wire

import (
	"maps"
	"net/netip"
	"time"
)

// Limits of the challenges. None of them is part of the protocol: boards may choose
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
	// same recording, so this is the limit of the challenges of all boards together, and each
	// board has its share of it: as many boards as it listens to do the same.
	replyEvery = 5 * time.Millisecond
	replyBurst = MaxBoards + 1

	// When half of the challenges that may be sent at once are spent, the other half is kept for
	// source addresses that have not spent theirs. Each address has sourceBurst at once, and then the part of the
	// board's share that would be left to it in a flood from all sources, which is how many limits there are. So the
	// recordings that somebody plays do not keep the board from challenging a new one at another address.
	sources     = 256
	sourceBurst = 4
	leastBurst  = 2 * sourceBurst // of a board in a large group

	// maxChallenges bounds the challenges that are remembered. At most
	// replyBurst + nonceLife/replyEvery = 456 are sent within the life of a nonce, so
	// the oldest of 512 can be forgotten without loss.
	maxChallenges = 512
)

// challenges are the ones that a board has sent and that were not met yet, and how many more it may
// send. A message of an unproven sender may be a recording, which somebody can play at any rate.
type challenges struct {
	nonce    func() Nonce
	unmet    map[asked]*challenge
	limit    Limit
	bySource [sources]Limit // by the last byte of the address
}

// contact is one life of one board.
type contact struct {
	id          ID
	incarnation Incarnation
}

// asked is what a challenge is for: a life that was heard from an address. Whoever plays a board's
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

// challenge is a challenge that was not met yet.
type challenge struct {
	nonce   Nonce
	drawnAt time.Duration // when the nonce was drawn
	askedAt time.Duration // when it was sent last
	retry   time.Duration // how long to wait from then
}

// due returns the nonce to challenge a life with, if it is time to, and counts the challenge as sent. boards
// is how many boards there are in the group.
func (c *challenges) due(now time.Duration, to asked, boards int) (nonce Nonce, due bool) {
	unmet := c.unmet[to]
	if unmet != nil && now-unmet.askedAt < unmet.retry || !c.allow(now, to.source, boards) {
		return Nonce{}, false
	}
	if unmet == nil {
		if len(c.unmet) >= maxChallenges {
			c.forgetOldest()
		}
		unmet = &challenge{nonce: c.nonce(), drawnAt: now, retry: challengeRetry}
		c.unmet[to] = unmet
	} else {
		unmet.retry = min(2*unmet.retry, challengeRetryMost)
		if now-unmet.drawnAt >= nonceReuse {
			unmet.nonce, unmet.drawnAt = c.nonce(), now
		}
	}
	unmet.askedAt = now
	return unmet.nonce, true
}

// allow reports whether one more challenge may be sent, and counts it.
func (c *challenges) allow(now time.Duration, source netip.Addr, boards int) bool {
	all, one := challengeRates(boards)
	if !c.limit.has(now, all, 1) {
		return false
	}
	own, plenty := c.ofSource(source).Allow(now, one), c.limit.has(now, all, all.Burst/2+1)
	return (own || plenty) && c.limit.Allow(now, all)
}

// challengeRates returns a board's share of the challenges of its group, and how much of that one
// source address may have of the half that is kept.
func challengeRates(boards int) (all, one Rate) {
	every := time.Duration(boards) * replyEvery
	return Rate{every, max(replyBurst/boards, leastBurst)}, Rate{sources * every, sourceBurst}
}

// ofSource returns the limit of a source address. Boards of one subnet share limits if it has more than 256 addresses.
func (c *challenges) ofSource(source netip.Addr) *Limit { return &c.bySource[source.As16()[15]] }

// metBy reports whether the nonce is the one that the life was challenged with, and comes in time.
func (c *challenges) metBy(now time.Duration, from asked, n Nonce) bool {
	unmet := c.unmet[from]
	return unmet != nil && now-unmet.drawnAt <= nonceLife && n == unmet.nonce
}

// met ends a challenge that was met. It does not count, so that boards that all start at once
// have to wait for nothing but their proofs.
func (c *challenges) met(from asked, boards int) {
	delete(c.unmet, from)
	all, one := challengeRates(boards)
	c.limit.giveBack(all)
	c.ofSource(from.source).giveBack(one)
}

// forget forgets the challenges of a life that is listened to no more. A proof for one of them may have been
// sent, and even heard, before that: it must not begin the life again, since its packets would be new once more.
func (c *challenges) forget(life contact) {
	maps.DeleteFunc(c.unmet, func(to asked, _ *challenge) bool { return to.contact == life })
}

func (c *challenges) forgetOldest() {
	var oldest asked
	var at time.Duration
	found := false
	for to, unmet := range c.unmet {
		// Equal times are told apart by id, so that a simulation repeats itself exactly.
		if !found || unmet.askedAt < at || unmet.askedAt == at && to.before(oldest) {
			oldest, at, found = to, unmet.askedAt, true
		}
	}
	delete(c.unmet, oldest)
}

// Rate is how much of something is allowed: a token comes every so often, and so many fit
// into the bucket.
type Rate struct {
	Every time.Duration
	Burst int
}

// Limit is a token bucket that counts in time instead of tokens (the generic
// cell rate algorithm, ITU-T I.371): spent is the moment at which it is full again.
type Limit struct{ spent time.Duration }

// Allow uses a token, and reports whether there was one.
func (l *Limit) Allow(now time.Duration, r Rate) bool {
	if !l.has(now, r, 1) {
		return false
	}
	l.spent = max(l.spent, now) + r.Every
	return true
}

// has reports whether there are so many tokens.
func (l *Limit) has(now time.Duration, r Rate, tokens int) bool {
	return l.spent-now <= time.Duration(r.Burst-tokens)*r.Every
}

// giveBack puts a token back.
func (l *Limit) giveBack(r Rate) { l.spent -= r.Every }
