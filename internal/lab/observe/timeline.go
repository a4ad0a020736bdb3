package observe

import (
	"slices"
	"time"
)

// Timeline says which board had an address when, between From and To.
// All its arithmetic is pure.
type Timeline struct {
	From, To time.Time
	Before   int    // the board that got the address last before From; 0 if none did
	Spans    []Span // by From, then by board; clipped to [Timeline.From, Timeline.To)
}

// Span is the time in [From, To) during which Board had the address.
type Span struct {
	Board    int
	From, To time.Time
}

// Overlap returns for how long two or more boards had the address.
func (tl Timeline) Overlap() time.Duration {
	return tl.during(func(holders int) bool { return holders >= 2 })
}

// Vacant returns for how long no board had the address.
func (tl Timeline) Vacant() time.Duration {
	return tl.during(func(holders int) bool { return holders == 0 })
}

// Held returns for how long one board had the address.
func (tl Timeline) Held(board int) (d time.Duration) {
	for _, s := range tl.Spans {
		if s.Board == board {
			d += s.To.Sub(s.From)
		}
	}
	return d
}

// Moves returns how often the address went to another board. It counts as being
// where it came last. If that board loses it while another still has it, it has gone
// to that one; so a split that heals in favour of the old leader is a move. The first board
// ever to get it is no move, and neither is a board that loses it and gets it back before
// another has it.
func (tl Timeline) Moves() (n int) {
	holding := map[int]bool{}
	for _, s := range tl.Spans {
		if s.From.Equal(tl.From) {
			holding[s.Board] = true
		}
	}
	where := tl.Before
	if !holding[where] && len(holding) > 0 {
		where = highest(holding) // the only one, unless nothing is known of before
	}
	for _, e := range tl.edges() {
		switch {
		case e.gets && e.at.After(tl.From):
			holding[e.board] = true
			if where != 0 && where != e.board {
				n++
			}
			where = e.board
		case !e.gets && e.at.Before(tl.To):
			delete(holding, e.board)
			if e.board == where && len(holding) > 0 {
				where = highest(holding)
				n++
			}
		}
	}
	return n
}

// highest returns the highest number of a set that is not empty.
func highest(set map[int]bool) (most int) {
	for n := range set {
		most = max(most, n)
	}
	return most
}

// during adds up the time in which the number of holders satisfies want.
func (tl Timeline) during(want func(holders int) bool) (sum time.Duration) {
	holders, at := 0, tl.From
	count := func(until time.Time) {
		if want(holders) {
			sum += until.Sub(at)
		}
		at = until
	}
	for _, e := range tl.edges() {
		count(e.at)
		if e.gets {
			holders++
		} else {
			holders--
		}
	}
	count(tl.To)
	return sum
}

// edge is where a span begins or ends.
type edge struct {
	at    time.Time
	board int
	gets  bool // the span begins
}

// edges returns those of all spans in the order of time. Of two at the same time the loss comes
// first, since that is no overlap.
func (tl Timeline) edges() []edge {
	edges := make([]edge, 0, 2*len(tl.Spans))
	for _, s := range tl.Spans {
		edges = append(edges, edge{s.From, s.Board, true}, edge{s.To, s.Board, false})
	}
	slices.SortStableFunc(edges, func(a, b edge) int {
		if a.at.Equal(b.at) && a.gets != b.gets {
			if b.gets {
				return -1
			}
			return 1
		}
		return a.at.Compare(b.at)
	})
	return edges
}
