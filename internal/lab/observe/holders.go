package observe

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"
)

// Holders records which boards have the floating address. Whoever builds the boards tells it
// of every change. The record is never too long: an address that moves ten
// times a second needs 4 MB for an hour.
type Holders struct {
	mu      sync.Mutex
	changes []change      // in the order of time; the first is how it was to begin with
	lost    int           // see Lost
	changed chan struct{} // closed at the next change or the end
	err     error         // why there will be no more changes
}

// change is one board getting or losing the address, and who has it then.
type change struct {
	at      time.Time
	got     int   // the board that has got it; 0 if one has lost it
	holders []int // in ascending order; never nil
}

// NewHolders begins a record with the boards that have the address now. Of several nobody
// knows which one got it last.
func NewHolders(boards ...int) *Holders { return holdersSince(time.Now(), boards...) }

func holdersSince(start time.Time, boards ...int) *Holders {
	holders := append([]int{}, boards...)
	slices.Sort(holders)
	first := change{at: start, holders: holders}
	if n := len(holders); n > 0 {
		first.got = holders[n-1]
	}
	return &Holders{changed: make(chan struct{}), changes: []change{first}}
}

// Set records that a board has the address from a point in time on, or has it no longer.
func (h *Holders) Set(at time.Time, board int, holds bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	next := change{at: at, holders: slices.Clone(h.current())}
	i, held := slices.BinarySearch(next.holders, board)
	switch {
	case holds:
		next.got = board
		if !held {
			next.holders = slices.Insert(next.holders, i, board)
		}
	case held:
		next.holders = slices.Delete(next.holders, i, i+1)
	}
	h.changes = append(h.changes, next)
	h.wakeAll()
}

// current returns who has the address now. h.mu is held.
func (h *Holders) current() []int { return h.changes[len(h.changes)-1].holders }

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
	return slices.Clone(h.current())
}

// WaitFor waits until cond is true of the boards that have the address, in
// ascending order. It is asked about the present state and then about every
// single change in turn, so that no state is too short to be seen.
func (h *Holders) WaitFor(ctx context.Context, cond func(boards []int) bool) error {
	h.mu.Lock()
	seen := len(h.changes) - 1
	h.mu.Unlock()
	for {
		h.mu.Lock()
		boards := h.changes[seen].holders
		behind := seen < len(h.changes)-1
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
	first := h.changes[0]
	from = later(from, first.at)
	tl := Timeline{From: from, To: later(from, to), Before: first.got}
	last := map[int]int{} // which span is the last one of a board
	for i, c := range h.changes {
		if !c.at.Before(tl.To) {
			break
		}
		if c.got != 0 && c.at.Before(from) {
			tl.Before = c.got
		}
		until := tl.To
		if i+1 < len(h.changes) && h.changes[i+1].at.Before(until) {
			until = h.changes[i+1].at
		}
		since := later(c.at, from)
		if !since.Before(until) {
			continue
		}
		for _, board := range c.holders {
			n, goesOn := last[board]
			if goesOn = goesOn && tl.Spans[n].To.Equal(since); !goesOn {
				n = len(tl.Spans)
				tl.Spans = append(tl.Spans, Span{Board: board, From: since})
				last[board] = n
			}
			tl.Spans[n].To = until
		}
	}
	return tl
}

func later(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}

// Lost returns how often the kernel had to drop notifications because this
// process was too slow to read them. Unless it is zero, the record may lack
// changes that were over soon, and a figure made of it is worth nothing.
func (h *Holders) Lost() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.lost
}
