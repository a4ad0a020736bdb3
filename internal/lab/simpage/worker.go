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

// So many requests may wait for their turn: a class that clicks at the same time, and of one address as many as a browser makes.
const (
	mayWait     = 64
	mayWaitEach = 6
)

// worker computes one thing at a time, since the machine may be small. A few may wait, and of one address only some of them, so
// that nobody keeps all others out.
type worker struct {
	turn  chan struct{}
	limit time.Duration // for one

	mu   sync.Mutex
	from map[netip.Addr]int // how many wait or compute, and are from where
}

func newWorker(limit time.Duration) *worker {
	return &worker{turn: make(chan struct{}, 1), limit: limit, from: map[netip.Addr]int{}}
}

// enter takes a place, or says why there is none. leave gives it back.
func (w *worker) enter(from netip.Addr) (leave func(), err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	all := 0
	for _, n := range w.from {
		all += n
	}
	switch {
	case all > mayWait:
		return nil, busy(fmt.Sprintf("%d others wait already", all))
	case w.from[from] == mayWaitEach:
		return nil, busy(fmt.Sprintf("%d requests of your address wait already", mayWaitEach))
	}
	w.from[from]++
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.from[from]--; w.from[from] == 0 {
			delete(w.from, from)
		}
	}, nil
}

// do computes something when it is its turn. It gives up when ctx ends, as it does when the
// browser goes: the place is free again then.
func (w *worker) do(ctx context.Context, from netip.Addr, compute func(context.Context) (any, error)) (any, error) {
	leave, err := w.enter(from)
	if err != nil {
		return nil, err
	}
	defer leave()
	select {
	case w.turn <- struct{}{}:
		defer func() { <-w.turn }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	limited, cancel := context.WithTimeout(ctx, w.limit)
	defer cancel()
	result, err := compute(limited)
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		return nil, &web.Error{
			Code: http.StatusServiceUnavailable, Message: fmt.Sprintf("this takes longer than %v", w.limit),
			Hint: "choose fewer boards",
		}
	}
	return result, err
}

// busy says that a request must come again later.
func busy(why string) error {
	return &web.Error{Code: http.StatusServiceUnavailable, Message: "the simulator is busy: " + why, Hint: "ask again in a few seconds"}
}
