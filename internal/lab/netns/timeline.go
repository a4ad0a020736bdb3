package netns

import (
	"cmp"
	"slices"
	"sort"
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

// Moves returns how often the address came to another board than the one to
// which it had come before. The first board ever to get it is no move, and
// neither is a board that loses it and gets it back.
func (tl Timeline) Moves() (n int) {
	last := tl.Before
	for _, s := range tl.Spans {
		if last != 0 && s.Board != last {
			n++
		}
		last = s.Board
	}
	return n
}

// during adds up the time in which the number of holders satisfies want.
func (tl Timeline) during(want func(holders int) bool) (sum time.Duration) {
	type edge struct {
		at   time.Time
		step int
	}
	edges := make([]edge, 0, 2*len(tl.Spans)+1)
	for _, s := range tl.Spans {
		edges = append(edges, edge{s.From, +1}, edge{s.To, -1})
	}
	sort.Slice(edges, func(i, j int) bool { return edges[i].at.Before(edges[j].at) })
	edges = append(edges, edge{at: tl.To})

	holders, at := 0, tl.From
	for _, e := range edges {
		if want(holders) {
			sum += e.at.Sub(at)
		}
		holders, at = holders+e.step, e.at
	}
	return sum
}

// change is one board getting (holds) or losing the address.
type change struct {
	at    time.Time
	board int
	holds bool
}

// record is the history of an address: who had it to begin with, and every
// change since, in the order of time.
type record struct {
	holders map[int]bool // before the first of changes
	last    int          // the board that got it last before the first of changes
	start   time.Time    // when holders was true
	changes []change
	dropped int // changes that were forgotten
}

// maxChanges bounds the memory of a record (about 2.5 MB). A LAN in which an
// address moves ten times a second takes an hour to get there.
const maxChanges = 1 << 16

// add appends a change, and forgets the older half when there are too many.
func (r *record) add(c change) {
	if len(r.changes) == maxChanges {
		half := maxChanges / 2
		for _, c := range r.changes[:half] {
			r.last = arrival(r.last, c)
			r.start = c.at
			apply(r.holders, c)
		}
		r.changes = append(r.changes[:0], r.changes[half:]...)
		r.dropped += half
	}
	r.changes = append(r.changes, c)
}

// total returns the number of changes of all time.
func (r *record) total() int { return r.dropped + len(r.changes) }

// current returns the holders after all changes.
func (r *record) current() map[int]bool { return r.after(r.total()) }

// after returns the holders after the first n changes of all time.
func (r *record) after(n int) map[int]bool {
	holders := make(map[int]bool, len(r.holders))
	for b := range r.holders {
		holders[b] = true
	}
	for _, c := range r.changes[:max(0, n-r.dropped)] {
		apply(holders, c)
	}
	return holders
}

// timeline returns the part of the record between from and to. What is older
// than the record is left out.
func (r *record) timeline(from, to time.Time) Timeline {
	if from.Before(r.start) {
		from = r.start
	}
	tl := Timeline{From: from, To: to, Before: r.last}
	if to.Before(from) {
		tl.To = from
		return tl
	}
	since := make(map[int]time.Time) // holders, and since when
	for b := range r.holders {
		since[b] = from
	}
	for _, c := range r.changes {
		if !c.at.Before(to) {
			break
		}
		at := c.at
		if at.Before(from) {
			at = from
			tl.Before = arrival(tl.Before, c)
		}
		began, held := since[c.board]
		switch {
		case c.holds && !held:
			since[c.board] = at
		case !c.holds && held:
			tl.add(Span{c.board, began, at})
			delete(since, c.board)
		}
	}
	for b, began := range since {
		tl.add(Span{b, began, to})
	}
	sort.Slice(tl.Spans, func(i, j int) bool {
		a, b := tl.Spans[i], tl.Spans[j]
		return cmp.Or(a.From.Compare(b.From), a.Board-b.Board) < 0
	})
	return tl
}

// add appends a span unless it is empty.
func (tl *Timeline) add(s Span) {
	if s.From.Before(s.To) {
		tl.Spans = append(tl.Spans, s)
	}
}

// arrival returns the board that got the address last, given the one before.
func arrival(last int, c change) int {
	if c.holds {
		return c.board
	}
	return last
}

func apply(holders map[int]bool, c change) {
	if c.holds {
		holders[c.board] = true
	} else {
		delete(holders, c.board)
	}
}

// boardsOf returns a set of boards as an ascending list.
func boardsOf(holders map[int]bool) []int {
	list := make([]int, 0, len(holders))
	for b := range holders {
		list = append(list, b)
	}
	slices.Sort(list)
	return list
}
