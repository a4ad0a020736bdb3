package election

import (
	"time"

	"topdog/election/clock"
	"topdog/election/lease"
	"topdog/election/silence"
	"topdog/wire"
)

// strict is heir with votes: at no instant do two boards hold the address, whatever fails,
// as long as the clocks of the voters run at a rate that is off by 1 % at most. What it costs is
// that the address needs a majority of the voters. Without one nobody has it.
//
// The voters are a list of ids that all boards have in their configuration. Each voter
// acknowledges every heartbeat (SUPPORT), and by that promises to support nobody else for the
// interval and the grace of that heartbeat. What heir would do when nobody objects, to become
// the leader, is here to ask the voters (VOTE); a GRANT is a promise of the same kind. So a
// leader has the promises of a majority, two majorities have a voter in common, and a voter
// has one promise at a time. The leader's lease is counted from before it sent what a
// majority has promised on, the promise from its receipt, and the lease is shorter.
//
// promise.go has what a voter promises, votes.go how it votes, support.go what a leader or
// candidate counts, acks.go how a leader keeps its lease, and this file the candidacy.
type strict struct {
	*heir
	votes *voting
}

// Strict defines the algorithm strict.
var Strict = Definition{New: newStrict, Detector: silence.DetectorAsk, votes: true}

func newStrict(b *Board) Algorithm {
	cfg := b.Config()
	b.core.votes = newVoting(&cfg, b.core.grace.Limit(), b.Now())
	return &strict{heir: &heir{Board: b}, votes: &b.core.votes}
}

// The algorithm's own deadlines.
const (
	promiseEnds = OwnDeadline + iota // and somebody waits for it
	repeatDue                        // a majority has not acknowledged the last heartbeat
	leaseEnds
)

// Expired does what is due.
func (s *strict) Expired(d Deadline) {
	switch {
	case d == promiseEnds:
		s.vote()
	case d == repeatDue:
		s.repeatHeartbeat()
	case d == leaseEnds:
		s.leaseEnded()
	case s.votes.candidacy.open:
		s.requestAgain()
	default:
		s.heir.Expired(d)
	}
}

// AddressFree lets a candidate ask for votes that waited for that.
func (s *strict) AddressFree() {
	if !s.votes.candidacy.open {
		s.heir.AddressFree()
	}
}

// Step receives votes, and what heir understands.
func (s *strict) Step(m *wire.Message) {
	switch m.Type {
	case wire.TypeSupport:
		s.supported(m)
	case wire.TypeVote:
		s.voteHeard(m)
	case wire.TypeGrant:
		s.granted(m)
	default:
		s.heir.Step(m)
	}
}

// Elect asks the voters for the lead. A leader that hands over says so several times, and
// people and messages may ask again: a candidacy that is open goes on.
func (s *strict) Elect(reason Reason) {
	if s.votes.candidacy.open {
		return
	}
	// A RESIGN that is repeated from now on would release the votes that this board counts.
	s.EndHandover()
	if s.Role() != Candidate {
		// The leader that has resigned is not suspected any more.
		s.BecomeFollower(wire.Nobody, ReasonResigned)
		s.BecomeCandidate(reason)
	}
	s.SetCause(reason)
	s.votes.candidacy.open, s.votes.candidacy.since = true, s.Now()
	// A RESIGN that was repeated behind the request would end the promises on which it counts.
	s.core.handover.repeat = clock.Deadline{}
	s.votes.candidacy.repeat = s.votes.roundTrip(s.Interval())
	s.request()
}

// request asks all voters for their votes, this board first of all.
func (s *strict) request() {
	interval, grace := s.core.announced()
	item := s.votes.support.Add(lease.Sent{Request: true, At: s.Now(), Ends: s.Now() + lease.Leased(interval, grace)})
	s.Tell(s.others(), wire.Message{
		Header: wire.Header{Type: wire.TypeVote},
		Vote: wire.Vote{
			Ballot: wire.BallotRequest, Number: item.Number, Interval: interval, Grace: grace, Voters: s.votes.hash,
		},
	})
	s.SetDeadline(AnswersDue, s.Now()+s.votes.candidacy.repeat)
	s.vote()
}

// requestAgain repeats a request. A repetition doubles the time until the next one, up to a
// quarter of the interval: a voter that is bound answers when it is free, and a leader that lives
// repeats its heartbeats faster, so that it is heard first when the network recovers. When all that
// was promised before is over, there is no majority, and an interval is soon enough. The leader is
// asked for once more, too, since it or a board that hears it may answer.
func (s *strict) requestAgain() {
	most := s.Interval() / 4
	if s.Now()-s.votes.candidacy.since > s.votes.cap {
		most = s.Interval()
	}
	s.votes.candidacy.repeat = min(2*s.votes.candidacy.repeat, max(most, s.votes.roundTrip(s.Interval())))
	s.core.sendElection(nil)
	s.request()
}

// others are the voters beside this board.
func (s *strict) others() []wire.ID {
	ids := make([]wire.ID, 0, MaxVoters)
	for i := range s.votes.support.Voters {
		if id := s.votes.support.Voters[i].ID; id != s.ID() {
			ids = append(ids, id)
		}
	}
	return ids
}

// granted receives a vote.
func (s *strict) granted(m *wire.Message) {
	g := &m.Grant
	v := s.votes.support.Voter(m.Sender)
	if v == nil || g.Candidate != s.ID() || g.Incarnation != s.Config().Incarnation || !s.sameVoters(m.Sender, g.Voters) {
		return
	}
	if item := s.votes.support.Request(g.Number); item != nil {
		v.Count(item)
		s.elected()
		s.leaseMoved()
		return
	}
	if !s.votes.candidacy.open && s.Role() != Leader {
		s.withdraw(m.Sender) // it did not hear that, and is bound for nothing
	}
}

// elected makes a candidate the leader that has the votes of a majority, for long enough to be of use.
func (s *strict) elected() {
	if !s.votes.candidacy.open || s.votes.support.End(s.Now()) <= s.Now()+silence.DefaultGrace(s.Interval())/4 {
		return
	}
	s.BecomeLeader(s.Cause())
	s.leaseMoved()
}

// withdraw releases the votes for this board, of one voter or of all: what it has asked for
// until now it will not use.
func (s *strict) withdraw(from wire.ID) {
	interval, grace := s.core.announced()
	m := wire.Message{
		Header: wire.Header{Type: wire.TypeVote},
		Vote: wire.Vote{
			Ballot: wire.BallotWithdraw, Number: s.votes.support.Number, Interval: interval, Grace: grace, Voters: s.votes.hash,
		},
	}
	if from == wire.Nobody {
		s.Tell(s.others(), m)
	} else {
		s.Send(from, m)
	}
}

// RoleChanged ends a candidacy or a reign. What was promised for it does not count any more,
// so this board is free to support another one: it has released the address before, if it led.
func (s *strict) RoleChanged(from, to Role) {
	if from != Candidate && from != Leader || to == Leader {
		s.votes.candidacy.open = s.votes.candidacy.open && to != Leader
		return
	}
	lost := s.votes.candidacy.open
	s.votes.candidacy.open = false
	s.votes.fence = fence{}
	s.votes.support.Forget()
	s.ClearDeadline(repeatDue)
	s.ClearDeadline(leaseEnds)
	if s.votes.promise.Is(s.ID(), s.Config().Incarnation) {
		s.votes.promise.Until = min(s.votes.promise.Until, s.Now())
	}
	if lost && to != Isolated && to != Barred {
		s.withdraw(wire.Nobody)
	}
	s.vote()
}

// Observe looks at who is there, and at what ends promises, before the core acts on a message.
func (s *strict) Observe(m *wire.Message) {
	if v := s.votes.support.Voter(m.Sender); v != nil && v.Hear(s.Now(), m.Incarnation) {
		s.core.notify(Notice{Kind: NoticeVoterTwice, Board: m.Sender})
	}
	if m.Type == wire.TypeResign && s.votes.promise.Release(s.Now(), &m.Header) && m.Resign.Successor != s.ID() {
		s.vote()
	}
}

// DuplicateID is told that another board has this board's id.
func (s *strict) DuplicateID() {
	if self := s.votes.self(s.ID()); self != nil {
		self.Twice = clock.Due(s.Now() + lease.TwiceFor)
		s.core.notify(Notice{Kind: NoticeVoterTwice, Board: s.ID()})
		s.leaseMoved()
	}
}

// sameVoters reports whether another board has the same list of voters. If it does not, people
// are told, on all boards: two lists may have majorities that have no voter in common.
func (s *strict) sameVoters(board wire.ID, hash uint32) bool {
	if hash == s.votes.hash {
		return true
	}
	s.core.notify(Notice{Kind: NoticeOtherVoters, Board: board})
	if s.Now()-s.votes.listTold >= barredFor {
		s.votes.listTold = s.Now()
		interval, grace := s.core.announced()
		s.Send(wire.Nobody, wire.Message{
			Header: wire.Header{Type: wire.TypeVote},
			Vote:   wire.Vote{Ballot: wire.BallotList, Interval: interval, Grace: grace, Voters: s.votes.hash},
		})
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

// Sending is told of a heartbeat or a COORDINATOR of this leader before it is sent. The owner
// tells Sent which sequence the packet of that number got.
func (s *strict) Sending(to wire.ID, m *wire.Message) (number uint32) {
	interval, grace := m.Heartbeat.Interval, m.Heartbeat.Grace
	if m.Type == wire.TypeCoordinator {
		interval, grace = m.Coordinator.Interval, m.Coordinator.Grace
	}
	item := s.votes.support.Add(lease.Sent{Term: s.core.term, At: s.Now(), Ends: s.Now() + lease.Leased(interval, grace)})
	if to == wire.Nobody || m.Type == wire.TypeCoordinator {
		s.votes.fence.beatAt = s.Now()
		s.SetDeadline(repeatDue, s.Now()+s.votes.roundTrip(s.Interval()))
		s.supportSelf(item, lease.Promised(interval, grace))
		s.leaseMoved()
	}
	return item.Number
}

// supported receives the acknowledgement of a heartbeat.
func (s *strict) supported(m *wire.Message) {
	a, v := &m.Support, s.votes.support.Voter(m.Sender)
	if v == nil || s.Role() != Leader || a.Leader != s.ID() || a.Incarnation != s.Config().Incarnation ||
		!s.sameVoters(m.Sender, a.Voters) {
		return
	}
	item := s.votes.support.Heartbeat(a.Heartbeat)
	if item == nil || item.Term != a.Term {
		return
	}
	s.votes.trip.Observe(float64(s.Now() - item.At))
	v.Count(item)
	s.leaseMoved()
}

// leaseMoved is called when the end of the lease may be another one.
func (s *strict) leaseMoved() {
	if s.Role() != Leader {
		return
	}
	end := s.votes.support.End(s.Now())
	switch {
	case end > s.Now():
		s.SetDeadline(leaseEnds, end)
		if s.votes.fence.closed {
			s.votes.fence.closed = false
			s.core.acquire()
		}
	case !s.votes.fence.closed:
		s.SetDeadline(leaseEnds, s.Now())
	}
	if s.beatAcknowledged() {
		s.ClearDeadline(repeatDue)
	}
}

// beatAcknowledged reports whether a majority has acknowledged the last heartbeat.
func (s *strict) beatAcknowledged() bool {
	return s.votes.support.Acked(s.Now()) >= s.votes.fence.beatAt
}

// leaseEnded closes the fence, or lets go when it has been closed for long.
func (s *strict) leaseEnded() {
	switch {
	case s.Role() != Leader:
	case s.votes.supported(s.Now()):
		s.leaseMoved()
	case !s.votes.fence.closed:
		s.votes.fence.closed = true
		s.core.emit(EffectFenced)
		s.core.notify(Notice{Kind: NoticeMajorityUnheard})
		s.SetDeadline(leaseEnds, s.Now()+max(letGoIntervals*s.Interval(), letGoLeast))
	default:
		s.core.resign(wire.Nobody, ReasonMajorityUnheard)
	}
}

// repeatHeartbeat repeats a heartbeat to the voters that have not acknowledged it, as often as
// answers come. It has the number of the one to all, so that nobody's estimate of the loss
// suffers. Once the lease is over there is less hurry.
func (s *strict) repeatHeartbeat() {
	if s.Role() != Leader || s.beatAcknowledged() {
		return
	}
	interval, grace := s.core.announced()
	for _, id := range s.others() {
		if s.votes.support.Voter(id).Acked < s.votes.fence.beatAt {
			s.Send(id, wire.Message{
				Header:    wire.Header{Type: wire.TypeHeartbeat},
				Heartbeat: wire.Heartbeat{Interval: interval, Grace: grace, Number: s.core.heartbeats.number},
			})
		}
	}
	next := s.votes.roundTrip(s.Interval())
	if s.votes.fence.closed {
		next = max(next, silence.DefaultGrace(interval)/4)
	}
	s.SetDeadline(repeatDue, s.Now()+next)
}

// RivalHeard lets go if another leader has a higher term: a majority has elected it since, so
// the lease of this one is over. Between equal terms, which only a group that was switched off
// altogether can come to, the rank decides.
func (s *strict) RivalHeard(m *wire.Message) {
	c := s.core
	c.notify(Notice{Kind: NoticeRival, Board: m.Sender})
	if m.Term < c.term || m.Term == c.term && s.Above(s.Rank(), s.RankOf(&m.Header)) {
		c.reply()
		c.replyTo(m.Sender) // perhaps multicast does not reach it
		return
	}
	c.term = m.Term
	s.BecomeFollower(m.Sender, ReasonHigherTerm)
	s.Send(wire.Nobody, wire.Message{
		Header: wire.Header{Type: wire.TypeResign},
		Resign: wire.Resign{Successor: m.Sender},
	})
}

// FormerRivalHeard is for a leader that hears a board which has led, or which knows of a
// higher term. It lets go for that: somebody has been elected since.
func (s *strict) FormerRivalHeard(m *wire.Message) {
	c := s.core
	if m.Term <= c.term {
		c.acquire() // clients may have sent to that board until now
		c.reply()
		return
	}
	c.term = m.Term
	c.resign(wire.Nobody, ReasonHigherTerm)
}
