package election

import (
	"time"

	"topdog/election/clock"
	"topdog/election/silence"
	"topdog/wire"
)

// DuplicateID receives a message of another live board that has this board's id.
// The one that started later stays out.
func (c *Core) DuplicateID(now Instant, m *wire.Message) []Effect {
	c.enter(now)
	if c.role != Isolated {
		if c.votes.needed() {
			c.doubtOwnVote()
		}
		c.resolveConflict(Notice{Kind: NoticeDuplicateID, Board: m.Sender}, ReasonDuplicateID, m)
	}
	return c.effects
}

// OtherVersion tells that a board of this group speaks another version of the protocol.
// Nothing else of what it says is known. This board stays out as long as such a board is
// heard, unless its own group has a leader already: a group that is upgraded board by board
// must not have two. A recording of such a packet so keeps nobody from leading.
func (c *Core) OtherVersion(now Instant, board wire.ID) []Effect {
	c.enter(now)
	if c.role == Isolated {
		return c.effects
	}
	c.notify(Notice{Kind: NoticeOtherVersion, Board: board})
	switch {
	case c.role == Barred:
		c.barred.end = clock.Due(c.now + barredFor)
	case c.leader == wire.Nobody:
		c.becomeBarred(ReasonOtherVersion)
	}
	return c.effects
}

// resolveConflict decides which of two boards that cannot live together stays: the one
// that is in already, else the one that runs for longer.
func (c *Core) resolveConflict(n Notice, reason Reason, m *wire.Message) {
	c.notify(n)
	if c.role == Barred && ofTheGuard(m) {
		return
	}
	breaksOut := c.now-c.conflict.at >= barredFor
	c.conflict.at = c.now
	if breaksOut {
		c.conflict.since = c.now
	}
	switch {
	case c.role == Barred:
		c.barred.end = clock.Due(c.now + barredFor)
	case c.role == Listener && takesPart(m):
		c.becomeBarred(reason)
	case m.Type == wire.TypeHello && c.younger(m):
		c.becomeBarred(reason)
	case breaksOut:
		c.sendHello() // so that the other one can compare ages at once
	case m.Type != wire.TypeHello:
		// The other one may not have listened to that yet. Until one of them leaves, both say it again.
		c.hello = c.hello.Before(max(c.now+tellAgeAfter, c.conflict.told+c.cfg.Interval))
	}
}

// tellAgeAfter is how long a board waits before it says again how old it is. It has just proven
// itself to the other one, or will have by then.
const tellAgeAfter = 10 * time.Millisecond

// ofTheGuard reports whether a message belongs to the guard and not to the election. A board
// that stays out says nothing but that it lives, so it must not keep others out.
func ofTheGuard(m *wire.Message) bool {
	return m.Type == wire.TypeChallenge || m.Type == wire.TypeProof
}

// takesPart reports whether the sender is in already. One that listens, as all do
// when they are switched on together, only sends HELLOs without a leader, and QUERYs, and
// proves that it lives.
func takesPart(m *wire.Message) bool {
	switch {
	case m.Leading:
		return true
	case m.Type == wire.TypeHello:
		return m.Hello.Following != wire.Nobody
	default:
		return m.Type != wire.TypeQuery && !ofTheGuard(m)
	}
}

// younger reports whether this process started after the sender of a HELLO. Ages
// travel as whole seconds, so this board cuts its own as well: then both compare
// the same two numbers. Between equal ones the incarnation decides.
//
// Boards that started within one second of each other may look at different
// moments and come to different results. If both have stayed, the conflict lasts,
// and then the incarnation decides between nearly equal ages too.
func (c *Core) younger(m *wire.Message) bool {
	var equal time.Duration
	if c.now-c.conflict.since >= barredFor {
		equal = time.Second
	}
	mine, its := (c.now - c.startedAt).Truncate(time.Second), m.Hello.Age
	if d := mine - its; -equal <= d && d <= equal {
		return c.cfg.Incarnation < m.Incarnation
	}
	return mine < its
}

// hearRival decides between two leaders that hear each other, after a partition has healed. If
// the highest rank always leads, the other one releases the address at once and resigns, and the
// higher one then proclaims itself in a term above both (see leaderHears). Otherwise who served
// keeps the address, see settleRivalry.
func (c *Core) hearRival(m *wire.Message) {
	if c.votes.needed() {
		c.hearRivalTerm(m)
		return
	}
	c.notify(Notice{Kind: NoticeRival, Board: m.Sender})
	rival := c.rankOf(&m.Header)
	suspended := c.now < c.leading.doubtUntil && m.Term > c.term
	unheard := c.unheard(m)
	switch {
	case c.definition.HighestLeads && c.Above(rival, c.rank()):
		c.yield(m, ReasonRival)
	case suspended:
		c.yield(m, ReasonSuspended)
	case unheard:
		c.yield(m, ReasonUnheard)
	case !c.definition.HighestLeads:
		c.settleRivalry(m)
	default:
		c.term = max(c.term, m.Term)
		if m.Type != wire.TypeRival { // a leader that looks for this board sends up to 25 a second; answer it alone
			c.reply()
		}
		if c.definition.ComparesScores {
			c.sayHello(m.Sender) // a HEARTBEAT does not tell the score, which the rival must know
		} else {
			c.replyTo(m.Sender) // perhaps multicast does not reach it
		}
	}
}

// yield releases the address for a rival, and resigns in its favour.
func (c *Core) yield(m *wire.Message, reason Reason) {
	c.term = max(c.term, m.Term)
	c.becomeFollower(m.Sender, reason)
	c.rivals.yieldedTo, c.rivals.yieldedAt = m.Sender, c.now
	c.sendResign(m.Sender)
}

// unheard reports whether this leader must think that nobody hears it: a rival
// of lower rank goes on leading although it was answered time and again, and
// no live board says that it follows this one. A rival that could hear would
// have released the address within a round trip. If others do follow this leader, or the LAN answers it, it is
// the rival that hears nobody, and to yield would give it the address.
func (c *Core) unheard(m *wire.Message) bool {
	if c.now-c.rivals.heardAt > 2*c.cfg.Interval {
		c.rivals.heardSince, c.rivals.whoHears = c.now, false
	}
	c.rivals.heardAt = c.now
	if c.now-c.rivals.heardSince >= c.cfg.Interval && !c.rivals.whoHears {
		c.rivals.whoHears = true
		c.askWhoHears()
	}
	return c.now-c.rivals.heardSince > c.listenWindow() && !c.roster.Followed(c.now, c.cfg.ID, m.Sender) &&
		c.evidence.foreignAt < c.rivals.heardSince
}

// askWhoHears asks who hears this leader. One that has replaced a deaf leader, whose address did not answer, hears that one lead
// on from the start, and followers say only once a second by themselves whom they follow. In a group of two only the LAN can
// answer.
func (c *Core) askWhoHears() {
	if c.definition.watches {
		c.multicast(query(wire.PurposeJoin, 1))
		c.askLAN()
	}
}

// reclaim proclaims this leader anew, above a term that a former rival has used,
// and announces the address anew to clients that have sent to the rival.
func (c *Core) reclaim(above wire.Term) {
	c.term = nextTerm(max(c.term, above))
	c.leading.reclaimedAt = c.now
	c.acquire()
	c.proclaim()
}

// crossing reports whether a RESIGN in favour of this board has crossed one that
// this board has sent in favour of a sender of higher rank.
func (c *Core) crossing(m *wire.Message) bool {
	return m.Sender == c.rivals.yieldedTo && c.now-c.rivals.yieldedAt < c.cfg.Interval && c.Above(c.rankOf(&m.Header), c.rank())
}

// When a partition has healed, the address goes to the fitter leader, and of two that are as fit
// to the one that more boards have followed since the younger one of the two began to lead. Rosters remember
// followers for seconds, and followers change sides as soon as they hear a higher term, so nothing else tells who
// served. One of two leaders decides, and the other one obeys.

// settleRivalry receives a message of another leader. The one of the lower term decides, or the
// lower rank where the terms are equal. It knows its own reach, and is told the other one's.
func (c *Core) settleRivalry(m *wire.Message) {
	c.leading.reclaim = clock.Deadline{} // the board of the higher term is found
	lower := m.Term > c.term || m.Term == c.term && c.Above(c.rankOf(&m.Header), c.rank())
	told := m.Type == wire.TypeRival && m.Rival.Rival == c.cfg.ID
	switch {
	case told && m.Rival.Decision == wire.DecisionYield:
		c.yield(m, ReasonRivalServed)
	case !lower:
		c.reply()
		rival := c.rival(m.Sender, c.reign())
		if told {
			rival = c.rival(m.Sender, min(c.reign(), m.Rival.Age))
			rival.Reply = true
		}
		c.send(m.Sender, rival)
	case m.Grade < c.fitness.told:
		c.yield(m, ReasonRivalFitter)
	case m.Grade > c.fitness.told:
		c.depriveRival(m)
	case c.roster.Reach(c.now, c.reign()) == 0, m.Type == wire.TypeCoordinator && !m.Reply:
		// Nobody has followed this board, or nobody can have done so since the other one began to lead.
		c.yield(m, ReasonRivalServed)
	case !told, m.Rival.Age > c.reign() && !m.Reply:
		// The rival has not told its reach, or has counted it over its own reign although this one is the
		// younger.
		c.askRival(m.Sender)
	case c.roster.Reach(c.now, min(c.reign(), m.Rival.Age)) > int(m.Rival.Reach):
		c.depriveRival(m)
	default:
		c.yield(m, ReasonRivalServed)
	}
}

// depriveRival decides that another leader gives up the lead, and this one keeps it.
func (c *Core) depriveRival(m *wire.Message) {
	rival := c.rival(m.Sender, c.reign())
	rival.Rival.Decision = wire.DecisionYield
	c.send(m.Sender, rival)
	c.reclaim(m.Term)
}

// askRival asks another leader for its reach, but no more often than it can answer.
func (c *Core) askRival(rival wire.ID) {
	if c.now-c.rivals.askedAt >= silence.RoundTripMin {
		c.rivals.askedAt = c.now
		c.send(rival, c.rival(rival, c.reign()))
	}
}

// hearExceeded is for a leader that hears a board which knows of a higher term: somebody was
// elected meanwhile, and perhaps leads. A heartbeat at once makes that board answer if it
// does. If nobody does, this leader proclaims itself anew.
func (c *Core) hearExceeded(m *wire.Message) {
	if c.definition.HighestLeads {
		c.reclaim(m.Term)
		return
	}
	c.reply()
	c.leading.exceeded = max(c.leading.exceeded, m.Term)
	if !c.leading.reclaim.Set {
		c.leading.reclaim = clock.Due(c.now + max(c.grace.Default(), c.detector.RoundTripBound()))
	}
}

// hearDeposed hears of the leader that this one has replaced, and looks for it no longer. If it
// leads now, its silence was that long although it was alive.
func (c *Core) hearDeposed(m *wire.Message) {
	d := c.leading.deposed
	if m.Sender != d.id {
		return
	}
	c.leading.deposed = deposed{}
	if m.Leading && m.Incarnation == d.incarnation {
		silent := c.now - d.due
		c.needGrace(silent, silence.Lesson{Kind: silence.LessonReplaced, Board: m.Sender, Late: silent})
	}
}
