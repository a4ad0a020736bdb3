package simpage

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"topdog/internal/web"
)

// worker computes one thing at a time, since the machine may be small. A few may wait.
type worker struct {
	places chan struct{} // who waits or computes
	turn   chan struct{}
	limit  time.Duration // for one
}

func newWorker(waiting int, limit time.Duration) *worker {
	return &worker{places: make(chan struct{}, waiting+1), turn: make(chan struct{}, 1), limit: limit}
}

// do computes something when it is its turn. It gives up when ctx ends, as it does when the
// browser goes: the place is free again then.
func (w *worker) do(ctx context.Context, compute func(context.Context) error) error {
	select {
	case w.places <- struct{}{}:
		defer func() { <-w.places }()
	default:
		return busy(fmt.Sprintf("%d others wait already", cap(w.places)))
	}
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
