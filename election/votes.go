package election

import (
	"time"

	"topdog/election/clock"
	"topdog/election/lease"
	"topdog/election/silence"
	"topdog/wire"
)

// voting is what a board knows of the votes with which it leads, or others do. It is empty with
// all algorithms but strict: then every board may lead, and needs no support.
type voting struct {
	hash    uint32        // of the list of voters
	cap     time.Duration // of a promise
	support lease.Support // of this board, by the voters
	promise lease.Promise // of this board, if it is a voter
	// promiseEnds is set if somebody waits for that.
	promiseEnds clock.Deadline
	trip        silence.Smoothed

	clockDistrusted bool
	listTold        Instant // when the hash was told to all because of another list
}

// newVoting is for a board that has just started, with the longest grace that it grants.
func newVoting(cfg *Config, patience time.Duration, now Instant) voting {
	v := voting{
		hash: wire.VotersHash(cfg.Voters), cap: lease.PromiseMax(cfg.Interval, patience),
		support: lease.NewSupport(cfg.Voters), listTold: now - noticeInterval,
	}
	v.promise.Until = now + v.cap
	return v
}

// needed reports whether a leader needs votes.
func (v *voting) needed() bool { return len(v.support.Voters) > 0 }

// mayLead reports whether this board may lead: where votes are needed only a voter does, and only one whose
// clock is good. No other one may promise anything.
func (v *voting) mayLead(id wire.ID) bool {
	return !v.needed() || v.support.Voter(id) != nil && !v.clockDistrusted
}

// supported reports whether this board has the support that it needs now.
func (v *voting) supported(now Instant) bool { return !v.needed() || v.support.End(now) > now }

// roundTrip is how long the answer of a voter may take.
func (v *voting) roundTrip(interval time.Duration) time.Duration {
	if !v.trip.Known {
		return silence.RoundTripUnknown
	}
	return min(max(v.trip.Bound(), silence.RoundTripMin), interval/2)
}

// acknowledge supports the leader that this board follows, since it has heard a heartbeat.
func (c *Core) acknowledge(m *wire.Message, interval, grace time.Duration) {
	if !c.votes.mayLead(c.cfg.ID) || c.role != Follower || !c.bindable(m.Sender, interval, grace) ||
		!c.votes.promise.Allows(c.now, m.Sender, m.Incarnation) {
		return
	}
	c.votes.promise.Make(&m.Header, 0, c.now+lease.Promised(interval, grace))
	for i := range c.votes.support.Voters {
		v := &c.votes.support.Voters[i]
		v.Vain, v.Deferred = 0, false
	}
	c.send(m.Sender, wire.Message{
		Header: wire.Header{Type: wire.TypeSupport},
		Support: wire.Support{
			Leader: m.Sender, Incarnation: m.Incarnation, Term: m.Term, Heartbeat: m.Sequence, Voters: c.votes.hash,
		},
	})
}

// bindable reports whether a board may be supported at all, and for so long: not for
// longer than this voter, if it is started anew, makes no promise.
func (c *Core) bindable(board wire.ID, interval, grace time.Duration) bool {
	if c.votes.support.Voter(board) == nil {
		return false
	}
	if lease.Promised(interval, grace) > c.votes.cap {
		c.notify(Notice{Kind: NoticePromiseTooLong, Board: board})
		return false
	}
	return true
}

// hearVote receives what another board says about its candidacy.
func (c *Core) hearVote(m *wire.Message) {
	if !c.sameVoters(m.Sender, m.Vote.Voters) {
		return
	}
	v := c.votes.support.Voter(m.Sender)
	switch {
	case v == nil || !c.votes.mayLead(c.cfg.ID):
	case m.Vote.Ballot == wire.BallotWithdraw:
		v.Request = lease.Request{}
		if c.votes.promise.Release(c.now, &m.Header) {
			c.vote()
		}
	case m.Vote.Ballot == wire.BallotRequest && c.bindable(m.Sender, m.Vote.Interval, m.Vote.Grace):
		c.hearRequest(m, v)
	}
}

// hearRequest receives a request for this board's vote.
func (c *Core) hearRequest(m *wire.Message, v *lease.Voter) {
	binds := lease.Promised(m.Vote.Interval, m.Vote.Grace)
	v.Request = lease.Request{Header: m.Header, Number: m.Vote.Number, Binds: binds, Fresh: clock.Due(c.now + binds)}
	switch c.role {
	case Leader:
		c.replyTo(m.Sender) // it does not know that this one lives
	case Candidate:
		// Once in favour of each: one that does not hear would ask for ever.
		if !v.Deferred && c.Above(c.rankOf(&m.Header), c.rank()) {
			v.Deferred = true
			c.stepBack()
		}
	}
	if !v.Request.Fresh.Set {
		return // it was granted when this board ceased to be a candidate
	}
	if c.votes.promise.Is(m.Sender, m.Incarnation) && !c.votes.promise.Free(c.now) {
		c.grantAgain(v)
		return
	}
	c.vote()
}

// grantAgain answers a candidate that has this board's promise already. If others wait, it is
// not extended: this candidate may be one that does not hear what it is answered.
func (c *Core) grantAgain(v *lease.Voter) {
	if c.votes.promise.Number == 0 || c.waitsForVote(v) == nil {
		c.grant(v)
		return
	}
	c.tellGrant(v.ID, c.votes.promise.Number)
	v.Request = lease.Request{}
}

// boundFor is for how long this voter has given away its vote, so that it cannot lead.
func (c *Core) boundFor() time.Duration {
	if c.votes.promise.Number == 0 || c.votes.promise.Allows(c.now, c.cfg.ID, c.cfg.Incarnation) {
		return 0
	}
	return c.votes.promise.Until - c.now
}

// vote gives this board's vote to who waits for it, now or when the present promise ends.
func (c *Core) vote() {
	c.votes.promiseEnds = clock.Deadline{}
	if !c.votes.mayLead(c.cfg.ID) || c.role == Isolated || c.role == Barred {
		return
	}
	free := c.votes.promise.Free(c.now)
	switch {
	case c.role == Leader:
		// The promise is to this board, or will be with the next heartbeat.
	case c.candidacy.request.open && c.votes.promise.Allows(c.now, c.cfg.ID, c.cfg.Incarnation):
		c.supportSelf(c.votes.support.Newest(), lease.Promised(c.announced()))
		c.elected()
	case c.candidacy.request.open:
		c.votes.promiseEnds = clock.Due(c.votes.promise.Until)
	case c.role == Candidate:
		// This board is about to ask for votes itself.
	default:
		switch v := c.waitsForVote(nil); {
		case v != nil && free:
			c.grant(v)
		case v != nil:
			c.votes.promiseEnds = clock.Due(c.votes.promise.Until)
		}
	}
}

// supportSelf promises this board's support to itself for something that it sends now, if its
// promise allows that.
func (c *Core) supportSelf(item *lease.Sent, binds time.Duration) {
	self := c.votes.support.Voter(c.cfg.ID)
	h := wire.Header{Sender: c.cfg.ID, Incarnation: c.cfg.Incarnation}
	if self == nil || c.votes.clockDistrusted || !c.votes.promise.Allows(c.now, h.Sender, h.Incarnation) {
		return
	}
	c.votes.promise.Make(&h, 0, c.now+binds)
	self.Count(item)
}

// waitsForVote returns the voter, other than beside, that waits for this board's vote: the one that
// was given the fewest votes in vain, and of several the first in rank. Otherwise a board that is
// deaf, or cut off from the others, could keep the same voters for ever.
func (c *Core) waitsForVote(beside *lease.Voter) (first *lease.Voter) {
	for i := range c.votes.support.Voters {
		v := &c.votes.support.Voters[i]
		switch {
		case v == beside || !v.Request.Fresh.Ahead(c.now):
		case first == nil || v.Vain < first.Vain,
			v.Vain == first.Vain && c.Above(c.rankOf(&v.Request.Header), c.rankOf(&first.Request.Header)):
			first = v
		}
	}
	return first
}

// grant gives this board's vote, which its promise allows.
func (c *Core) grant(v *lease.Voter) {
	r := v.Request
	if former := c.votes.support.Voter(c.votes.promise.To); former != nil && c.votes.promise.Number != 0 && former != v {
		former.Vain++
	}
	c.votes.promise.Make(&r.Header, r.Number, c.now+r.Binds)
	v.Request = lease.Request{}
	c.tellGrant(v.ID, r.Number)
	if c.role == Follower {
		c.postpone(r.Binds) // it cannot vote for itself before
	}
	if c.waitsForVote(nil) != nil {
		c.votes.promiseEnds = clock.Due(c.votes.promise.Until)
	}
}

// tellGrant tells a candidate that it has this board's vote.
func (c *Core) tellGrant(candidate wire.ID, number uint32) {
	c.send(candidate, wire.Message{
		Header: wire.Header{Type: wire.TypeGrant},
		Grant: wire.Grant{
			Candidate: candidate, Incarnation: c.votes.promise.Incarnation, Number: number, Voters: c.votes.hash,
		},
	})
}
