package node

import "time"

// Alarm rings once, at a time that can be moved; netio.Alarm is the real one.
type Alarm interface {
	Set(after time.Duration)
	Rings() <-chan struct{}
	Close() error
}

// alarm is what the loop knows of its Alarm.
type alarm struct {
	Alarm
	at time.Duration // for when it is set; never if it has rung since
}

// newAlarm returns the machine's alarm, or, where it has none, one of the Go runtime.
func (s *Surroundings) newAlarm() alarm {
	if s.NewAlarm != nil {
		if a, err := s.NewAlarm(); err == nil {
			return alarm{a, never}
		}
	}
	r := &runtimeAlarm{rings: make(chan struct{}, 1)}
	r.timer = time.AfterFunc(time.Hour, func() {
		select {
		case r.rings <- struct{}{}:
		default:
		}
	})
	return alarm{r, never}
}

// set has it ring at a time, unless it will anyway: most of what a node takes in moves nothing.
func (a *alarm) set(at, now time.Duration) {
	if a.at != at {
		a.at = at
		a.Set(max(0, at-now))
	}
}

// runtimeAlarm is a timer of the Go runtime, which also runs in virtual time.
type runtimeAlarm struct {
	timer *time.Timer
	rings chan struct{}
}

func (r *runtimeAlarm) Set(after time.Duration) { r.timer.Reset(after) }
func (r *runtimeAlarm) Rings() <-chan struct{}  { return r.rings }

func (r *runtimeAlarm) Close() error {
	r.timer.Stop()
	return nil
}
