// Package lease says until when a board may lead. A leader's lease lasts from before a heartbeat
// was sent. A voter's promise lasts from when that heartbeat arrived, and is longer. It is arithmetic
// on values: who asks for votes, and who gives them, is in package election.
package lease

import (
	"time"

	"topdog/election/clock"
	"topdog/wire"
)

// WithinLease is how late a heartbeat may be until the lease ends: a quarter of the grace is left
// to release the address.
func WithinLease(grace time.Duration) time.Duration { return grace * 3 / 4 }

// leaseGrace is the grace with which a heartbeat that is so late is still within the lease.
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

// Voters returns what is known of all voters, ordered by id.
func (s *Support) Status(now clock.Instant) (all []VoterStatus) {
	for i := range s.Voters {
		v := &s.Voters[i]
		twice := !v.counts(now)
		all = append(all, VoterStatus{ID: v.ID, Supports: !twice && v.until > now, Twice: twice})
	}
	return all
}
