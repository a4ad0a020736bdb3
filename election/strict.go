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
	hash    uint32 // of the list of voters
	cap     time.Duration
	support lease.Support
	promise lease.Promise

	candidacy struct {
		open   bool          // it asks for votes
		since  Instant       // since when
		repeat time.Duration // until it asks once more
	}
	fence fence
	trip  silence.Smoothed // how long a voter takes to answer, in ns

	clockDistrusted bool
	listTold        Instant // when the hash was told to all because of another list
}

// Strict defines the algorithm strict.
var Strict = Definition{New: newStrict, Detector: silence.DetectorAsk, votes: true}

func newStrict(b *Board) Algorithm {
	cfg := b.Config()
	s := &strict{
		heir: &heir{Board: b}, hash: wire.VotersHash(cfg.Voters), cap: lease.PromiseMax(cfg.Interval, b.core.grace.Limit()),
		support: lease.NewSupport(cfg.Voters), listTold: b.Now() - noticeInterval,
	}
	s.promise.Until = b.Now() + s.cap
	return s
}

// The algorithm's own deadlines.
const (
	promiseEnds = OwnDeadline + iota // and somebody waits for it
	repeatDue                        // a majority has not acknowledged the last heartbeat
	leaseEnds
)

// self returns this board among the voters, or nil.
func (s *strict) self() *lease.Voter { return s.support.Voter(s.ID()) }

// votes reports whether this board may promise anything.
func (s *strict) votes() bool { return s.self() != nil && !s.clockDistrusted }

// MayLead reports whether this board may lead: only a voter does, and only one whose clock
// is good.
func (s *strict) MayLead() bool { return s.votes() }

// Supported reports whether a majority supports this board now.
func (s *strict) Supported() bool { return s.support.End(s.Now()) > s.Now() }

// Expired does what is due.
func (s *strict) Expired(d Deadline) {
	switch {
	case d == promiseEnds:
		s.vote()
	case d == repeatDue:
		s.repeatHeartbeat()
	case d == leaseEnds:
		s.leaseEnded()
	case s.candidacy.open:
		s.requestAgain()
	default:
		s.heir.Expired(d)
	}
}

// AddressFree lets a candidate ask for votes that waited for that.
func (s *strict) AddressFree() {
	if !s.candidacy.open {
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
	if s.candidacy.open {
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
	s.candidacy.open, s.candidacy.since = true, s.Now()
	// A RESIGN that was repeated behind the request would end the promises on which it counts.
	s.core.handover.repeat = clock.Deadline{}
	s.candidacy.repeat = s.roundTrip()
	s.request()
}

// request asks all voters for their votes, this board first of all.
func (s *strict) request() {
	interval, grace := s.core.announced()
	item := s.support.Add(lease.Sent{Request: true, At: s.Now(), Ends: s.Now() + lease.Leased(interval, grace)})
	s.Tell(s.others(), wire.Message{
		Header: wire.Header{Type: wire.TypeVote},
		Vote: wire.Vote{
			Ballot: wire.BallotRequest, Number: item.Number, Interval: interval, Grace: grace, Voters: s.hash,
		},
	})
	s.SetDeadline(AnswersDue, s.Now()+s.candidacy.repeat)
	s.vote()
}

// requestAgain repeats a request. A repetition doubles the time until the next one, up to a
// quarter of the interval: a voter that is bound answers when it is free, and a leader that lives
// repeats its heartbeats faster, so that it is heard first when the network recovers. When all that
// was promised before is over, there is no majority, and an interval is soon enough. The leader is
// asked for once more, too, since it or a board that hears it may answer.
func (s *strict) requestAgain() {
	most := s.Interval() / 4
	if s.Now()-s.candidacy.since > s.cap {
		most = s.Interval()
	}
	s.candidacy.repeat = min(2*s.candidacy.repeat, max(most, s.roundTrip()))
	s.core.sendElection(nil)
	s.request()
}

// others are the voters beside this board.
func (s *strict) others() []wire.ID {
	ids := make([]wire.ID, 0, MaxVoters)
	for i := range s.support.Voters {
		if id := s.support.Voters[i].ID; id != s.ID() {
			ids = append(ids, id)
		}
	}
	return ids
}

// granted receives a vote.
func (s *strict) granted(m *wire.Message) {
	g := &m.Grant
	v := s.support.Voter(m.Sender)
	if v == nil || g.Candidate != s.ID() || g.Incarnation != s.Config().Incarnation || !s.sameVoters(m.Sender, g.Voters) {
		return
	}
	if item := s.support.Request(g.Number); item != nil {
		v.Count(item)
		s.elected()
		s.leaseMoved()
		return
	}
	if !s.candidacy.open && s.Role() != Leader {
		s.withdraw(m.Sender) // it did not hear that, and is bound for nothing
	}
}

// elected makes a candidate the leader that has the votes of a majority, for long enough to be of use.
func (s *strict) elected() {
	if !s.candidacy.open || s.support.End(s.Now()) <= s.Now()+silence.DefaultGrace(s.Interval())/4 {
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
			Ballot: wire.BallotWithdraw, Number: s.support.Number, Interval: interval, Grace: grace, Voters: s.hash,
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
		s.candidacy.open = s.candidacy.open && to != Leader
		return
	}
	lost := s.candidacy.open
	s.candidacy.open = false
	s.fence = fence{}
	s.support.Forget()
	s.ClearDeadline(repeatDue)
	s.ClearDeadline(leaseEnds)
	if s.promise.Is(s.ID(), s.Config().Incarnation) {
		s.promise.Until = min(s.promise.Until, s.Now())
	}
	if lost && to != Isolated && to != Barred {
		s.withdraw(wire.Nobody)
	}
	s.vote()
}

// Observe looks at who is there, and at what ends promises, before the core acts on a message.
func (s *strict) Observe(m *wire.Message) {
	if v := s.support.Voter(m.Sender); v != nil && v.Hear(s.Now(), m.Incarnation) {
		s.core.notify(Notice{Kind: NoticeVoterTwice, Board: m.Sender})
	}
	if m.Type == wire.TypeResign && s.promise.Release(s.Now(), &m.Header) && m.Resign.Successor != s.ID() {
		s.vote()
	}
}

// DuplicateID is told that another board has this board's id.
func (s *strict) DuplicateID() {
	if self := s.self(); self != nil {
		self.Twice = clock.Due(s.Now() + lease.TwiceFor)
		s.core.notify(Notice{Kind: NoticeVoterTwice, Board: s.ID()})
		s.leaseMoved()
	}
}

// sameVoters reports whether another board has the same list of voters. If it does not, people
// are told, on all boards: two lists may have majorities that have no voter in common.
func (s *strict) sameVoters(board wire.ID, hash uint32) bool {
	if hash == s.hash {
		return true
	}
	s.core.notify(Notice{Kind: NoticeOtherVoters, Board: board})
	if s.Now()-s.listTold >= barredFor {
		s.listTold = s.Now()
		interval, grace := s.core.announced()
		s.Send(wire.Nobody, wire.Message{
			Header: wire.Header{Type: wire.TypeVote},
			Vote:   wire.Vote{Ballot: wire.BallotList, Interval: interval, Grace: grace, Voters: s.hash},
		})
	}
	return false
}

// ClockTrusted tells whether this board's clock runs at its rate.
func (s *strict) ClockTrusted(trusted bool) (changed bool) {
	changed = s.clockDistrusted == trusted
	s.clockDistrusted = !trusted
	return changed
}

// roundTrip is how long an answer may take.
func (s *strict) roundTrip() time.Duration {
	if !s.trip.Known {
		return silence.RoundTripUnknown
	}
	return min(max(s.trip.Bound(), silence.RoundTripMin), s.Interval()/2)
}
