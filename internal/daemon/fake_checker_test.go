package daemon

import (
	"sync"
	"time"

	"topdog/internal/check"
)

// fakeChecker reports that all checks pass, until a test says something else.
type fakeChecker struct {
	number  int
	reports chan check.Report

	end chan struct{}

	mu     sync.Mutex
	ended  bool
	orders []check.Order
	told   map[string]bool
	silent bool  // reports nothing of itself
	stuck  error // of Send
}

func newFakeChecker(number int) *fakeChecker {
	f := &fakeChecker{number: number, reports: make(chan check.Report, 1000), end: make(chan struct{}), told: map[string]bool{}}
	go func() {
		for {
			select {
			case <-f.end:
				return
			case <-time.After(time.Second):
				f.live()
			}
		}
	}()
	return f
}

// live says that the checker runs, unless it is silent.
func (f *fakeChecker) live() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.ended && !f.silent {
		f.reports <- check.Report{}
	}
}

func (f *fakeChecker) Send(o check.Order) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.orders = append(f.orders, o)
	if f.stuck != nil {
		return f.stuck
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

// say reports of a check; why is "" if it passes.
func (f *fakeChecker) say(c check.Check, why string) {
	f.reports <- check.Report{ID: c.ID(), Passing: why == "", Text: why}
}

func (f *fakeChecker) Reports() <-chan check.Report { return f.reports }
func (f *fakeChecker) PID() int                     { return 1000 + f.number }

func (f *fakeChecker) Kill() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.ended {
		f.ended = true
		close(f.end)
		close(f.reports)
	}
}

func (f *fakeChecker) Close() error { f.Kill(); return nil }
