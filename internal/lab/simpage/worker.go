package simpage

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"topdog/internal/web"
)

// worker computes one thing at a time, since the machine may be small. A few may wait, and of one address only some of them, so
// that nobody keeps all others out.
type worker struct {
	places int // who waits or computes, at most
	each   int // the same, of one address
	turn   chan struct{}
	limit  time.Duration // for one

	mu    sync.Mutex
	taken int
	from  map[netip.Addr]int // how many of them are from where
}

func newWorker(waiting, each int, limit time.Duration) *worker {
	return &worker{places: waiting + 1, each: each, turn: make(chan struct{}, 1), limit: limit, from: map[netip.Addr]int{}}
}

// enter takes a place, or says why there is none.
func (w *worker) enter(from netip.Addr) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.taken == w.places:
		return busy(fmt.Sprintf("%d others wait already", w.places))
	case w.from[from] == w.each:
		return busy(fmt.Sprintf("%d requests of your address wait already", w.each))
	}
	w.taken++
	w.from[from]++
	return nil
}

// leave gives a place back.
func (w *worker) leave(from netip.Addr) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.taken--
	if w.from[from]--; w.from[from] == 0 {
		delete(w.from, from)
	}
}

// do computes something when it is its turn. It gives up when ctx ends, as it does when the
// browser goes: the place is free again then.
func (w *worker) do(ctx context.Context, from netip.Addr, compute func(context.Context) error) error {
	if err := w.enter(from); err != nil {
		return err
	}
	defer w.leave(from)
	select {
	case w.turn <- struct{}{}:
		defer func() { <-w.turn }()
	case <-ctx.Done():
		return ctx.Err()
	}
	limited, cancel := context.WithTimeout(ctx, w.limit)
	defer cancel()
	err := compute(limited)
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		return &web.Error{
			Code: http.StatusServiceUnavailable, Message: fmt.Sprintf("this takes longer than %v", w.limit),
			Hint: "choose fewer boards",
		}
	}
	return err
}

// busy says that a request must come again later.
func busy(why string) error {
	return &web.Error{Code: http.StatusServiceUnavailable, Message: "the simulator is busy: " + why, Hint: "ask again in a few seconds"}
}
