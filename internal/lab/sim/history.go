package sim

import (
	"slices"
	"time"

	"topdog/election"
)

// situation is who answers at the address from a moment on. Two holders do harm where both can be reached from one place, and a
// holder is of use only if it can be reached at all: a board whose port drops what it sends, or what is for it, may hold the
// address without either.
type situation struct {
	at      election.Instant
	holders []*Board // in the order in which they began
	nowhere bool     // none of them can be reached from anywhere
	twice   bool     // two can be reached from one place
}

// holders are the boards that answer now.
func (s *Sim) holders() []*Board { return s.history[len(s.history)-1].holders }

// note is called whenever a holder, a port or the LAN has changed.
func (s *Sim) note() {
	now := situation{at: s.now, nowhere: true}
	now.holders = slices.DeleteFunc(slices.Clone(s.holders()), func(b *Board) bool { return !b.Answers() })
	for _, b := range s.boards {
		if b.Answers() && !slices.Contains(now.holders, b) {
			now.holders = append(now.holders, b)
		}
	}
	for i, b := range now.holders {
		if b.served() {
			now.nowhere = false
			now.twice = now.twice || slices.ContainsFunc(now.holders[:i], func(other *Board) bool { return other.served() && s.together(b, other) })
		}
	}
	s.history = append(s.history, now)
	for _, b := range s.boards {
		b.lookForAnswer()
	}
}

// served reports whether a host at the board's part of the LAN can reach the address there.
func (b *Board) served() bool { return b.plugged && !b.deaf() && !b.unheard() }

// together reports whether some board hears both.
func (s *Sim) together(a, b *Board) bool {
	return slices.ContainsFunc(s.boards, func(c *Board) bool { return s.carries(a, c, false) && s.carries(b, c, false) })
}

// Summary says how well the address was kept since a moment.
type Summary struct {
	// Doubled is how long two boards or more had the address, and Vacant how long none had it.
	Doubled, Vacant time.Duration
	// LongestVacancy is the longest time without a holder.
	LongestVacancy time.Duration
	// Nowhere is the longest time without a holder that could be reached.
	Nowhere time.Duration
	// Twice is the longest time in which two holders could be reached from one place.
	Twice time.Duration
	// Moves counts how often another board than the one before had it: it took it, or
	// went on holding it when another one that had acquired it as well released it.
	Moves int
	// Holders are the boards that have it now.
	Holders []*Board
}

// Summarise looks at the time from since until now.
func (s *Sim) Summarise(since election.Instant) (sum Summary) {
	var vacant, nowhere, twice time.Duration // for how long it has been so
	var last *Board
	for i, x := range s.history {
		until := s.now
		if i+1 < len(s.history) {
			until = s.history[i+1].at
		}
		d := max(0, until-max(x.at, since))
		lasts := func(so bool, run, longest *time.Duration) {
			if *run += d; !so {
				*run = 0
			}
			*longest = max(*longest, *run)
		}
		lasts(len(x.holders) == 0, &vacant, &sum.LongestVacancy)
		lasts(x.nowhere, &nowhere, &sum.Nowhere)
		lasts(x.twice, &twice, &sum.Twice)
		switch n := len(x.holders); {
		case n == 0:
			sum.Vacant += d
			continue
		case n > 1:
			sum.Doubled += d
		}
		has := x.holders[len(x.holders)-1]
		if last != has && last != nil && x.at >= since {
			sum.Moves++
		}
		last = has
	}
	sum.Holders = s.holders()
	return sum
}

// HoldSpan is a time during which a board had the address.
type HoldSpan struct {
	Board *Board
	From  election.Instant
	Until election.Instant // now, if it has not ended
	Ended bool
}

// HoldSpans returns those that had not ended at since, in the order in which they began.
func (s *Sim) HoldSpans(since election.Instant) []HoldSpan {
	var all []HoldSpan
	var before []*Board
	for _, x := range s.history {
		for i := range all {
			if r := &all[i]; !r.Ended && !slices.Contains(x.holders, r.Board) {
				r.Until, r.Ended = x.at, true
			}
		}
		for _, b := range x.holders {
			if !slices.Contains(before, b) {
				all = append(all, HoldSpan{Board: b, From: x.at, Until: s.now})
			}
		}
		before = x.holders
	}
	return slices.DeleteFunc(all, func(r HoldSpan) bool { return r.Ended && r.Until < since })
}
