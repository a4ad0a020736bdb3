package observe

import (
	"slices"
	"sort"
	"time"
)

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
		return a.From.Before(b.From) || a.From.Equal(b.From) && a.Board < b.Board
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
