package election

import (
	"time"

	"topdog/election/clock"
	"topdog/election/lease"
	"topdog/wire"
)

// The algorithm strict is heir with votes; the package's comment says what that guarantees. What it costs is that the
// address needs a majority of the voters, a list of ids that all boards have in their configuration. Where heir would
// become the leader since nobody objects, the voters are asked first (VOTE, GRANT). Each heartbeat is acknowledged by
// those that it has reached (SUPPORT).
//
// votes.go has what is known of the votes and how a voter votes, and this file the candidacy and how a leader keeps
// its lease.

// stepVotes does what concerns votes. done is false for what heir does without votes as well.
func (c *Core) stepVotes(e Event) (done bool) {
	open := c.candidacy.request.open
	switch e.Kind {
	case EventAddressFree:
		return open // a request for votes waits for nothing
	case AnswersDue:
		if open {
			c.requestVotesAgain()
		}
		return open
	case EventMessage:
		switch e.Message.Type {
		case wire.TypeSupport:
			c.hearSupport(e.Message)
		case wire.TypeVote:
			c.hearVote(e.Message)
		case wire.TypeGrant:
			c.hearGrant(e.Message)
		}
	}
	return false
}

// elect asks the voters for the lead. A leader that hands over says so several times, and
// people and messages may ask again: a candidacy that is open goes on.
func (c *Core) elect(reason Reason) {
	if c.candidacy.request.open {
		return
	}
	// A RESIGN that was repeated behind the request would end the promises on which it counts.
	c.endHandover()
	if c.role != Candidate {
		// The leader that has resigned is not suspected any more.
		c.becomeFollower(wire.Nobody, ReasonResigned)
		c.becomeCandidate(reason)
	}
	c.candidacy.cause = reason
	c.candidacy.request.open, c.candidacy.request.since = true, c.now
	c.candidacy.request.repeat = c.votes.roundTrip(c.cfg.Interval)
	c.requestVotes()
}

// requestVotes asks all voters for their votes, this board first of all.
func (c *Core) requestVotes() {
	ends := c.now + lease.Leased(c.announced())
	item := c.votes.support.Add(lease.Sent{Request: true, At: c.now, Ends: ends})
	c.tell(c.otherVoters(), c.ballot(wire.BallotRequest, item.Number))
	c.answers = clock.Due(c.now + c.candidacy.request.repeat)
	c.vote()
}

// requestVotesAgain repeats a request. A repetition doubles the time until the next one, up to a
// quarter of the interval: a voter that is bound answers when it is free, and a leader that lives
// repeats its heartbeats faster, so that it is heard first when the network recovers. When all that
// was promised before is over, there is no majority, and an interval is soon enough. The leader is
// asked for once more, too, since it or a board that hears it may answer.
func (c *Core) requestVotesAgain() {
	most := c.cfg.Interval / 4
	if c.now-c.candidacy.request.since > c.votes.cap {
		most = c.cfg.Interval
	}
	c.candidacy.request.repeat = min(2*c.candidacy.request.repeat, max(most, c.votes.roundTrip(c.cfg.Interval)))
	c.sendElection(nil)
	c.requestVotes()
}

// otherVoters are the voters beside this board.
func (c *Core) otherVoters() []wire.ID {
	ids := make([]wire.ID, 0, MaxVoters)
	for i := range c.votes.support.Voters {
		if id := c.votes.support.Voters[i].ID; id != c.cfg.ID {
			ids = append(ids, id)
		}
	}
	return ids
}

// hearGrant receives a vote.
func (c *Core) hearGrant(m *wire.Message) {
	g := &m.Grant
	v := c.votes.support.Voter(m.Sender)
	if v == nil || g.Candidate != c.cfg.ID || g.Incarnation != c.cfg.Incarnation || !c.sameVoters(m.Sender, g.Voters) {
		return
	}
	if item := c.votes.support.Request(g.Number); item != nil {
		v.Count(item)
		c.elected()
		c.leaseMoved()
		return
	}
	if !c.candidacy.request.open && c.role != Leader {
		c.withdraw(m.Sender) // it did not hear that, and is bound for nothing
	}
}

// elected makes a candidate the leader that has the votes of a majority, for long enough to be of use.
func (c *Core) elected() {
	if !c.candidacy.request.open || c.votes.support.End(c.now) <= c.now+c.grace.Default()/4 {
		return
	}
	c.becomeLeader(c.candidacy.cause)
	c.leaseMoved()
}

// withdraw releases the votes for this board, of one voter or of all: what it has asked for
// until now it will not use.
func (c *Core) withdraw(from wire.ID) {
	m := c.ballot(wire.BallotWithdraw, c.votes.support.Number)
	if from == wire.Nobody {
		c.tell(c.otherVoters(), m)
	} else {
		c.send(from, m)
	}
}

// endVotes ends a candidacy or a reign. What was promised for it does not count any more,
// so this board is free to support another one: it has released the address before, if it led.
func (c *Core) endVotes(from Role, asked bool) {
	if from != Candidate && from != Leader || c.role == Leader {
		return
	}
	c.votes.support.Forget()
	if c.votes.promise.Is(c.cfg.ID, c.cfg.Incarnation) {
		c.votes.promise.Until = min(c.votes.promise.Until, c.now)
	}
	if asked && c.role != Isolated && c.role != Barred {
		c.withdraw(wire.Nobody)
	}
	c.vote()
}

// observe looks at who is there, and at what ends promises, before the core acts on a message.
func (c *Core) observe(m *wire.Message) {
	if v := c.votes.support.Voter(m.Sender); v != nil && v.Hear(c.now, m.Incarnation) {
		c.notify(Notice{Kind: NoticeVoterTwice, Board: m.Sender})
	}
	if m.Type == wire.TypeResign && c.votes.promise.Release(c.now, &m.Header) && m.Resign.Successor != c.cfg.ID {
		c.vote()
	}
}

// doubtOwnVote is told that another board has this board's id.
func (c *Core) doubtOwnVote() {
	if self := c.votes.support.Voter(c.cfg.ID); self != nil {
		self.Twice = clock.Due(c.now + lease.TwiceFor)
		c.notify(Notice{Kind: NoticeVoterTwice, Board: c.cfg.ID})
		c.leaseMoved()
	}
}

// sameVoters reports whether another board has the same list of voters. If it does not, people
// are told, on all boards: two lists may have majorities that have no voter in common.
func (c *Core) sameVoters(board wire.ID, hash uint32) bool {
	if hash == c.votes.hash {
		return true
	}
	c.notify(Notice{Kind: NoticeOtherVoters, Board: board})
	if c.now-c.votes.listTold >= barredFor {
		c.votes.listTold = c.now
		c.multicast(c.ballot(wire.BallotList, 0))
	}
	return false
}

// A leader that the majority does not acknowledge for long lets go: it may be one that is heard
// and does not hear, and then the voters are bound to it. Five intervals are more than any
// loss that the network recovers from; within half a second people press a key again.
const (
	letGoIntervals = 5
	letGoLeast     = 500 * time.Millisecond
)

// numberHeartbeat is told of a heartbeat or a COORDINATOR of this leader before it is sent. The owner
// tells Sent which sequence the packet of that number got.
func (c *Core) numberHeartbeat(to wire.ID, kind wire.Type) (number uint32) {
	item := c.votes.support.Add(lease.Sent{Term: c.term, At: c.now, Ends: c.now + lease.Leased(c.announced())})
	if to == wire.Nobody || kind == wire.TypeCoordinator {
		c.leading.fence.beatAt = c.now
		c.leading.fence.repeat = clock.Due(c.now + c.votes.roundTrip(c.cfg.Interval))
		c.supportSelf(item, lease.Promised(c.announced()))
		c.leaseMoved()
	}
	return item.Number
}

// hearSupport receives the acknowledgement of a heartbeat.
func (c *Core) hearSupport(m *wire.Message) {
	a, v := &m.Support, c.votes.support.Voter(m.Sender)
	if v == nil || c.role != Leader || a.Leader != c.cfg.ID || a.Incarnation != c.cfg.Incarnation ||
		!c.sameVoters(m.Sender, a.Voters) {
		return
	}
	item := c.votes.support.Heartbeat(a.Heartbeat)
	if item == nil || item.Term != a.Term {
		return
	}
	if !c.second.present {
		c.votes.trip.Observe(float64(c.now - item.At))
	}
	acknowledged := c.beatAcknowledged()
	v.Count(item)
	if c.second.present && !acknowledged && c.beatAcknowledged() {
		c.second.countedAt = c.now
		c.doubtFirstPath() // nobody suspects a leader that is deaf
	}
	c.leaseMoved()
}

// leaseMoved is called when the end of the lease may be another one.
func (c *Core) leaseMoved() {
	if c.role != Leader {
		return
	}
	end := c.votes.support.End(c.now)
	switch {
	case end > c.now:
		c.leading.fence.leaseEnds = clock.Due(end)
		if c.leading.fence.closed {
			c.leading.fence.closed = false
			c.acquire()
		}
	case !c.leading.fence.closed:
		c.leading.fence.leaseEnds = clock.Due(c.now)
	}
	if c.beatAcknowledged() {
		c.leading.fence.repeat = clock.Deadline{}
	}
}

// beatAcknowledged reports whether a majority has acknowledged the last heartbeat.
func (c *Core) beatAcknowledged() bool {
	return c.votes.support.Acked(c.now) >= c.leading.fence.beatAt
}

// leaseEnded closes the fence, or lets go when it has been closed for long.
func (c *Core) leaseEnded() {
	switch {
	case c.votes.supported(c.now):
		c.leaseMoved()
	case !c.leading.fence.closed:
		c.leading.fence.closed = true
		c.emit(EffectFenced)
		c.notify(Notice{Kind: NoticeMajorityUnheard})
		c.leading.fence.leaseEnds = clock.Due(c.now + max(letGoIntervals*c.cfg.Interval, letGoLeast))
	default:
		c.resign(wire.Nobody, ReasonMajorityUnheard)
	}
}

// repeatHeartbeat repeats a heartbeat to the voters that have not acknowledged it, as often as
// answers come. It has the number of the one to all, so that nobody's estimate of the loss
// suffers. Once the lease is over there is less hurry.
func (c *Core) repeatHeartbeat() {
	if c.beatAcknowledged() {
		return
	}
	for _, id := range c.otherVoters() {
		if c.votes.support.Voter(id).Acked < c.leading.fence.beatAt {
			c.send(id, c.heartbeat(false))
			c.copyBySecondPath()
		}
	}
	next := c.votes.roundTrip(c.cfg.Interval)
	if c.leading.fence.closed {
		next = max(next, c.grace.Default()/4)
	}
	c.leading.fence.repeat = clock.Due(c.now + next)
}

// hearRivalTerm lets go if another leader has a higher term: a majority has elected it since, so
// the lease of this one is over. Between equal terms, which only a group that was switched off
// altogether can come to, the rank decides.
func (c *Core) hearRivalTerm(m *wire.Message) {
	c.notify(Notice{Kind: NoticeRival, Board: m.Sender})
	if m.Term < c.term || m.Term == c.term && c.Above(c.rank(), c.rankOf(&m.Header)) {
		c.reply()
		c.replyTo(m.Sender) // perhaps multicast does not reach it
		return
	}
	c.term = m.Term
	c.becomeFollower(m.Sender, ReasonHigherTerm)
	c.sendResign(m.Sender)
}

// hearFormerRival is for a leader that hears a board which has led, or which knows of a
// higher term. It lets go for that: somebody has been elected since.
func (c *Core) hearFormerRival(m *wire.Message) {
	if m.Term <= c.term {
		c.acquire() // clients may have sent to that board until now
		c.reply()
		return
	}
	c.term = m.Term
	c.resign(wire.Nobody, ReasonHigherTerm)
}
