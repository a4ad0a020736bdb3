package gpio

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// How a light that fails is tried again. A line that is busy during a
// firmware update of some HAT should be back soon after, and one that will
// never work should cost nothing: one attempt in half a minute.
const (
	firstRetry = 100 * time.Millisecond
	lastRetry  = 30 * time.Second
	// steadyAfter is how long the light has to work before it counts as
	// repaired. Its next failure is then reported and retried like a first one. With
	// less, a loose contact would flood the log.
	steadyAfter = time.Minute
	// maxReported bounds what a run remembers of reported errors.
	maxReported = 16
)

// Blinker shows patterns on an LED. The election must never wait for it: Show returns
// at once, whatever the LED does, and an LED that fails is reported and tried again
// for as long as the Blinker runs.
type Blinker struct {
	open   func() (LED, error)
	report func(error)

	wanted atomic.Uint32 // a Pattern
	wake   chan struct{} // of capacity 1; holds a value after wanted has changed

	mu    sync.Mutex
	state State
}

// State is what can be told about a Blinker's light.
type State struct {
	LED  string // its name; "" while it cannot be had
	Fail error  // why it does not work; nil while it does
}

// NewBlinker makes a Blinker that shows Off. Run calls open for the LED, again
// after every failure, and report with what went wrong: each distinct text
// once, at most 16 of them, and again only after the LED worked for a minute.
// Both are called from Run's goroutine; report must not be nil.
func NewBlinker(open func() (LED, error), report func(error)) *Blinker {
	return &Blinker{open: open, report: report, wake: make(chan struct{}, 1)}
}

// Show changes the pattern, from its first step and at once. Showing what is
// shown already changes nothing, so that it may be called at every turn of a
// loop. Show never blocks and may be called from any goroutine, also before Run
// and after it.
func (b *Blinker) Show(p Pattern) {
	if b.wanted.Swap(uint32(p)) == uint32(p) {
		return
	}
	select {
	case b.wake <- struct{}{}:
	default: // Run is woken already, and will read the latest value.
	}
}

// State tells how the light does. It may be called from any goroutine.
func (b *Blinker) State() State {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.state
}

func (b *Blinker) setState(s State) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.state = s
}

// Run blinks until the context ends; then it closes the LED, which switches it
// off, and returns the error of that, if any. Nothing else ends it. One Run at
// a time.
func (b *Blinker) Run(ctx context.Context) error {
	r := run{Blinker: b, pattern: Pattern(b.wanted.Load()), reported: map[string]bool{}}
	// The timer fires at once, for the first step, and afterwards when the
	// next step or the next attempt is due.
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return r.close()
		case <-b.wake:
			p := Pattern(b.wanted.Load())
			if p == r.pattern {
				continue // Changed and changed back: nothing to see.
			}
			r.pattern, r.step = p, 0
			if r.led == nil {
				continue // The next attempt shows it; it is not sooner for that.
			}
		case <-timer.C:
		}
		if wait := r.advance(); wait > 0 {
			timer.Reset(wait)
		} else {
			timer.Stop()
		}
	}
}

// run is the state of one Run, owned by its goroutine.
type run struct {
	*Blinker
	led     LED // nil while it cannot be had
	pattern Pattern
	step    int // what advance does next

	retry       time.Duration   // the last pause between attempts, 0 before any
	steadySince time.Time       // when the LED last began to work
	reported    map[string]bool // texts that were reported
}

// advance does what is due, and returns after how long the next thing is: 0 if
// nothing is until the pattern changes.
func (r *run) advance() time.Duration {
	if r.led == nil {
		led, err := r.open()
		if err == nil && led == nil {
			err = errors.New("open the LED: got none and no error")
		}
		if err != nil {
			return r.failed(err)
		}
		r.led, r.step, r.steadySince = led, 0, time.Now()
		r.setState(State{LED: led.String()})
	}
	if r.led == None {
		return 0 // Nobody sees it, and waking up costs a small board more than anything else here.
	}
	steps := r.pattern.Steps()
	step := steps[r.step]
	if err := r.led.Set(step.On); err != nil {
		// Close releases what is left. Its error would say the same again.
		_ = r.led.Close()
		r.led = nil
		return r.failed(err)
	}
	r.step = (r.step + 1) % len(steps)
	return step.For
}

// failed reports the error, unless it was reported before, and returns the pause until
// the next attempt, which doubles each time.
func (r *run) failed(err error) time.Duration {
	if !r.steadySince.IsZero() && time.Since(r.steadySince) >= steadyAfter {
		r.retry = 0
		clear(r.reported)
	}
	r.steadySince = time.Time{}
	r.setState(State{Fail: err})
	if text := err.Error(); !r.reported[text] && len(r.reported) < maxReported {
		r.reported[text] = true
		r.report(err)
	}
	r.retry = min(max(firstRetry, 2*r.retry), lastRetry)
	return r.retry
}

func (r *run) close() error {
	if r.led == nil {
		return nil
	}
	if err := r.led.Close(); err != nil {
		return fmt.Errorf("put the LED out at the end: %w", err)
	}
	return nil
}
