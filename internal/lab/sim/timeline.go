package sim

import (
	"slices"
	"time"

	"topdog/election"
)

// timeline is who held the address when.
type timeline struct {
	changes []holding
}

type holding struct {
	at    election.Instant
	board *Board
	on    bool
}

func (t *timeline) change(at election.Instant, board *Board, on bool) {
	t.changes = append(t.changes, holding{at, board, on})
}

// Summary says how well the address was kept since a moment.
type Summary struct {
	// Doubled is how long two boards or more had the address, and Vacant how long none had it.
	Doubled, Vacant time.Duration
	// LongestVacancy is the longest time without a holder.
	LongestVacancy time.Duration
	// Moves counts how often another board than the one before had it: it took it, or
	// went on holding it when another one that had acquired it as well released it.
	Moves int
	// Holders are the boards that have it now.
	Holders []*Board
}

// Summarise looks at the time from since until now.
func (s *Sim) Summarise(since election.Instant) (sum Summary) {
	var holders []*Board
	var last *Board
	var from election.Instant
	account := func(until election.Instant) {
		d := until - max(from, since)
		if d <= 0 {
			return
		}
		switch {
		case len(holders) == 0:
			sum.Vacant += d
			sum.LongestVacancy = max(sum.LongestVacancy, d)
		case len(holders) > 1:
			sum.Doubled += d
		}
	}
	for _, c := range s.holds.changes {
		if c.at != from {
			account(c.at)
			from = c.at
		}
		has := c.board
		if c.on {
			holders = append(holders, c.board)
		} else {
			holders = slices.DeleteFunc(holders, func(b *Board) bool { return b == c.board })
			if len(holders) == 0 {
				continue
			}
			has = holders[len(holders)-1]
		}
		if last != has && last != nil && c.at >= since {
			sum.Moves++
		}
		last = has
	}
	account(s.now)
	sum.Holders = holders
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
	for _, c := range s.holds.changes {
		if c.on {
			all = append(all, HoldSpan{Board: c.board, From: c.at, Until: s.now})
			continue
		}
		for i := range all {
			if r := &all[i]; r.Board == c.board && !r.Ended {
				r.Until, r.Ended = c.at, true
			}
		}
	}
	return slices.DeleteFunc(all, func(r HoldSpan) bool { return r.Ended && r.Until < since })
}
