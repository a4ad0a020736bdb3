package election

import (
	"time"
	"topdog/election/lease"
	"topdog/election/silence"
	"topdog/wire"
)

// fence is how a leader stands with the lease that the majority of the voters gives it.
type fence struct {
	// closed says that the lease has ended: nobody answers for the address. The board leads
	// on, and says nothing of it. If the majority is heard again before anybody has claimed, the
	// address is back without a move.
	closed bool
	beatAt Instant // when the last heartbeat to all was sent
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
	item := s.support.Add(lease.Sent{Term: s.core.term, At: s.Now(), Ends: s.Now() + lease.Leased(interval, grace)})
	if to == wire.Nobody || m.Type == wire.TypeCoordinator {
		s.fence.beatAt = s.Now()
		s.SetDeadline(repeatDue, s.Now()+s.roundTrip())
		s.supportSelf(item, lease.Promised(interval, grace))
		s.leaseMoved()
	}
	return item.Number
}

// Sent tells which sequence a heartbeat has got.
func (s *strict) Sent(number uint32, sequence wire.Sequence) {
	item := s.support.Find(func(item *lease.Sent) bool { return !item.Request && item.Number == number })
	if item != nil {
		item.Sequence = sequence
	}
}

// supported receives the acknowledgement of a heartbeat.
func (s *strict) supported(m *wire.Message) {
	a, v := &m.Support, s.support.Voter(m.Sender)
	if v == nil || s.Role() != Leader || a.Leader != s.ID() || a.Incarnation != s.Config().Incarnation ||
		!s.sameVoters(m.Sender, a.Voters) {
		return
	}
	item := s.support.Heartbeat(a.Heartbeat)
	if item == nil || item.Term != a.Term {
		return
	}
	s.trip.Observe(float64(s.Now() - item.At))
	v.Count(item)
	s.leaseMoved()
}

// leaseMoved is called when the end of the lease may be another one.
func (s *strict) leaseMoved() {
	if s.Role() != Leader {
		return
	}
	end := s.support.End(s.Now())
	switch {
	case end > s.Now():
		s.SetDeadline(leaseEnds, end)
		if s.fence.closed {
			s.fence.closed = false
			s.core.acquire()
		}
	case !s.fence.closed:
		s.SetDeadline(leaseEnds, s.Now())
	}
	if s.beatAcknowledged() {
		s.ClearDeadline(repeatDue)
	}
}

// beatAcknowledged reports whether a majority has acknowledged the last heartbeat.
func (s *strict) beatAcknowledged() bool { return s.support.Acked(s.Now()) >= s.fence.beatAt }

// leaseEnded closes the fence, or lets go when it has been closed for long.
func (s *strict) leaseEnded() {
	switch {
	case s.Role() != Leader:
	case s.Supported():
		s.leaseMoved()
	case !s.fence.closed:
		s.fence.closed = true
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
		if s.support.Voter(id).Acked < s.fence.beatAt {
			s.Send(id, wire.Message{
				Header:    wire.Header{Type: wire.TypeHeartbeat},
				Heartbeat: wire.Heartbeat{Interval: interval, Grace: grace, Number: s.core.heartbeats.number},
			})
		}
	}
	next := s.roundTrip()
	if s.fence.closed {
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

// LeaseEnd is until when a majority supports this leader, whether there is an heir or not.
func (s *strict) LeaseEnd() Instant { return s.support.End(s.Now()) }

// Voters returns what this board knows of the voters, ordered by id.
func (s *strict) Voters() []VoterStatus { return s.support.Status(s.Now()) }

// MajorityUnheard reports whether this leader's lease is over, since the majority was not heard.
func (s *strict) MajorityUnheard() bool { return s.fence.closed }
