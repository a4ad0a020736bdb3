package election

import (
	"time"

	"topdog/election/clock"
	"topdog/wire"
)

// A barred board takes part again when it has not heard of the conflict for barredFor.

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

// ofTheGuard reports whether a message is none of the election. A board that stays out
// says nothing but that it lives, so it must not keep others out.
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
