package observe

import (
	"cmp"
	"iter"
	"maps"
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
	where := tl.Before
	var former []int // nil at the start
	for _, holders := range tl.phases() {
		begun := former != nil
		for _, b := range holders {
			if begun && !slices.Contains(former, b) {
				if where != 0 && where != b {
					n++
				}
				where = b
			}
		}
		if len(holders) > 0 && !slices.Contains(holders, where) {
			if begun {
				n++
			}
			where = slices.Max(holders) // at the start it is the only one, unless nothing is known of before
		}
		former = holders
	}
	return n
}

// during adds up the time in which the number of holders satisfies want.
func (tl Timeline) during(want func(holders int) bool) (sum time.Duration) {
	for d, holders := range tl.phases() {
		if want(len(holders)) {
			sum += d
		}
	}
	return sum
}

// phases are the times in which nothing changes, one after the other, with the boards that have the address then, in
// ascending order.
func (tl Timeline) phases() iter.Seq2[time.Duration, []int] {
	type edge struct {
		at    time.Time
		board int
		gets  int // 1 where a span begins, -1 where it ends, 0 at the end of all
	}
	var edges []edge
	for _, s := range tl.Spans {
		edges = append(edges, edge{s.From, s.Board, 1}, edge{s.To, s.Board, -1})
	}
	// Of two at the same time the loss comes first, since that is no overlap.
	slices.SortFunc(edges, func(a, b edge) int { return cmp.Or(a.at.Compare(b.at), a.gets-b.gets) })
	edges = append(edges, edge{at: tl.To})
	return func(yield func(time.Duration, []int) bool) {
		at, holders := tl.From, map[int]bool{}
		for _, e := range edges {
			if e.at.After(at) {
				boards := slices.AppendSeq([]int{}, maps.Keys(holders))
				slices.Sort(boards)
				if !yield(e.at.Sub(at), boards) {
					return
				}
				at = e.at
			}
			if e.gets > 0 {
				holders[e.board] = true
			} else {
				delete(holders, e.board)
			}
		}
	}
}
