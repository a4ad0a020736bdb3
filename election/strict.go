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
// voting.go has what is known of the votes, votes.go how a voter votes, and this file the candidacy and
// how a leader keeps its lease.
type strict struct {
	*heir
	votes *voting
}

// Strict defines the algorithm strict.
var Strict = Definition{New: newStrict, Detector: silence.DetectorAsk, votes: true}

func newStrict(b *Board) Algorithm {
	cfg := b.Config()
	b.core.votes = newVoting(&cfg, b.core.grace.Limit(), b.Now())
	return &strict{heir: &heir{c: b.core}, votes: &b.core.votes}
}

// The algorithm's own deadlines, by their place among those of the core.
const (
	promiseEnds = iota // and somebody waits for it
	repeatDue          // a majority has not acknowledged the last heartbeat
	leaseEnds
)

// Expired does what is due.
func (s *strict) Expired(d Deadline) {
	switch {
	case d == OwnDeadline+promiseEnds:
		s.vote()
	case d == OwnDeadline+repeatDue:
		s.repeatHeartbeat()
	case d == OwnDeadline+leaseEnds:
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
	s.c.endHandover()
	if s.c.role != Candidate {
		// The leader that has resigned is not suspected any more.
		s.c.becomeFollower(wire.Nobody, ReasonResigned)
		s.c.becomeCandidate(reason)
	}
	s.c.candidacy.cause = reason
	s.votes.candidacy.open, s.votes.candidacy.since = true, s.c.now
	// A RESIGN that was repeated behind the request would end the promises on which it counts.
	s.c.handover.repeat = clock.Deadline{}
	s.votes.candidacy.repeat = s.votes.roundTrip(s.c.cfg.Interval)
	s.request()
}

// request asks all voters for their votes, this board first of all.
func (s *strict) request() {
	interval, grace := s.c.announced()
	item := s.votes.support.Add(lease.Sent{Request: true, At: s.c.now, Ends: s.c.now + lease.Leased(interval, grace)})
	s.c.tell(s.others(), wire.Message{
		Header: wire.Header{Type: wire.TypeVote},
		Vote: wire.Vote{
			Ballot: wire.BallotRequest, Number: item.Number, Interval: interval, Grace: grace, Voters: s.votes.hash,
		},
	})
	s.c.candidacy.answers = clock.Due(s.c.now + s.votes.candidacy.repeat)
	s.vote()
}

// requestAgain repeats a request. A repetition doubles the time until the next one, up to a
// quarter of the interval: a voter that is bound answers when it is free, and a leader that lives
// repeats its heartbeats faster, so that it is heard first when the network recovers. When all that
// was promised before is over, there is no majority, and an interval is soon enough. The leader is
// asked for once more, too, since it or a board that hears it may answer.
func (s *strict) requestAgain() {
	most := s.c.cfg.Interval / 4
	if s.c.now-s.votes.candidacy.since > s.votes.cap {
		most = s.c.cfg.Interval
	}
	s.votes.candidacy.repeat = min(2*s.votes.candidacy.repeat, max(most, s.votes.roundTrip(s.c.cfg.Interval)))
	s.c.sendElection(nil)
	s.request()
}

// others are the voters beside this board.
func (s *strict) others() []wire.ID {
	ids := make([]wire.ID, 0, MaxVoters)
	for i := range s.votes.support.Voters {
		if id := s.votes.support.Voters[i].ID; id != s.c.cfg.ID {
			ids = append(ids, id)
		}
	}
	return ids
}

// granted receives a vote.
func (s *strict) granted(m *wire.Message) {
	g := &m.Grant
	v := s.votes.support.Voter(m.Sender)
	if v == nil || g.Candidate != s.c.cfg.ID || g.Incarnation != s.c.cfg.Incarnation || !s.sameVoters(m.Sender, g.Voters) {
		return
	}
	if item := s.votes.support.Request(g.Number); item != nil {
		v.Count(item)
		s.elected()
		s.leaseMoved()
		return
	}
	if !s.votes.candidacy.open && s.c.role != Leader {
		s.withdraw(m.Sender) // it did not hear that, and is bound for nothing
	}
}

// elected makes a candidate the leader that has the votes of a majority, for long enough to be of use.
func (s *strict) elected() {
	if !s.votes.candidacy.open || s.votes.support.End(s.c.now) <= s.c.now+silence.DefaultGrace(s.c.cfg.Interval)/4 {
		return
	}
	s.c.becomeLeader(s.c.candidacy.cause)
	s.leaseMoved()
}

// withdraw releases the votes for this board, of one voter or of all: what it has asked for
// until now it will not use.
func (s *strict) withdraw(from wire.ID) {
	interval, grace := s.c.announced()
	m := wire.Message{
		Header: wire.Header{Type: wire.TypeVote},
		Vote: wire.Vote{
			Ballot: wire.BallotWithdraw, Number: s.votes.support.Number, Interval: interval, Grace: grace, Voters: s.votes.hash,
		},
	}
	if from == wire.Nobody {
		s.c.tell(s.others(), m)
	} else {
		s.c.send(from, m)
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
	s.c.own[repeatDue] = clock.Deadline{}
	s.c.own[leaseEnds] = clock.Deadline{}
	if s.votes.promise.Is(s.c.cfg.ID, s.c.cfg.Incarnation) {
		s.votes.promise.Until = min(s.votes.promise.Until, s.c.now)
	}
	if lost && to != Isolated && to != Barred {
		s.withdraw(wire.Nobody)
	}
	s.vote()
}

// Observe looks at who is there, and at what ends promises, before the core acts on a message.
func (s *strict) Observe(m *wire.Message) {
	if v := s.votes.support.Voter(m.Sender); v != nil && v.Hear(s.c.now, m.Incarnation) {
		s.c.notify(Notice{Kind: NoticeVoterTwice, Board: m.Sender})
	}
	if m.Type == wire.TypeResign && s.votes.promise.Release(s.c.now, &m.Header) && m.Resign.Successor != s.c.cfg.ID {
		s.vote()
	}
}

// DuplicateID is told that another board has this board's id.
func (s *strict) DuplicateID() {
	if self := s.votes.self(s.c.cfg.ID); self != nil {
		self.Twice = clock.Due(s.c.now + lease.TwiceFor)
		s.c.notify(Notice{Kind: NoticeVoterTwice, Board: s.c.cfg.ID})
		s.leaseMoved()
	}
}

// sameVoters reports whether another board has the same list of voters. If it does not, people
// are told, on all boards: two lists may have majorities that have no voter in common.
func (s *strict) sameVoters(board wire.ID, hash uint32) bool {
	if hash == s.votes.hash {
		return true
	}
	s.c.notify(Notice{Kind: NoticeOtherVoters, Board: board})
	if s.c.now-s.votes.listTold >= barredFor {
		s.votes.listTold = s.c.now
		interval, grace := s.c.announced()
		s.c.send(wire.Nobody, wire.Message{
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
	item := s.votes.support.Add(lease.Sent{Term: s.c.term, At: s.c.now, Ends: s.c.now + lease.Leased(interval, grace)})
	if to == wire.Nobody || m.Type == wire.TypeCoordinator {
		s.votes.fence.beatAt = s.c.now
		s.c.own[repeatDue] = clock.Due(s.c.now + s.votes.roundTrip(s.c.cfg.Interval))
		s.supportSelf(item, lease.Promised(interval, grace))
		s.leaseMoved()
	}
	return item.Number
}

// supported receives the acknowledgement of a heartbeat.
func (s *strict) supported(m *wire.Message) {
	a, v := &m.Support, s.votes.support.Voter(m.Sender)
	if v == nil || s.c.role != Leader || a.Leader != s.c.cfg.ID || a.Incarnation != s.c.cfg.Incarnation ||
		!s.sameVoters(m.Sender, a.Voters) {
		return
	}
	item := s.votes.support.Heartbeat(a.Heartbeat)
	if item == nil || item.Term != a.Term {
		return
	}
	s.votes.trip.Observe(float64(s.c.now - item.At))
	v.Count(item)
	s.leaseMoved()
}

// leaseMoved is called when the end of the lease may be another one.
func (s *strict) leaseMoved() {
	if s.c.role != Leader {
		return
	}
	end := s.votes.support.End(s.c.now)
	switch {
	case end > s.c.now:
		s.c.own[leaseEnds] = clock.Due(end)
		if s.votes.fence.closed {
			s.votes.fence.closed = false
			s.c.acquire()
		}
	case !s.votes.fence.closed:
		s.c.own[leaseEnds] = clock.Due(s.c.now)
	}
	if s.beatAcknowledged() {
		s.c.own[repeatDue] = clock.Deadline{}
	}
}

// beatAcknowledged reports whether a majority has acknowledged the last heartbeat.
func (s *strict) beatAcknowledged() bool {
	return s.votes.support.Acked(s.c.now) >= s.votes.fence.beatAt
}

// leaseEnded closes the fence, or lets go when it has been closed for long.
func (s *strict) leaseEnded() {
	switch {
	case s.c.role != Leader:
	case s.votes.supported(s.c.now):
		s.leaseMoved()
	case !s.votes.fence.closed:
		s.votes.fence.closed = true
		s.c.emit(EffectFenced)
		s.c.notify(Notice{Kind: NoticeMajorityUnheard})
		s.c.own[leaseEnds] = clock.Due(s.c.now + max(letGoIntervals*s.c.cfg.Interval, letGoLeast))
	default:
		s.c.resign(wire.Nobody, ReasonMajorityUnheard)
	}
}

// repeatHeartbeat repeats a heartbeat to the voters that have not acknowledged it, as often as
// answers come. It has the number of the one to all, so that nobody's estimate of the loss
// suffers. Once the lease is over there is less hurry.
func (s *strict) repeatHeartbeat() {
	if s.c.role != Leader || s.beatAcknowledged() {
		return
	}
	interval, grace := s.c.announced()
	for _, id := range s.others() {
		if s.votes.support.Voter(id).Acked < s.votes.fence.beatAt {
			s.c.send(id, wire.Message{
				Header:    wire.Header{Type: wire.TypeHeartbeat},
				Heartbeat: wire.Heartbeat{Interval: interval, Grace: grace, Number: s.c.heartbeats.number},
			})
		}
	}
	next := s.votes.roundTrip(s.c.cfg.Interval)
	if s.votes.fence.closed {
		next = max(next, silence.DefaultGrace(interval)/4)
	}
	s.c.own[repeatDue] = clock.Due(s.c.now + next)
}

// RivalHeard lets go if another leader has a higher term: a majority has elected it since, so
// the lease of this one is over. Between equal terms, which only a group that was switched off
// altogether can come to, the rank decides.
func (s *strict) RivalHeard(m *wire.Message) {
	c := s.c
	c.notify(Notice{Kind: NoticeRival, Board: m.Sender})
	if m.Term < c.term || m.Term == c.term && s.c.above(s.c.rank(), s.c.rankOf(&m.Header)) {
		c.reply()
		c.replyTo(m.Sender) // perhaps multicast does not reach it
		return
	}
	c.term = m.Term
	s.c.becomeFollower(m.Sender, ReasonHigherTerm)
	s.c.send(wire.Nobody, wire.Message{
		Header: wire.Header{Type: wire.TypeResign},
		Resign: wire.Resign{Successor: m.Sender},
	})
}

// FormerRivalHeard is for a leader that hears a board which has led, or which knows of a
// higher term. It lets go for that: somebody has been elected since.
func (s *strict) FormerRivalHeard(m *wire.Message) {
	c := s.c
	if m.Term <= c.term {
		c.acquire() // clients may have sent to that board until now
		c.reply()
		return
	}
	c.term = m.Term
	c.resign(wire.Nobody, ReasonHigherTerm)
}
