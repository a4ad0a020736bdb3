package lease

import (
	"slices"
	"sort"
	"time"

	"topdog/election/clock"
	"topdog/wire"
)

// Support is what the voters have promised this board, in one candidacy and the reign that
// follows from it.
type Support struct {
	Voters []Voter // ordered by id
	// sent has the heartbeats and requests that may still be answered, the oldest first. The
	// lease of older ones would be over already.
	sent   []Sent
	Number uint32 // of the newest one; 0 is none
}

// sentMax bounds how many heartbeats and requests are remembered. A heartbeat that nobody
// acknowledges is repeated every millisecond to each of the other voters, for about an interval.
const sentMax = 1024

// Sent is a heartbeat, or a request for votes.
type Sent struct {
	Number   uint32
	Request  bool
	sequence wire.Sequence // of a heartbeat; 0 until the owner has told it
	Term     wire.Term
	At       clock.Instant // when the call began that sent it
	Ends     clock.Instant // until when a voter that answers it supports this board
}

// Voter is what this board knows of one of the voters, which may be itself.
type Voter struct {
	ID    wire.ID
	until clock.Instant // it has promised to support this board until then
	Acked clock.Instant // when the newest message that it has acknowledged was sent

	incarnation wire.Incarnation
	former      wire.Incarnation // before that one; 0 if there was none
	Twice       clock.Deadline   // it was seen in two incarnations at once until then

	Request  Request // it asks for this board's vote
	Vain     int     // votes of this board that did not make it the leader
	Deferred bool    // this board has withdrawn its own candidacy once in favour of it
}

// Request is a request for a vote that was not granted yet.
type Request struct {
	Header wire.Header
	Number uint32
	Binds  time.Duration  // for how long the vote binds
	Fresh  clock.Deadline // until when it may be granted
}

// NewSupport returns that of a board which nobody supports yet.
func NewSupport(ids []wire.ID) Support {
	s := Support{Voters: make([]Voter, len(ids))}
	for i, id := range ids {
		s.Voters[i].ID = id
	}
	sort.Slice(s.Voters, func(i, j int) bool { return s.Voters[i].ID < s.Voters[j].ID })
	return s
}

// Voter returns the voter with that id, or nil.
func (s *Support) Voter(id wire.ID) *Voter {
	for i := range s.Voters {
		if s.Voters[i].ID == id {
			return &s.Voters[i]
		}
	}
	return nil
}

// majority is how many voters a leader needs. Any two majorities have a voter in common.
func (s *Support) majority() int { return len(s.Voters)/2 + 1 }

// Forget forgets what was promised, since the candidacy or the reign is over: what comes late
// for it does not count for the next one.
func (s *Support) Forget() {
	s.sent = s.sent[:0]
	for i := range s.Voters {
		s.Voters[i].until, s.Voters[i].Acked = 0, 0
	}
}

// Add remembers something that is sent now, and numbers it.
func (s *Support) Add(item Sent) *Sent {
	over := 0
	for over < len(s.sent) && s.sent[over].Ends <= item.At {
		over++
	}
	if len(s.sent)-over >= sentMax {
		over++
	}
	s.Number++
	item.Number = s.Number
	s.sent = append(slices.Delete(s.sent, 0, over), item)
	return s.Newest()
}

// Newest returns what was sent last.
func (s *Support) Newest() *Sent { return &s.sent[len(s.sent)-1] }

// find returns the newest of the requests, or of the heartbeats, that satisfies a condition, or nil.
func (s *Support) find(request bool, holds func(*Sent) bool) *Sent {
	for i := len(s.sent) - 1; i >= 0; i-- {
		if item := &s.sent[i]; item.Request == request && holds(item) {
			return item
		}
	}
	return nil
}

// Request returns the request of that number, or nil.
func (s *Support) Request(number uint32) *Sent {
	return s.find(true, func(item *Sent) bool { return item.Number == number })
}

// Heartbeat returns the heartbeat of that sequence, or nil.
func (s *Support) Heartbeat(sequence wire.Sequence) *Sent {
	return s.find(false, func(item *Sent) bool { return item.sequence == sequence && sequence != 0 })
}

// Sequenced notes which sequence the heartbeat of that number has got.
func (s *Support) Sequenced(number uint32, sequence wire.Sequence) {
	if item := s.find(false, func(item *Sent) bool { return item.Number == number }); item != nil {
		item.sequence = sequence
	}
}

// Count counts the support of a voter for something that was sent.
func (v *Voter) Count(item *Sent) {
	v.until = max(v.until, item.Ends)
	v.Acked = max(v.Acked, item.At)
}

// counts reports whether what a voter says counts. If it runs in two processes, one of them may
// make a promise that the other one does not know.
func (v *Voter) counts(now clock.Instant) bool { return !v.Twice.Ahead(now) }

// End is until when a majority supports this board.
func (s *Support) End(now clock.Instant) clock.Instant {
	return s.majorityOf(now, func(v *Voter) clock.Instant { return v.until })
}

// Acked is when the newest message that a majority has acknowledged was sent.
func (s *Support) Acked(now clock.Instant) clock.Instant {
	return s.majorityOf(now, func(v *Voter) clock.Instant { return v.Acked })
}

// majorityOf returns the latest time that a majority of the voters reaches; a voter that does not count has reached none.
func (s *Support) majorityOf(now clock.Instant, of func(*Voter) clock.Instant) (latest clock.Instant) {
	for i := range s.Voters {
		at, reached := of(&s.Voters[i]), 0
		for j := range s.Voters {
			if v := &s.Voters[j]; v.counts(now) && of(v) >= at {
				reached++
			}
		}
		if reached >= s.majority() {
			latest = max(latest, at)
		}
	}
	return latest
}

// TwiceFor is for how long a voter that was seen in two processes does not count. By then every
// promise of the other process is over, and a voter that lives has said HELLO five times.
const TwiceFor = 5 * time.Second

// Hear notes in which incarnation a voter was heard, and reports whether it is there twice:
// one that has restarted is not heard in its former incarnation any more.
func (v *Voter) Hear(now clock.Instant, incarnation wire.Incarnation) (twice bool) {
	if v.incarnation == incarnation {
		return false
	}
	if twice = v.former == incarnation; twice {
		v.Twice = clock.Due(now + TwiceFor)
	}
	v.incarnation, v.former = incarnation, v.incarnation
	return twice
}
