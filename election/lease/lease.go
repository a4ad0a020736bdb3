// Package lease says until when a board may lead. A leader's lease lasts from before a heartbeat
// was sent. A voter's promise lasts from when that heartbeat arrived, and is longer. It is arithmetic
// on values: who asks for votes, and who gives them, is in package election.
package lease

import (
	"time"

	"topdog/election/clock"
	"topdog/election/silence"
	"topdog/wire"
)

// WithinLease is how late a heartbeat may be until the lease ends: a quarter of the grace is left
// to release the address.
func WithinLease(grace time.Duration) time.Duration { return grace * 3 / 4 }

// GraceFor is the grace with which a heartbeat that is so late is still within the lease.
func GraceFor(late time.Duration) time.Duration { return (late*4 + 2) / 3 }

// VoterStatus is what a board can tell people of one voter.
type VoterStatus struct {
	ID wire.ID
	// Supports says that the voter has promised to support this board, until later than now.
	// Only a leader, or a board that asks for the lead, has promises.
	Supports bool
	Twice    bool // it is there in two processes, so it does not count
}

// PromiseMax is the longest promise that a voter makes, and for how long it makes none after its
// start: its former life cannot have promised more.
func PromiseMax(interval, patience time.Duration) time.Duration { return interval + patience }

// Status returns what is known of all voters, ordered by id.
func (s *Support) Status(now clock.Instant) (all []VoterStatus) {
	for i := range s.Voters {
		v := &s.Voters[i]
		twice := !v.counts(now)
		all = append(all, VoterStatus{ID: v.ID, Supports: !twice && v.until > now, Twice: twice})
	}
	return all
}

// Promise is whom a voter supports, and until when. It belongs to no role: it survives every
// change of role and a lost link. Its end never moves back, except on the word of the board
// that it was made to. A process that has just started does not know what its former life has
// promised, so it begins with a promise to nobody (PaxosLease, arXiv 1209.4187, section 5).
type Promise struct {
	To          wire.ID
	Incarnation wire.Incarnation
	Until       clock.Instant
	sequence    wire.Sequence // of the newest message of that board on which it rests
	// Number is that of the request that was granted, as long as no heartbeat was
	// acknowledged since; else 0.
	Number uint32
}

// Is reports whether the promise was made to that board, whether it has ended or not.
func (p *Promise) Is(id wire.ID, incarnation wire.Incarnation) bool {
	return p.To == id && p.Incarnation == incarnation
}

// Free reports whether the promise has ended.
func (p *Promise) Free(now clock.Instant) bool { return now >= p.Until }

// Allows reports whether a board may be supported.
func (p *Promise) Allows(now clock.Instant, id wire.ID, incarnation wire.Incarnation) bool {
	return p.Free(now) || p.Is(id, incarnation)
}

// Make promises to support a board that the promise allows. number is that of the request that is granted, or 0.
func (p *Promise) Make(h *wire.Header, number uint32, until clock.Instant) {
	if !p.Is(h.Sender, h.Incarnation) {
		*p = Promise{To: h.Sender, Incarnation: h.Incarnation}
	}
	p.Until = max(p.Until, until)
	p.sequence = max(p.sequence, h.Sequence)
	p.Number = number
}

// Release ends a promise on the word of the board that it was made to. It does not end one that
// rests on a later message of that board: the network may deliver messages in another order.
func (p *Promise) Release(now clock.Instant, h *wire.Header) (released bool) {
	if p.Free(now) || !p.Is(h.Sender, h.Incarnation) || h.Sequence <= p.sequence {
		return false
	}
	p.Until = now
	return true
}

// Promised is for how long a heartbeat or a request of that interval and grace binds a voter
// from its receipt on.
func Promised(interval, grace time.Duration) time.Duration {
	return interval + orDefault(grace, interval)
}

// orDefault is an announced grace, or the default of the interval.
func orDefault(grace, interval time.Duration) time.Duration {
	if grace == 0 {
		return silence.DefaultGrace(interval)
	}
	return grace
}

// Leased is for how long the sender of a heartbeat or a request has the support of a voter,
// counted from before it was sent. A quarter of the grace is left for clocks that do not run
// at the same rate, and to release the address. It must be a fiftieth of the whole at least: a
// voter's clock that is 1 % fast ends a promise after 1/1.01 of it, and a leader's clock that
// is 1 % slow ends a lease after 1/0.99, so a lease must be shorter than 0.99/1.01 = 0.9802 of
// a promise. Of H + H/10 a quarter of the grace is 2.3 %.
func Leased(interval, grace time.Duration) time.Duration {
	whole := Promised(interval, grace)
	return min(whole-orDefault(grace, interval)/4, whole*49/50)
}
