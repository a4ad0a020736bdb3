package check

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"time"
)

// prober finds out whether a service works at the moment.
type prober interface {
	// probe returns nil if the service works, or why it doesn't. It returns before ctx ends, or soon after.
	probe(ctx context.Context) error
	// changes receives when the result may have changed. It is nil for a prober that isn't told of changes.
	changes() <-chan struct{}
	close()
}

// polled is a prober that nobody tells of changes and that keeps nothing open.
type polled func(ctx context.Context) error

func (p polled) probe(ctx context.Context) error { return p(ctx) }
func (polled) changes() <-chan struct{}          { return nil }
func (polled) close()                            {}

const (
	// slowly is how often a check runs if it is told of changes and passes. These runs are for changes that it wasn't
	// told of, which shouldn't happen.
	slowly = 5 * time.Second
	// changesApart is the least time between two runs that follow a change, so that a unit that changes its state
	// all the time doesn't keep the board busy.
	changesApart = 20 * time.Millisecond
	// A run may exceed its timeout by lateAllowed, or by the timeout itself if that is more. If it took even longer, this
	// process got no processor time meanwhile, and the run says nothing about the service.
	lateAllowed = 250 * time.Millisecond
	// retellEvery is how often a check that keeps failing may report another reason.
	retellEvery = 5 * time.Second
)

// unsureError says that nothing was found out. It is never a fact, whatever the kind of the check: while systemd reloads
// its units or executes itself again, it answers nobody.
type unsureError struct{ error }

func (e *unsureError) Unwrap() error { return e.error }

// worker runs one check again and again.
type worker struct {
	check  Check
	prober prober
	report func(Report)

	counter   counter
	text      string    // the reason that was reported last
	toldAt    time.Time // when it was
	slot      time.Time // when the last run was due
	changedAt time.Time // when the last run that followed a change began
}

// run runs the check until ctx ends.
func (w *worker) run(ctx context.Context) {
	defer w.prober.close()
	w.slot = w.firstSlot()
	for ctx.Err() == nil {
		began := time.Now()
		err := probe(ctx, &w.check, w.prober)
		if ctx.Err() != nil {
			return
		}
		if took := time.Since(began); err == nil || took < w.check.Timeout+max(w.check.Timeout, lateAllowed) {
			w.result(err)
		}
		if !w.wait(ctx) {
			return
		}
	}
}

// probe runs a check once, within its timeout.
func probe(ctx context.Context, c *Check, p prober) error {
	within, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	err := p.probe(within)
	if err != nil && (errors.Is(within.Err(), context.DeadlineExceeded) || errors.Is(err, os.ErrDeadlineExceeded)) {
		return &unsureError{fmt.Errorf("no answer within %v", c.Timeout)}
	}
	return err
}

// result counts the result of a run, and reports a change.
func (w *worker) result(err error) {
	var unsure *unsureError
	fact := w.check.Kind.tellsAtOnce() && !errors.As(err, &unsure)
	changed := w.counter.count(err == nil, fact, w.check.Rise, w.check.Fall)
	text := ""
	if err != nil && w.counter.state == failing {
		text = shortened(err.Error(), textMax)
	}
	other := text != "" && text != w.text && time.Since(w.toldAt) > retellEvery
	if !changed && !other {
		return
	}
	w.text, w.toldAt = text, time.Now()
	var aimed *misaimedError
	w.report(Report{ID: w.check.ID(), Passing: w.counter.state == passing, Text: text, Misaimed: errors.As(err, &aimed)})
}

// textMax bounds a reason, in characters. It may quote a server that answers nonsense.
const textMax = 200

// shortened returns the beginning of a text that is longer than most characters.
func shortened(text string, most int) string {
	if runes := []rune(text); len(runes) > most {
		return string(runes[:most]) + "…"
	}
	return text
}

// firstSlot returns a slot of the past. The second run comes at random within the interval after the first one, so that
// the checks don't all run at once.
func (w *worker) firstSlot() time.Time { return time.Now().Add(-rand.N(w.check.Every)) }

// wait waits until the check has to run again. It returns false when ctx ends. The slots are evenly spaced, however long
// the runs take. Each run is a little late, at random, so that it doesn't keep step with anything else.
func (w *worker) wait(ctx context.Context) bool {
	interval := w.check.Every
	changes := w.prober.changes()
	// Nothing tells of a process that starts, so a failing check is polled like any other.
	if changes != nil && w.counter.settled() && w.counter.state == passing {
		interval = max(interval, slowly)
	}
	w.slot = w.slot.Add(interval)
	if time.Since(w.slot) >= interval {
		w.slot = time.Now() // missed runs aren't made up for
	}
	const jitter = 20
	timer := time.NewTimer(time.Until(w.slot) + rand.N(w.check.Every/jitter+1))
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
	case <-changes:
		time.Sleep(changesApart - time.Since(w.changedAt))
		w.changedAt = time.Now()
		w.slot = w.changedAt // the next run is a full interval later, as always
	}
	return true
}

// state is what the results of a check add up to.
type state uint8

const (
	unknown state = iota
	passing
	failing
)

// counter counts results until they are enough to change the state.
type counter struct {
	state state
	run   int // results in a row that contradict the state
}

// count counts a result, and reports whether the state has changed. The first result decides at once, and so does
// a failure that is a fact.
func (c *counter) count(passed, fact bool, rise, fall int) (changed bool) {
	next, needed := failing, fall
	if passed {
		next, needed = passing, rise
	}
	if c.state == unknown || fact && !passed {
		needed = 1
	}
	if c.state == next {
		c.run = 0
		return false
	}
	if c.run++; c.run < needed {
		return false
	}
	c.state, c.run = next, 0
	return true
}

// settled reports whether the last result agrees with the state.
func (c *counter) settled() bool { return c.run == 0 }
