package daemon

import "time"

// Timer expires once, at a time that can be moved; netio.Timer is the real one.
type Timer interface {
	Set(after time.Duration)
	Expired() <-chan struct{}
	Close() error
}

// timer wakes the loop.
type timer struct {
	Timer
	at time.Duration // for when it is set; never if it has expired since
}

// never is a time that does not come.
const never time.Duration = 1<<63 - 1

// newTimer returns the machine's timer, or, where it has none, one of the Go runtime.
func newTimer(open func() (Timer, error), r *reporter) timer {
	if open != nil {
		t, err := open()
		if err == nil {
			return timer{t, never}
		}
		r.log.Warnf("%v; using the Go runtime's timers, which are less exact", err)
	}
	t := &runtimeTimer{expired: make(chan struct{}, 1)}
	t.timer = time.AfterFunc(time.Hour, func() {
		select {
		case t.expired <- struct{}{}:
		default:
		}
	})
	return timer{t, never}
}

// set has it expire at a time, unless it will anyway: most events move nothing.
func (t *timer) set(at, now time.Duration) {
	if t.at != at {
		t.at = at
		t.Set(max(0, at-now))
	}
}

// unset is called when it has expired.
func (t *timer) unset() { t.at = never }

// runtimeTimer is a timer of the Go runtime, which also runs in virtual time.
type runtimeTimer struct {
	timer   *time.Timer
	expired chan struct{}
}

func (t *runtimeTimer) Set(after time.Duration)  { t.timer.Reset(after) }
func (t *runtimeTimer) Expired() <-chan struct{} { return t.expired }

func (t *runtimeTimer) Close() error {
	t.timer.Stop()
	return nil
}
