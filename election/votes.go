package election

import (
	"time"

	"topdog/election/clock"
	"topdog/election/lease"
	"topdog/wire"
)

// HeartbeatHeard acknowledges a heartbeat of the leader that this board follows.
func (s *strict) HeartbeatHeard(m *wire.Message, interval, grace time.Duration) {
	if !s.votes.mayLead(s.ID()) || s.Role() != Follower || !s.bindable(m.Sender, interval, grace) ||
		!s.votes.promise.Allows(s.Now(), m.Sender, m.Incarnation) {
		return
	}
	s.votes.promise.Make(&m.Header, 0, s.Now()+lease.Promised(interval, grace))
	for i := range s.votes.support.Voters {
		v := &s.votes.support.Voters[i]
		v.Vain, v.Deferred = 0, false
	}
	s.Send(m.Sender, wire.Message{
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
		s.core.notify(Notice{Kind: NoticePromiseTooLong, Board: board})
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
	case v == nil || !s.votes.mayLead(s.ID()):
	case m.Vote.Ballot == wire.BallotWithdraw:
		v.Request = lease.Request{}
		if s.votes.promise.Release(s.Now(), &m.Header) {
			s.vote()
		}
	case m.Vote.Ballot == wire.BallotRequest && s.bindable(m.Sender, m.Vote.Interval, m.Vote.Grace):
		s.requestHeard(m, v)
	}
}

// requestHeard receives a request for this board's vote.
func (s *strict) requestHeard(m *wire.Message, v *lease.Voter) {
	binds := lease.Promised(m.Vote.Interval, m.Vote.Grace)
	v.Request = lease.Request{Header: m.Header, Number: m.Vote.Number, Binds: binds, Fresh: clock.Due(s.Now() + binds)}
	switch s.Role() {
	case Leader:
		s.core.replyTo(m.Sender) // it does not know that this one lives
	case Candidate:
		// Once in favour of each: one that does not hear would ask for ever.
		if !v.Deferred && s.Above(s.RankOf(&m.Header), s.Rank()) {
			v.Deferred = true
			s.stepBack()
		}
	}
	if !v.Request.Fresh.Set {
		return // it was granted when this board ceased to be a candidate
	}
	if s.votes.promise.Is(m.Sender, m.Incarnation) && !s.votes.promise.Free(s.Now()) {
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
	if s.votes.promise.Number != 0 && !s.votes.promise.Allows(s.Now(), s.ID(), s.Config().Incarnation) {
		delay = max(delay, s.votes.promise.Until-s.Now())
	}
	return delay
}

// vote gives this board's vote to who waits for it, now or when the present promise ends.
func (s *strict) vote() {
	s.ClearDeadline(promiseEnds)
	if !s.votes.mayLead(s.ID()) || s.Role() == Isolated || s.Role() == Barred {
		return
	}
	free := s.votes.promise.Free(s.Now())
	switch {
	case s.Role() == Leader:
		// The promise is to this board, or will be with the next heartbeat.
	case s.votes.candidacy.open && s.votes.promise.Allows(s.Now(), s.ID(), s.Config().Incarnation):
		s.supportSelf(s.votes.support.Newest(), lease.Promised(s.core.announced()))
		s.elected()
	case s.votes.candidacy.open:
		s.SetDeadline(promiseEnds, s.votes.promise.Until)
	case s.Role() == Candidate:
		// It is about to ask for votes itself.
	default:
		switch v := s.waiting(nil); {
		case v != nil && free:
			s.grant(v)
		case v != nil:
			s.SetDeadline(promiseEnds, s.votes.promise.Until)
		}
	}
}

// supportSelf promises this board's support to itself for something that it sends now, if its
// promise allows that.
func (s *strict) supportSelf(item *lease.Sent, binds time.Duration) {
	self := s.votes.self(s.ID())
	h := wire.Header{Sender: s.ID(), Incarnation: s.Config().Incarnation}
	if self == nil || s.votes.clockDistrusted || !s.votes.promise.Allows(s.Now(), h.Sender, h.Incarnation) {
		return
	}
	s.votes.promise.Make(&h, 0, s.Now()+binds)
	self.Count(item)
}

// waiting returns who waits for this board's vote, beside one: the first in rank of those that
// have made least of the votes that they had. Else a board that does not hear, or is split from the
// others, could have the same voters for ever.
func (s *strict) waiting(beside *lease.Voter) (first *lease.Voter) {
	for i := range s.votes.support.Voters {
		v := &s.votes.support.Voters[i]
		switch {
		case v == beside || !v.Request.Fresh.Ahead(s.Now()):
		case first == nil || v.Vain < first.Vain,
			v.Vain == first.Vain && s.Above(s.RankOf(&v.Request.Header), s.RankOf(&first.Request.Header)):
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
	s.votes.promise.Make(&r.Header, r.Number, s.Now()+r.Binds)
	v.Request = lease.Request{}
	s.tellGrant(v.ID, r.Number)
	if s.Role() == Follower {
		s.Postpone(r.Binds) // it cannot vote for itself before
	}
	if s.waiting(nil) != nil {
		s.SetDeadline(promiseEnds, s.votes.promise.Until)
	}
}

// tellGrant tells a candidate that it has this board's vote.
func (s *strict) tellGrant(candidate wire.ID, number uint32) {
	s.Send(candidate, wire.Message{
		Header: wire.Header{Type: wire.TypeGrant},
		Grant: wire.Grant{
			Candidate: candidate, Incarnation: s.votes.promise.Incarnation, Number: number, Voters: s.votes.hash,
		},
	})
}
