package sim

import (
	"time"

	"topdog/election"
)

// Two holders do harm where both can be reached from one place, and a holder is of use only if
// it can be reached at all: a board whose port drops what it sends, or what is for it, may hold
// the address without either.

// reach is what a host on the LAN can reach from a moment on.
type reach struct {
	at    election.Instant
	some  bool // a holder can be reached from somewhere
	twice bool // two can be reached from one place
}

// noteReach is called whenever a holder, a port or the LAN has changed.
func (s *Sim) noteReach() {
	now := reach{at: s.now}
	for i, b := range s.boards {
		if !b.served() {
			continue
		}
		now.some = true
		for _, other := range s.boards[:i] {
			if other.served() && (!s.grouped || other.group == b.group) {
				now.twice = true
			}
		}
	}
	s.reaches = append(s.reaches, now)
}

// served reports whether a host at the board's part of the LAN can reach the address there.
func (b *Board) served() bool {
	return b.holding && !b.fenced && b.plugged && !b.dropIn && !b.dropOut
}

// Reach says how well the address could be reached since a moment.
type Reach struct {
	// Nowhere is the longest time without a holder that could be reached.
	Nowhere time.Duration
	// Twice is the longest time in which two holders could be reached from one place.
	Twice time.Duration
}

// Reach looks at the time from since until now.
func (s *Sim) Reach(since election.Instant) (r Reach) {
	var nowhere, twice time.Duration
	for i, one := range s.reaches {
		until := s.now
		if i+1 < len(s.reaches) {
			until = s.reaches[i+1].at
		}
		d := max(0, until-max(one.at, since))
		if nowhere += d; one.some {
			nowhere = 0
		}
		if twice += d; !one.twice {
			twice = 0
		}
		r.Nowhere, r.Twice = max(r.Nowhere, nowhere), max(r.Twice, twice)
	}
	return r
}
