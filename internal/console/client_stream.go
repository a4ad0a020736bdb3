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
	// aliveLooks is how often it is looked within that time whether the daemon has said something.
	aliveLooks = 5
)

// Watch calls each with how the board is, and then with every transition. It returns why it ended: ctx has ended, each
// has failed, or the daemon has gone or is silent.
func (c *Client) Watch(ctx context.Context, o WatchOptions, each func(Transition) error) error {
	caller := ctx
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	late := time.AfterFunc(c.timeout, func() { cancel(context.DeadlineExceeded) })
	defer late.Stop()

	response, err := c.do(ctx, http.MethodGet, pathEvents+"?alive", nil)
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
		silent.Store(math.MinInt32) // it does not count as silence how long each takes
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

// endSilence cancels the request for a stream when nothing has come for too long, as silent counts. A program that was
// stopped meanwhile (Ctrl-Z) looks once when it goes on, and has the time until the next look to read what has come.
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
	// systemd starts a daemon again that has failed, mostly within 200 ms. A daemon that was stopped for good is looked
	// for less and less often.
	retryMin = 50 * time.Millisecond
	retryMax = time.Second
	// startWithin is how long a daemon may take that starts at the same time as whoever follows it.
	startWithin = 2 * time.Second
)

// Follow is Watch without an end: it returns only when ctx ends or each fails. When the daemon goes away or is silent,
// each is called with EventDaemonGone, which has the reason in words. When the daemon is back, there is another
// EventSnapshot.
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
	since   time.Time     // when it began to look for the first daemon; zero once there was one
	pause   time.Duration // before it looks again
	gone    bool          // that there is no daemon was told
}

// heard passes on what the daemon says.
func (f *follower) heard(t Transition) error {
	f.last, f.gone, f.pause, f.since = t, false, retryMin, time.Time{}
	f.failed = f.each(t)
	return f.failed
}

// lost tells that there is no daemon. What does not change with that, such as the group, stays as it was.
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
