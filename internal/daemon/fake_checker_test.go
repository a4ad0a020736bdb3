package daemon

import (
	"cmp"
	"context"
	"sync"
	"time"

	"topdog/internal/check"
)

// fakeChecker is one checker after the other. They report that all checks pass, until a test says something else.
type fakeChecker struct {
	reports chan check.Report

	mu     sync.Mutex
	starts int           // checkers that were started
	end    chan struct{} // of the one that runs; nil for none
	orders []check.Order // of all of them
	told   map[string]bool
	tried  check.Order // that was tried last
	hangs  bool        // a trial does not end
	silent bool        // it reports nothing
	mute   bool        // those that are started from now on report nothing
	broken error       // why none can be started
	stuck  error       // of Send
}

func newFakeChecker() *fakeChecker {
	return &fakeChecker{reports: make(chan check.Report, 1000)}
}

// with does something that no checker notices half of.
func (f *fakeChecker) with(do func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	do()
}

// runs reports whether a checker runs.
func (f *fakeChecker) runs() (runs bool) {
	f.with(func() { runs = f.end != nil })
	return runs
}

// started returns how many checkers were started.
func (f *fakeChecker) started() (n int) {
	f.with(func() { n = f.starts })
	return n
}

// last returns the last order.
func (f *fakeChecker) last() (o check.Order) {
	f.with(func() { o = f.orders[len(f.orders)-1] })
	return o
}

// start starts one, which says every second that it runs.
func (f *fakeChecker) start() {
	f.starts++
	f.silent, f.told = f.mute, map[string]bool{}
	end := make(chan struct{})
	f.end = end
	go func() {
		for {
			select {
			case <-end:
				return
			case <-time.After(time.Second):
				f.with(func() {
					if f.end == end && !f.silent {
						f.reports <- check.Report{}
					}
				})
			}
		}
	}()
}

func (f *fakeChecker) Send(o check.Order) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.orders = append(f.orders, o)
	switch {
	case f.stuck != nil:
		return f.stuck
	case o.Idle():
		f.stop()
		return nil
	case f.broken != nil:
		f.reports <- check.Report{Ended: true, Text: f.broken.Error()}
		return nil
	case f.end == nil:
		f.start()
	}
	for _, c := range o.Checks {
		if runs := c.When == check.Always || o.Leading; !runs {
			f.told[c.ID()] = false
			continue
		}
		if !f.silent && !f.told[c.ID()] {
			f.told[c.ID()] = true
			f.reports <- check.Report{ID: c.ID(), Passing: true}
		}
	}
	return nil
}

// Try says that all checks pass, or that none can be tried, or nothing.
func (f *fakeChecker) Try(ctx context.Context, o check.Order) (reasons []string, err error) {
	silent := false
	f.with(func() { f.tried, silent, err = o, f.hangs, cmp.Or(f.broken, f.stuck) })
	if silent {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return make([]string, len(o.Checks)), err
}

// say reports of a check; why is "" if it passes.
func (f *fakeChecker) say(c check.Check, why string) {
	f.reports <- check.Report{ID: c.ID(), Passing: why == "", Text: why}
}

func (f *fakeChecker) Reports() <-chan check.Report { return f.reports }

// stop ends the one that runs, and reports whether one did.
func (f *fakeChecker) stop() bool {
	if f.end == nil {
		return false
	}
	close(f.end)
	f.end = nil
	return true
}

func (f *fakeChecker) Kill() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.stop() {
		f.reports <- check.Report{Ended: true}
	}
}

func (f *fakeChecker) Stop() { f.with(func() { f.stop() }) }
