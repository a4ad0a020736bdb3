package console

import (
	"context"
	"errors"
	"time"
)

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
