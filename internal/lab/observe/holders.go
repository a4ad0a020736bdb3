package observe

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"
)

// Holders records which boards have the floating address. Whoever builds the boards tells it
// of every change.
type Holders struct {
	mu      sync.Mutex
	record  record
	lost    int           // see Lost
	changed chan struct{} // closed at the next change or the end
	err     error         // why there will be no more changes
}

// record is the history of an address: who had it to begin with, and every
// change since, in the order of time. It is never too long: an address that moves ten
// times a second needs 2 MB for an hour.
type record struct {
	holders map[int]bool // before the first of changes
	last    int          // the board that got it last before the first of changes
	start   time.Time    // when holders was true
	changes []change
}

// change is one board getting (holds) or losing the address.
type change struct {
	at    time.Time
	board int
	holds bool
}

// NewHolders begins a record with the boards that have the address now. Of several nobody
// knows which one got it last.
func NewHolders(boards ...int) *Holders {
	h := &Holders{changed: make(chan struct{}), record: record{holders: make(map[int]bool), start: time.Now()}}
	for _, b := range boards {
		h.record.holders[b] = true
		h.record.last = max(h.record.last, b)
	}
	return h
}

// Set records that a board has the address from a point in time on, or has it no longer.
func (h *Holders) Set(at time.Time, board int, holds bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.record.changes = append(h.record.changes, change{at, board, holds})
	h.wakeAll()
}

// Lose records that a notification was lost.
func (h *Holders) Lose() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.lost++
}

// End says that there will be no more changes, and why. What was recorded can still be read.
func (h *Holders) End(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.err = err
	h.wakeAll()
}

// wakeAll wakes all callers of WaitFor. h.mu is held.
func (h *Holders) wakeAll() {
	close(h.changed)
	h.changed = make(chan struct{})
}

// Current returns the boards that have the address now, in ascending order.
func (h *Holders) Current() []int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return boardsOf(h.record.after(len(h.record.changes)))
}

// WaitFor waits until cond is true of the boards that have the address, in
// ascending order. It is asked about the present state and then about every
// single change in turn, so that no state is too short to be seen.
func (h *Holders) WaitFor(ctx context.Context, cond func(boards []int) bool) error {
	h.mu.Lock()
	seen := len(h.record.changes)
	h.mu.Unlock()
	for {
		h.mu.Lock()
		boards := boardsOf(h.record.after(seen))
		behind := seen < len(h.record.changes)
		changed, err := h.changed, h.err
		h.mu.Unlock()

		if cond(boards) {
			return nil
		}
		if behind {
			seen++
			continue
		}
		if err != nil {
			return fmt.Errorf("wait for other holders than %v: %w", boards, err)
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("wait for other holders than %v: %w", boards, ctx.Err())
		}
	}
}

// Since returns who had the address when, from t (or the start of the
// record, if that was later) until now.
func (h *Holders) Since(t time.Time) Timeline { return h.Between(t, time.Now()) }

// Between is Since until a point in time that is not later than now.
func (h *Holders) Between(from, to time.Time) Timeline {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.record.timeline(from, to)
}

// Lost returns how often the kernel had to drop notifications because this
// process was too slow to read them. Unless it is zero, the record may lack
// changes that were over soon, and a figure made of it is worth nothing.
func (h *Holders) Lost() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.lost
}

// after returns the holders after the first n changes.
func (r *record) after(n int) map[int]bool {
	holders := maps.Clone(r.holders)
	for _, c := range r.changes[:n] {
		if c.holds {
			holders[c.board] = true
		} else {
			delete(holders, c.board)
		}
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
			if c.holds {
				tl.Before = c.board
			}
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
	slices.SortFunc(tl.Spans, func(a, b Span) int { return cmp.Or(a.From.Compare(b.From), a.Board-b.Board) })
	return tl
}

// add appends a span unless it is empty.
func (tl *Timeline) add(s Span) {
	if s.From.Before(s.To) {
		tl.Spans = append(tl.Spans, s)
	}
}

// boardsOf returns a set of boards as an ascending list, which is empty and not nil if there are none.
func boardsOf(holders map[int]bool) []int {
	return append([]int{}, slices.Sorted(maps.Keys(holders))...)
}
