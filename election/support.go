package election

import (
	"slices"
	"time"
	"topdog/election/clock"
	"topdog/wire"
)

// MaxVoters bounds a list of voters: more would only make every heartbeat cost more.
const MaxVoters = 15

// support is what the voters have promised this board, in one candidacy and the reign that
// follows from it.
type support struct {
	voters []voter // ordered by id
	// sent has the heartbeats and requests that may still be answered, the oldest first. Of
	// the others the lease would be over already.
	sent   []sentItem
	number uint32 // of the newest one; 0 is none
}

// sentMax bounds how many are remembered. A heartbeat that nobody acknowledges is repeated every
// millisecond to each of the other voters, for about an interval.
const sentMax = 1024

// sentItem is a heartbeat, or a request for votes.
type sentItem struct {
	number   uint32
	request  bool
	sequence wire.Sequence // of a heartbeat; 0 until the owner has told it
	term     wire.Term
	at       Instant // when the call began that sent it
	ends     Instant // until when who supports it supports it
}

// voter is what this board knows of one of the voters, which may be itself.
type voter struct {
	id    wire.ID
	until Instant // it has promised to support this board until then
	acked Instant // when that was sent which it has acknowledged last

	incarnation wire.Incarnation
	former      wire.Incarnation // before that one; 0 if there was none
	twice       clock.Deadline   // it was seen in two incarnations at once until then

	request  request // it asks for this board's vote
	vain     int     // votes of this board that did not make it the leader
	deferred bool    // this board has withdrawn its own candidacy once in favour of it
}

// request is a request for a vote that was not granted yet.
type request struct {
	header wire.Header
	number uint32
	binds  time.Duration  // for how long the vote binds
	fresh  clock.Deadline // until when it may be granted
}

func newSupport(ids []wire.ID) support {
	s := support{voters: make([]voter, len(ids))}
	for i, id := range slices.Sorted(slices.Values(ids)) {
		s.voters[i].id = id
	}
	return s
}

// voter returns the voter with that id, or nil.
func (s *support) voter(id wire.ID) *voter {
	for i := range s.voters {
		if s.voters[i].id == id {
			return &s.voters[i]
		}
	}
	return nil
}

// majority is how many voters a leader needs. Any two majorities have a voter in common.
func (s *support) majority() int { return len(s.voters)/2 + 1 }

// forget forgets what was promised, since the candidacy or the reign is over: what comes late
// for it does not count for the next one.
func (s *support) forget() {
	s.sent = s.sent[:0]
	for i := range s.voters {
		s.voters[i].until, s.voters[i].acked = 0, 0
	}
}

// add remembers something that is sent now, and numbers it.
func (s *support) add(item sentItem) *sentItem {
	over := 0
	for over < len(s.sent) && s.sent[over].ends <= item.at {
		over++
	}
	if len(s.sent)-over >= sentMax {
		over++
	}
	s.number++
	item.number = s.number
	s.sent = append(slices.Delete(s.sent, 0, over), item)
	return s.newest()
}

// newest returns what was sent last.
func (s *support) newest() *sentItem { return &s.sent[len(s.sent)-1] }

// find returns the newest of what was sent that satisfies a condition, or nil.
func (s *support) find(holds func(*sentItem) bool) *sentItem {
	for i := len(s.sent) - 1; i >= 0; i-- {
		if holds(&s.sent[i]) {
			return &s.sent[i]
		}
	}
	return nil
}

// request returns the request of that number, or nil.
func (s *support) request(number uint32) *sentItem {
	return s.find(func(item *sentItem) bool { return item.request && item.number == number })
}

// heartbeat returns the heartbeat of that sequence, or nil.
func (s *support) heartbeat(sequence wire.Sequence) *sentItem {
	return s.find(func(item *sentItem) bool {
		return !item.request && item.sequence == sequence && sequence != 0
	})
}

// count counts the support of a voter for something that was sent.
func (v *voter) count(item *sentItem) {
	v.until = max(v.until, item.ends)
	v.acked = max(v.acked, item.at)
}

// counts reports whether what a voter says counts. If it is there twice, one of the two may
// promise what the other one does not know of.
func (v *voter) counts(now Instant) bool { return !v.twice.Ahead(now) }

// end is until when a majority supports this board.
func (s *support) end(now Instant) Instant {
	return s.majorityOf(now, func(v *voter) Instant { return v.until })
}

// acked is when that was sent which a majority has acknowledged.
func (s *support) acked(now Instant) Instant {
	return s.majorityOf(now, func(v *voter) Instant { return v.acked })
}

// majorityOf returns the latest time that a majority of the voters reaches.
func (s *support) majorityOf(now Instant, of func(*voter) Instant) Instant {
	times := make([]Instant, 0, MaxVoters)
	for i := range s.voters {
		if v := &s.voters[i]; v.counts(now) {
			times = append(times, of(v))
		} else {
			times = append(times, 0)
		}
	}
	slices.Sort(times)
	return times[len(times)-s.majority()]
}

// hear notes in which incarnation a voter was heard, and reports whether it is there twice:
// one that has restarted is not heard in its former incarnation any more.
func (v *voter) hear(now Instant, incarnation wire.Incarnation) (twice bool) {
	switch {
	case v.incarnation == incarnation:
	case v.former == incarnation:
		v.incarnation, v.former = incarnation, v.incarnation
		v.twice = clock.Due(now + barredFor)
		return true
	default:
		v.incarnation, v.former = incarnation, v.incarnation
	}
	return false
}
