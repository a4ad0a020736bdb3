package election

import (
	"time"

	"topdog/election/clock"
	"topdog/election/lease"
	"topdog/wire"
)

// HeartbeatHeard acknowledges a heartbeat of the leader that this board follows.
func (s *strict) HeartbeatHeard(m *wire.Message, interval, grace time.Duration) {
	if !s.votes.mayLead(s.c.cfg.ID) || s.c.role != Follower || !s.bindable(m.Sender, interval, grace) ||
		!s.votes.promise.Allows(s.c.now, m.Sender, m.Incarnation) {
		return
	}
	s.votes.promise.Make(&m.Header, 0, s.c.now+lease.Promised(interval, grace))
	for i := range s.votes.support.Voters {
		v := &s.votes.support.Voters[i]
		v.Vain, v.Deferred = 0, false
	}
	s.c.send(m.Sender, wire.Message{
		Header: wire.Header{Type: wire.TypeSupport},
		Support: wire.Support{
			Leader: m.Sender, Incarnation: m.Incarnation, Term: m.Term, Heartbeat: m.Sequence, Voters: s.votes.hash,
		},
	})
}

// bindable reports whether a board may be supported at all, and for so long: not for
// longer than this voter, if it is started anew, makes no promise.
func (s *strict) bindable(board wire.ID, interval, grace time.Duration) bool {
	if s.votes.support.Voter(board) == nil {
		return false
	}
	if lease.Promised(interval, grace) > s.votes.cap {
		s.c.notify(Notice{Kind: NoticePromiseTooLong, Board: board})
		return false
	}
	return true
}

// voteHeard receives what another board says about its candidacy.
func (s *strict) voteHeard(m *wire.Message) {
	if !s.sameVoters(m.Sender, m.Vote.Voters) {
		return
	}
	v := s.votes.support.Voter(m.Sender)
	switch {
	case v == nil || !s.votes.mayLead(s.c.cfg.ID):
	case m.Vote.Ballot == wire.BallotWithdraw:
		v.Request = lease.Request{}
		if s.votes.promise.Release(s.c.now, &m.Header) {
			s.vote()
		}
	case m.Vote.Ballot == wire.BallotRequest && s.bindable(m.Sender, m.Vote.Interval, m.Vote.Grace):
		s.requestHeard(m, v)
	}
}

// requestHeard receives a request for this board's vote.
func (s *strict) requestHeard(m *wire.Message, v *lease.Voter) {
	binds := lease.Promised(m.Vote.Interval, m.Vote.Grace)
	v.Request = lease.Request{Header: m.Header, Number: m.Vote.Number, Binds: binds, Fresh: clock.Due(s.c.now + binds)}
	switch s.c.role {
	case Leader:
		s.c.replyTo(m.Sender) // it does not know that this one lives
	case Candidate:
		// Once in favour of each: one that does not hear would ask for ever.
		if !v.Deferred && s.c.above(s.c.rankOf(&m.Header), s.c.rank()) {
			v.Deferred = true
			s.stepBack()
		}
	}
	if !v.Request.Fresh.Set {
		return // it was granted when this board ceased to be a candidate
	}
	if s.votes.promise.Is(m.Sender, m.Incarnation) && !s.votes.promise.Free(s.c.now) {
		s.grantAgain(v)
		return
	}
	s.vote()
}

// grantAgain answers a candidate that has this board's promise already. If others wait, it is
// not extended: this candidate may be one that does not hear what it is answered.
func (s *strict) grantAgain(v *lease.Voter) {
	if s.votes.promise.Number == 0 || s.waiting(v) == nil {
		s.grant(v)
		return
	}
	s.tellGrant(v.ID, s.votes.promise.Number)
	v.Request = lease.Request{}
}

// TurnDelay is that of heir, and longer for a board that has given away its vote.
func (s *strict) TurnDelay() time.Duration {
	delay := s.heir.TurnDelay()
	if s.votes.promise.Number != 0 && !s.votes.promise.Allows(s.c.now, s.c.cfg.ID, s.c.cfg.Incarnation) {
		delay = max(delay, s.votes.promise.Until-s.c.now)
	}
	return delay
}

// vote gives this board's vote to who waits for it, now or when the present promise ends.
func (s *strict) vote() {
	s.c.own[promiseEnds] = clock.Deadline{}
	if !s.votes.mayLead(s.c.cfg.ID) || s.c.role == Isolated || s.c.role == Barred {
		return
	}
	free := s.votes.promise.Free(s.c.now)
	switch {
	case s.c.role == Leader:
		// The promise is to this board, or will be with the next heartbeat.
	case s.votes.candidacy.open && s.votes.promise.Allows(s.c.now, s.c.cfg.ID, s.c.cfg.Incarnation):
		s.supportSelf(s.votes.support.Newest(), lease.Promised(s.c.announced()))
		s.elected()
	case s.votes.candidacy.open:
		s.c.own[promiseEnds] = clock.Due(s.votes.promise.Until)
	case s.c.role == Candidate:
		// It is about to ask for votes itself.
	default:
		switch v := s.waiting(nil); {
		case v != nil && free:
			s.grant(v)
		case v != nil:
			s.c.own[promiseEnds] = clock.Due(s.votes.promise.Until)
		}
	}
}

// supportSelf promises this board's support to itself for something that it sends now, if its
// promise allows that.
func (s *strict) supportSelf(item *lease.Sent, binds time.Duration) {
	self := s.votes.self(s.c.cfg.ID)
	h := wire.Header{Sender: s.c.cfg.ID, Incarnation: s.c.cfg.Incarnation}
	if self == nil || s.votes.clockDistrusted || !s.votes.promise.Allows(s.c.now, h.Sender, h.Incarnation) {
		return
	}
	s.votes.promise.Make(&h, 0, s.c.now+binds)
	self.Count(item)
}

// waiting returns who waits for this board's vote, beside one: the first in rank of those that
// have made least of the votes that they had. Else a board that does not hear, or is split from the
// others, could have the same voters for ever.
func (s *strict) waiting(beside *lease.Voter) (first *lease.Voter) {
	for i := range s.votes.support.Voters {
		v := &s.votes.support.Voters[i]
		switch {
		case v == beside || !v.Request.Fresh.Ahead(s.c.now):
		case first == nil || v.Vain < first.Vain,
			v.Vain == first.Vain && s.c.above(s.c.rankOf(&v.Request.Header), s.c.rankOf(&first.Request.Header)):
			first = v
		}
	}
	return first
}

// grant gives this board's vote, which its promise allows.
func (s *strict) grant(v *lease.Voter) {
	r := v.Request
	if former := s.votes.support.Voter(s.votes.promise.To); former != nil && s.votes.promise.Number != 0 && former != v {
		former.Vain++
	}
	s.votes.promise.Make(&r.Header, r.Number, s.c.now+r.Binds)
	v.Request = lease.Request{}
	s.tellGrant(v.ID, r.Number)
	if s.c.role == Follower {
		s.c.postpone(r.Binds) // it cannot vote for itself before
	}
	if s.waiting(nil) != nil {
		s.c.own[promiseEnds] = clock.Due(s.votes.promise.Until)
	}
}

// tellGrant tells a candidate that it has this board's vote.
func (s *strict) tellGrant(candidate wire.ID, number uint32) {
	s.c.send(candidate, wire.Message{
		Header: wire.Header{Type: wire.TypeGrant},
		Grant: wire.Grant{
			Candidate: candidate, Incarnation: s.votes.promise.Incarnation, Number: number, Voters: s.votes.hash,
		},
	})
}
