package console

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"time"
)

// WatchOptions say what a stream is for.
type WatchOptions struct {
	// ForHooks asks for a place that the daemon reserves for those on whom others depend. Only
	// root, the daemon's user and the socket's group get one.
	ForHooks bool
	// Alive asks for EventAlive every second, and takes a daemon for dead that sends nothing.
	Alive bool
	// EachAlive has each called with EventAlive too. Set Alive as well.
	EachAlive bool
}

// path is what to ask for.
func (o WatchOptions) path() string {
	switch {
	case o.ForHooks && o.Alive:
		return pathEvents + "?for=hooks&alive"
	case o.ForHooks:
		return pathEvents + "?for=hooks"
	case o.Alive:
		return pathEvents + "?alive"
	}
	return pathEvents
}

// aliveWithin is how long a daemon may be silent that was asked for signs of life: as long as
// systemd's watchdog waits, after which there is no daemon any more.
const aliveWithin = 5 * time.Second

// Watch calls each with how the board is, and then with every transition, until ctx ends, each
// fails, or the daemon goes away; it returns why.
func (c *Client) Watch(ctx context.Context, o WatchOptions, each func(Transition) error) error {
	caller := ctx
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	silence := time.AfterFunc(c.timeout, func() { cancel(context.DeadlineExceeded) })
	defer silence.Stop()

	response, err := c.do(ctx, http.MethodGet, o.path(), nil)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	lines := bufio.NewScanner(response.Body)
	lines.Buffer(nil, maxAnswer)
	lines.Split(wholeLines)
	for lines.Scan() {
		silence.Stop() // what the caller does with it may take its time
		event, err := c.event(lines.Bytes())
		if err != nil {
			return err
		}
		if event.Event != EventAlive || o.EachAlive {
			if err := each(event); err != nil {
				return err
			}
		}
		if o.Alive {
			silence.Reset(aliveWithin)
		}
	}
	switch err := lines.Err(); {
	case caller.Err() != nil:
		return caller.Err()
	case errors.Is(err, bufio.ErrTooLong):
		return c.badAnswer(err)
	case context.Cause(ctx) != nil:
		return c.explain(context.Cause(ctx))
	default:
		return c.ended(err)
	}
}

// event decodes a line of a stream.
func (c *Client) event(line []byte) (Transition, error) {
	var event struct {
		Transition
		failure
	}
	if err := json.Unmarshal(line, &event); err != nil {
		return Transition{}, c.badAnswer(err)
	}
	if event.Error != "" {
		return Transition{}, &requestError{message: event.Error, hint: event.Hint}
	}
	if event.Event == "" {
		return Transition{}, c.badAnswer(errors.New("a line of the stream has no event"))
	}
	return event.Transition, nil
}

// wholeLines splits like bufio.ScanLines, and leaves out a last line without an end:
// a daemon that was killed while it wrote has sent no bad answer.
func wholeLines(data []byte, atEOF bool) (advance int, line []byte, err error) {
	if i := bytes.IndexByte(data, '\n'); i >= 0 {
		return i + 1, data[:i], nil
	}
	if atEOF {
		return len(data), nil, nil
	}
	return 0, nil, nil
}

const (
	// A daemon that has gone is back after 200 ms, mostly: systemd starts it again. Later it is
	// looked for less often, on a board where it was stopped for good.
	retryMin = 50 * time.Millisecond
	retryMax = time.Second
	// startWithin is how long a daemon may take to start that was started together with whoever
	// follows it.
	startWithin = 2 * time.Second
)

// Follow is Watch without an end: until ctx ends or each fails, which it returns. A daemon that goes
// away, or does not answer, is EventDaemonGone with the reason in words, and is waited for. When it
// is back there is another EventSnapshot.
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
		if f.failed = f.lost(err); f.failed != nil {
			return f.failed
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
	last    Transition
	since   time.Time     // when it began to look for a daemon that was never there
	pause   time.Duration // before it looks again
	gone    bool          // that was told
	failed  error         // of each
}

// heard passes on what the daemon says.
func (f *follower) heard(t Transition) error {
	f.last, f.gone, f.pause, f.since = t, false, retryMin, time.Time{}
	f.failed = f.each(t)
	return f.failed
}

// lost tells that there is no daemon. What does not change with it, such as the group, is as it was.
func (f *follower) lost(err error) error {
	if f.options.ForHooks && errors.Is(err, errDenied) {
		f.options.ForHooks = false // any place is better than none
		return nil
	}
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

const (
	// statusEvery is how often WatchStatus calls though nothing happens: ages grow.
	statusEvery = time.Second
	// statusGap is the least time between two calls. A hundred a second are plenty for people.
	statusGap = 10 * time.Millisecond
)

// WatchStatus calls each with a status at once, when something has happened, and every second,
// until ctx ends, each fails, or the daemon goes away; it returns why. What happens in quick
// succession is one call.
func (c *Client) WatchStatus(ctx context.Context, each func(Status) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	happened := make(chan struct{}, 1)
	ended := make(chan error, 1)
	go func() {
		ended <- c.Watch(ctx, WatchOptions{}, func(Transition) error {
			select {
			case happened <- struct{}{}:
			default: // it is known that something has
			}
			return nil
		})
	}()
	tick := time.NewTicker(statusEvery)
	defer tick.Stop()
	for {
		select {
		case err := <-ended:
			return err
		case <-happened:
		case <-tick.C:
		}
		status, err := c.Status(ctx)
		if err != nil {
			return err
		}
		if err := each(status); err != nil {
			return err
		}
		<-time.After(statusGap)
	}
}
