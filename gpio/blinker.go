package gpio

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"
)

// retryEvery is how often a light that fails is tried again. A line that was busy during a firmware update of some HAT should
// work again soon after, and one that will never work should cost next to nothing.
const retryEvery = 5 * time.Second

// Blinker shows patterns on an LED. The election must never wait for it: all methods except Run return
// at once, whatever the LED does, and may be called from any goroutine, also before Run and after it. Run reports an LED
// that fails, and tries it again for as long as it runs.
type Blinker struct {
	report func(error)
	wake   chan struct{} // of capacity 1; holds a value after wanted has changed

	mu     sync.Mutex
	wanted wanted
	state  State
}

// wanted is the pattern that a Blinker should show, and the LED on which it should show it.
type wanted struct {
	pattern Pattern
	open    func() (LED, error)
	opener  int // counts the changes of open
}

// State is the state of a Blinker's light.
type State struct {
	LED     string // its name; "" while it cannot be opened
	Fail    error  // why it does not work; nil while it does
	Pattern Pattern
}

// NewBlinker returns a Blinker that shows Off. Run calls open to get the LED, and again
// after every failure. It calls report with each error, but not with the same text twice in a row
// unless the LED worked, or another one was chosen, in between. Both are called on Run's
// goroutine; report must not be nil.
func NewBlinker(open func() (LED, error), report func(error)) *Blinker {
	return &Blinker{report: report, wake: make(chan struct{}, 1), wanted: wanted{open: open}}
}

// Show changes the pattern at once, and begins with its first step. It changes nothing
// if the pattern is shown already, so a loop may call it at every turn.
func (b *Blinker) Show(p Pattern) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.wanted.pattern != p {
		b.wanted.pattern = p
		b.nudge()
	}
}

// Use has another LED show the pattern, once the present one is closed.
func (b *Blinker) Use(open func() (LED, error)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.wanted.open = open
	b.wanted.opener++
	b.nudge()
}

func (b *Blinker) nudge() {
	select {
	case b.wake <- struct{}{}:
	default: // Run was woken already, and will read the latest value.
	}
}

// State returns the state of the light.
func (b *Blinker) State() State {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.state
	s.Pattern = b.wanted.pattern
	return s
}

func (b *Blinker) setState(s State) (before State) {
	b.mu.Lock()
	defer b.mu.Unlock()
	before, b.state = b.state, s
	return before
}

// Run blinks until the context ends. Then it closes the LED, which switches the LED
// off, and returns the error of closing it, if any. Nothing else ends Run. Only one Run
// may be active at a time.
func (b *Blinker) Run(ctx context.Context) error {
	r := run{Blinker: b}
	r.follow()
	// The timer fires at once, for the first step, and afterwards when the
	// next step or the next attempt is due.
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return r.close()
		case <-b.wake:
			if !r.follow() {
				continue
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
	led   LED    // nil while it cannot be opened
	shown wanted // what was wanted at the last look
	step  int    // the index of the step that advance does next
}

// follow takes over what is wanted now, and reports whether a step is due because of the change.
func (r *run) follow() bool {
	before := r.shown
	r.mu.Lock()
	r.shown = r.wanted
	r.mu.Unlock()
	switch {
	case r.shown.opener != before.opener:
		if err := r.close(); err != nil {
			r.report(err)
		}
		r.led = nil
		r.setState(State{})
		return true
	case r.shown.pattern != before.pattern:
		r.step = 0
		return r.led != nil // Without an LED, the next attempt to open one shows the new pattern, no sooner than before.
	}
	return false // It was changed and changed back.
}

// advance does the step that is due, and returns the time until the next one, or 0 if
// nothing is due until something else is wanted.
func (r *run) advance() time.Duration {
	if r.led == nil {
		led, err := r.shown.open()
		if err != nil {
			return r.failed(err)
		}
		r.led, r.step = led, 0
	}
	steps := r.shown.pattern.Steps()
	step := steps[r.step]
	if err := r.led.Set(step.On); err != nil {
		// Close releases what is left. Its error would say the same again.
		_ = r.led.Close()
		r.led = nil
		return r.failed(err)
	}
	if r.step == 0 {
		r.setState(State{LED: r.led.String()}) // it works
	}
	if r.led == None {
		return 0 // There is nothing to see, and waking up costs a small board more than anything else here.
	}
	r.step = (r.step + 1) % len(steps)
	return step.For
}

// failed reports the error, unless it says what the one before did, and returns the pause until the next attempt.
func (r *run) failed(err error) time.Duration {
	if before := r.setState(State{Fail: err}).Fail; before == nil || before.Error() != err.Error() {
		r.report(err)
	}
	return retryEvery
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

// Pattern is what the light says about the board.
type Pattern uint8

// The patterns can be told apart from across a room, by someone who knows only that
// one of the boards is the leader: mostly lit, mostly dark, flickering, or none of these.
const (
	Off      Pattern = iota // topdog does not run, or is on its way out
	Follower                // alive, and not the leader
	Election                // this board is looking for a leader, or an election is going on
	Leader                  // this board holds the address
	Fault                   // this board cannot take part; its log says why
)

// Step is a piece of a pattern: the light is on or off for that long.
type Step struct {
	On  bool
	For time.Duration // 0: for good
}

// blink returns steps of these durations, in turn lit and dark.
func blink(durations ...time.Duration) []Step {
	steps := make([]Step, len(durations))
	for i, d := range durations {
		steps[i] = Step{On: i%2 == 0, For: d}
	}
	return steps
}

// patterns has one period of each. All but Off begin lit, so that a change of role
// shows at once and not after the rest of a dark phase. No step is shorter than
// 50 ms: about the shortest flash that everybody notices in daylight, and longer
// than the scheduler of a busy Pi Zero delays a program.
var patterns = [...]struct {
	name, looks string
	steps       []Step
}{
	Off: {"off", "dark", []Step{{On: false}}},

	// One short blink every two seconds shows that the board is alive. A rack of twenty
	// followers must not draw more attention than its leader.
	Follower: {"follower", "a short blink every 2 s", blink(50*time.Millisecond, 1950*time.Millisecond)},

	// As fast as it can be seen. An election lasts milliseconds, so people see this only
	// when one goes on for too long, which is when it matters.
	Election: {"election", "a quick flicker", blink(50*time.Millisecond, 50*time.Millisecond)},

	// Lit for nine tenths, with a gap each second. A steady light could be a dead
	// leader's: Raspberry Pi kernels keep a line driven after its process died, and a
	// frozen board keeps its light too. Only a running program makes a pulse.
	Leader: {"leader", "lit, with a short gap every second", blink(900*time.Millisecond, 100*time.Millisecond)},

	// Three slow blinks and a rest, as most appliances count out an error.
	Fault: {"fault", "three blinks and a pause", blink(
		300*time.Millisecond, 300*time.Millisecond,
		300*time.Millisecond, 300*time.Millisecond,
		300*time.Millisecond, 1500*time.Millisecond)},
}

// Steps returns one period of the pattern. The caller repeats it, unless its only step
// lasts for good, and must not change it.
func (p Pattern) Steps() []Step { return patterns[p].steps }

// Looks says in words what the light does, for people who look at it.
func (p Pattern) Looks() string { return patterns[p].looks }

func (p Pattern) String() string { return patterns[p].name }

// walkOrder begins with the pattern that people look for.
var walkOrder = []Pattern{Leader, Follower, Election, Fault, Off}

// Walk shows one pattern after the other on the light, each for the given time, and writes
// its name to out. It closes the light at the end.
func Walk(ctx context.Context, out io.Writer, led LED, each time.Duration) error {
	blinking, end := context.WithCancel(ctx)
	defer end()
	failed, ended := make(chan error, 1), make(chan error, 1)
	b := NewBlinker(func() (LED, error) { return led, nil }, func(err error) { failed <- err; end() })
	go func() { ended <- b.Run(blinking) }()
	fmt.Fprintf(out, "%s, each pattern for %v:\n", led, each)
	for _, p := range walkOrder {
		fmt.Fprintf(out, "  %-9s %s\n", p, p.Looks())
		b.Show(p)
		select {
		case <-time.After(each):
		case <-blinking.Done():
			err := errors.New("interrupted; the light was put out")
			if ctx.Err() == nil {
				err = <-failed
			}
			return errors.Join(err, <-ended)
		}
	}
	end()
	if err := <-ended; err != nil {
		return err
	}
	_, err := fmt.Fprintln(out, "done; the light is what it was before")
	return err
}
