package check

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"time"
)

// prober finds out whether what one check is about works at the moment.
type prober interface {
	// probe returns nil if it does, or why not, before ctx ends or soon after.
	probe(ctx context.Context) error
	// changes is told when it may be different now; nil if nothing tells.
	changes() <-chan struct{}
	close()
}

const (
	// slowly is how often a check is run whose changes are told. That is for those that
	// were lost, which should not happen.
	slowly = 5 * time.Second
	// changesApart is the time from one such run to the next, so that a unit that changes
	// its state all the time does not keep the board busy.
	changesApart = 20 * time.Millisecond
	// lateAllowed is how much longer than its timeout a run may take. If it took more, this process did not run
	// meanwhile, and it was the run that was late, and not an answer.
	lateAllowed = 250 * time.Millisecond
	// retellEvery is how often another reason is told of a check that fails all the time.
	retellEvery = 5 * time.Second
)

// unsureError says that nothing was found out. It is no fact, whatever the kind of the check: systemd answers
// nobody while it reads its units again, or starts anew.
type unsureError struct{ error }

func (e *unsureError) Unwrap() error { return e.error }

// worker runs one check again and again.
type worker struct {
	check  Check
	prober prober
	report func(Report)

	counter counter
	text    string    // that was told last
	toldAt  time.Time // when it was
}

// run runs the check until ctx ends.
func (w *worker) run(ctx context.Context) {
	defer w.prober.close()
	r := rhythm{every: w.check.Every}
	for ctx.Err() == nil {
		began := time.Now()
		err := w.probe(ctx)
		if ctx.Err() != nil {
			return
		}
		if took := time.Since(began); err == nil || took < w.check.Timeout+max(w.check.Timeout, lateAllowed) {
			w.result(err)
		}
		if !w.wait(ctx, &r) {
			return
		}
	}
}

// runOnce runs the check once, and reports what that has come to.
func (w *worker) runOnce(ctx context.Context) {
	defer w.prober.close()
	w.report(outcome(&w.check, w.probe(ctx)))
}

// outcome is the report of one run.
func outcome(c *Check, err error) Report {
	r := Report{ID: c.ID(), Passing: err == nil}
	if err != nil {
		r.Text = shortened(err.Error())
	}
	return r
}

// probe runs it once.
func (w *worker) probe(ctx context.Context) error { return probe(ctx, &w.check, w.prober) }

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

// result counts what a run has come to, and reports what has changed.
func (w *worker) result(err error) {
	var unsure *unsureError
	fact := w.check.Kind.tellsAtOnce() && !errors.As(err, &unsure)
	changed := w.counter.count(err == nil, fact, w.check.Rise, w.check.Fall)
	text := ""
	if err != nil && w.counter.state == failing {
		text = shortened(err.Error())
	}
	other := text != "" && text != w.text && time.Since(w.toldAt) > retellEvery
	if !changed && !other {
		return
	}
	w.text, w.toldAt = text, time.Now()
	var aimed *misaimedError
	w.report(Report{ID: w.check.ID(), Passing: w.counter.state == passing, Text: text, Misaimed: errors.As(err, &aimed)})
}

// textMax bounds a reason: a server that answers nonsense is quoted in it.
const textMax = 200

func shortened(text string) string {
	if runes := []rune(text); len(runes) > textMax {
		return string(runes[:textMax]) + "…"
	}
	return text
}

// wait waits until the check has to be run again. It reports whether it has to.
func (w *worker) wait(ctx context.Context, r *rhythm) bool {
	next := r.next(time.Now())
	changes := w.prober.changes()
	// Nothing tells that a process begins, so what fails is looked at as often as what is polled.
	rests := changes != nil && w.counter.settled() && w.counter.state == passing
	if rests {
		next = max(next, slowly)
	}
	timer := time.NewTimer(next)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		if rests {
			r.slot = time.Now()
		}
	case <-changes:
		defer func() { r.slot = time.Now() }() // the next look comes as late as after any other
		if at := time.Since(r.changedAt); at < changesApart {
			time.Sleep(changesApart - at)
		}
		r.changedAt = time.Now()
	}
	return true
}

// rhythm says when a check is run that is polled.
type rhythm struct {
	every     time.Duration
	slot      time.Time // when it was to be run last
	changedAt time.Time // when it was run because of a change
}

// next returns the time until the next run. The slots follow each other at regular distances, however
// long the runs take. The first one is at random, so that the checks do not all run at once, and
// each run is moved a little, so that they do not keep step with anything else.
func (r *rhythm) next(now time.Time) time.Duration {
	if r.slot.IsZero() {
		r.slot = now.Add(rand.N(r.every))
		return r.slot.Sub(now)
	}
	if r.slot.After(now) {
		return r.slot.Sub(now) // it was run in between, because of a change
	}
	r.slot = r.slot.Add(r.every)
	if late := now.Sub(r.slot); late >= r.every {
		r.slot = r.slot.Add(late.Truncate(r.every)) // what was missed is not made up for
	}
	const jitter = 20
	return max(0, r.slot.Add(rand.N(r.every/jitter+1)).Sub(now))
}
