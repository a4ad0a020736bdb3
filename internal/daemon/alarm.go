package daemon

import "time"

// Alarm rings once, at a time that can be moved; netio.Timer is the real one.
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
func (d *Daemon) newAlarm() alarm {
	if d.platform.NewAlarm != nil {
		a, err := d.platform.NewAlarm()
		if err == nil {
			return alarm{a, never}
		}
		d.log.Warnf("%v; using the Go runtime's timers, which are less exact", err)
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
