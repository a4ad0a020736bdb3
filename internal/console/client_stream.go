package console

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"sync/atomic"
	"time"

	"topdog/internal/web"
)

// WatchOptions say what a stream is for.
type WatchOptions struct {
	// Alive passes on EventAlive, which comes every second.
	Alive bool
}

const (
	// aliveWithin is how long a daemon may be silent: as long as systemd's watchdog waits, after which there is no daemon
	// any more.
	aliveWithin = 5 * time.Second
	// aliveLooks is how often within that time the client looks whether the daemon has said something.
	aliveLooks = 5
)

// Watch calls each with the state of the board, and then with every transition. It returns the reason why it ended: ctx has
// ended, each has failed, or the daemon has gone or is silent.
func (c *Client) Watch(ctx context.Context, o WatchOptions, each func(Transition) error) error {
	caller := ctx
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	late := time.AfterFunc(c.timeout, func() { cancel(context.DeadlineExceeded) })
	defer late.Stop()

	response, err := c.do(ctx, http.MethodGet, pathEvents, nil)
	if err != nil {
		return err
	}
	late.Stop()
	var silent atomic.Int32
	go c.endSilence(ctx, &silent, cancel)
	limited := &io.LimitedReader{R: response.Body}
	lines := json.NewDecoder(limited)
	for ; ; silent.Store(0) {
		limited.N = maxAnswer
		event, err := c.event(lines)
		if err != nil && limited.N == 0 {
			err = c.badAnswer(fmt.Errorf("a line of the stream has more than %d bytes", maxAnswer))
		}
		silent.Store(math.MinInt32) // the time that each takes does not count as silence
		switch {
		case caller.Err() != nil:
			return caller.Err()
		case ctx.Err() != nil:
			return c.explain(context.Cause(ctx))
		case err != nil:
			return err
		case event.Event == EventAlive && !o.Alive:
			continue
		}
		if err := each(event); err != nil {
			return err
		}
	}
}

// endSilence cancels the request for a stream when nothing has come for too long. It counts in silent how often it has
// looked since the last line. A program that was stopped meanwhile (Ctrl-Z) counts only one look when it goes on, and then
// has until the next look to read what has come.
func (c *Client) endSilence(ctx context.Context, silent *atomic.Int32, cancel context.CancelCauseFunc) {
	look := time.NewTicker(c.silence / aliveLooks)
	defer look.Stop()
	for silent.Add(1) <= aliveLooks {
		select {
		case <-look.C:
		case <-ctx.Done():
			return
		}
	}
	cancel(context.DeadlineExceeded)
}

// event decodes the next line of a stream. A daemon that was killed may have written half of it.
func (c *Client) event(lines *json.Decoder) (Transition, error) {
	var event struct {
		Transition
		web.Error
	}
	err := lines.Decode(&event)
	_, garbled := errors.AsType[*json.SyntaxError](err)
	_, mistyped := errors.AsType[*json.UnmarshalTypeError](err)
	switch {
	case garbled || mistyped:
		return Transition{}, c.badAnswer(err)
	case err != nil:
		return Transition{}, c.explain(err)
	case event.Message != "":
		return Transition{}, &web.Error{Message: event.Message, Hint: event.Hint}
	case event.Event == "":
		return Transition{}, c.badAnswer(errors.New("a line of the stream has no event"))
	}
	return event.Transition, nil
}

const (
	// systemd mostly restarts a failed daemon within 200 ms. If the daemon was stopped for good, the client looks for it
	// less and less often.
	retryMin = 50 * time.Millisecond
	retryMax = time.Second
	// startWithin is how long a daemon may take to start if it starts at the same time as the client.
	startWithin = 2 * time.Second
)

// Follow is like Watch, but goes on after the daemon has gone: it returns only when ctx ends or each fails. When the daemon
// has gone or is silent, Follow calls each with EventDaemonGone, with the reason in words. When the daemon is back, there
// is another EventSnapshot.
func (c *Client) Follow(ctx context.Context, o WatchOptions, each func(Transition) error) error {
	f := follower{options: o, each: each, since: time.Now(), pause: retryMin}
	for {
		err := c.Watch(ctx, f.options, f.heard)
		switch {
		case f.failed != nil:
			return f.failed
		case ctx.Err() != nil:
			return ctx.Err()
		}
		if err := f.lost(err); err != nil {
			return err
		}
		select {
		case <-time.After(f.pause):
		case <-ctx.Done():
			return ctx.Err()
		}
		f.pause = min(2*f.pause, retryMax)
	}
}

// follower is how far Follow has come.
type follower struct {
	options WatchOptions
	each    func(Transition) error
	failed  error // of each
	last    Transition
	since   time.Time     // when it began to look for the first daemon; zero once it has found one
	pause   time.Duration // before it looks again
	gone    bool          // each knows that there is no daemon
}

// heard passes on what the daemon says.
func (f *follower) heard(t Transition) error {
	f.last, f.gone, f.pause, f.since = t, false, retryMin, time.Time{}
	f.failed = f.each(t)
	return f.failed
}

// lost tells each that there is no daemon. What that does not change, such as the group, stays in the event.
func (f *follower) lost(err error) error {
	if f.gone || !f.since.IsZero() && time.Since(f.since) < startWithin {
		return nil
	}
	f.gone = true
	t := f.last
	t.Number, t.AgeNs, t.Missed, t.Status = 0, 0, 0, nil
	t.Event, t.Role, t.Reason, t.ReasonText = EventDaemonGone, "", "", err.Error()
	t.Holding, t.Leader, t.LeaderName, t.Term = false, "", "", 0
	return f.each(t)
}
