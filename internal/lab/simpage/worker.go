package simpage

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/netip"
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
	turn   chan struct{}
	limit  time.Duration // for one
	places web.Places    // of those who wait or compute
}

func newWorker(limit time.Duration) *worker {
	// Whoever waits is quiet, and does not count as silent for that.
	return &worker{turn: make(chan struct{}, 1), limit: limit, places: web.Places{Total: mayWait + 1, Each: mayWaitEach, Young: math.MaxInt64}}
}

// errBusy says that a request must come again later.
var errBusy = &web.Error{
	Code: http.StatusServiceUnavailable, Message: "the simulator is busy: too many requests wait already", Hint: "ask again in a few seconds",
}

// do computes something when it is its turn. It gives up when ctx ends, as it does when the
// browser goes: the place is free again then.
func (w *worker) do(ctx context.Context, from netip.Addr, compute func(context.Context) (any, error)) (any, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	place := &web.Place{Client: from, Hangup: func() error { cancel(errBusy); return nil }}
	if !w.places.Take(place, time.Now()) {
		return nil, errBusy
	}
	defer w.places.Leave(place)
	select {
	case w.turn <- struct{}{}:
		defer func() { <-w.turn }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	limited, stop := context.WithTimeout(ctx, w.limit)
	defer stop()
	result, err := compute(limited)
	switch {
	case err == nil:
		return result, nil
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case errors.Is(err, context.DeadlineExceeded):
		return nil, &web.Error{
			Code: http.StatusServiceUnavailable, Message: fmt.Sprintf("this takes longer than %v", w.limit),
			Hint: "choose fewer boards",
		}
	}
	return nil, err
}
