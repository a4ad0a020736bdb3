package bench

import (
	"cmp"
	"slices"

	"topdog/internal/lab/netns"
)

// moves returns how often the address went to another board. It counts as being
// where it came last. If that board loses it while another still has it, it has gone
// to that one; so a split that heals in favour of the old leader is a move. A board
// that loses it and gets it back before another has it is none.
func moves(tl netns.Timeline) (n int) {
	type edge struct {
		span int
		gets bool
	}
	var edges []edge
	holding := map[int]bool{}
	where := tl.Before
	for i, s := range tl.Spans {
		if s.From.Equal(tl.From) {
			holding[s.Board] = true
		} else {
			edges = append(edges, edge{i, true})
		}
		if s.To.Before(tl.To) {
			edges = append(edges, edge{i, false})
		}
	}
	if !holding[where] && len(holding) > 0 {
		where = highest(holding) // the only one, unless nothing is known of before
	}
	// Of two things at the same time the loss comes first: then it is no overlap.
	slices.SortStableFunc(edges, func(a, b edge) int {
		at := func(e edge) int64 {
			if e.gets {
				return tl.Spans[e.span].From.UnixNano()
			}
			return tl.Spans[e.span].To.UnixNano()
		}
		losesFirst := 0
		if a.gets != b.gets {
			losesFirst = 1
			if b.gets {
				losesFirst = -1
			}
		}
		return cmp.Or(cmp.Compare(at(a), at(b)), losesFirst)
	})
	for _, e := range edges {
		b := tl.Spans[e.span].Board
		if e.gets {
			holding[b] = true
			if b != where && where != 0 {
				n++
			}
			where = b
			continue
		}
		delete(holding, b)
		if b == where && len(holding) > 0 {
			where = highest(holding)
			n++
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
