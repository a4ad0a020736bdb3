package netio

import (
	"testing"
	"time"
)

func newTimer(t testing.TB) *Timer {
	t.Helper()
	a, err := NewTimer()
	must(t, err)
	t.Cleanup(func() { a.Close() })
	return a
}

// expires waits until it expires, and returns when that was.
func (a *Timer) expires(t testing.TB) time.Duration {
	t.Helper()
	select {
	case <-a.Expired():
		return Now()
	case <-time.After(testTimeout):
		t.Fatal("the timer does not expire")
		return 0
	}
}

func TestTimerExpires(t *testing.T) {
	for _, after := range []time.Duration{-time.Second, 0, 1, 3 * time.Millisecond} {
		a := newTimer(t)
		before := Now()
		a.Set(after)
		if took := a.expires(t) - before; took < after {
			t.Errorf("set for %v, it expired after %v", after, took)
		}
	}
}

// What is not due does not expire: a second timer tells when it ought to have rung. It can be set again.
func TestTimerStaysSilent(t *testing.T) {
	for name, set := range map[string]func(a *Timer){
		"moved later":  func(a *Timer) { a.Set(20 * time.Millisecond); a.Set(time.Hour) },
		"expired once": func(a *Timer) { a.Set(time.Millisecond); a.expires(t) },
	} {
		a, witness := newTimer(t), newTimer(t)
		set(a)
		witness.Set(40 * time.Millisecond)
		witness.expires(t)
		select {
		case <-a.Expired():
			t.Errorf("%s: it expired", name)
		default:
		}
		a.Set(time.Millisecond)
		a.expires(t)
	}
}

func TestTimerClose(t *testing.T) {
	a := newTimer(t)
	a.Set(time.Hour)
	must(t, a.Close()) // ends although it has not expired
}

// BenchmarkTimer measures how late it expires, and how late a timer of the Go runtime is
// in the same run, both in a process that has nothing else to do.
//
//	go test ./netio -run '^$' -bench Timer -benchtime 500x
func BenchmarkTimer(b *testing.B) {
	a := newTimer(b)
	timer := time.NewTimer(time.Hour)
	var timerfdLate, runtimeLate time.Duration
	for i := 0; b.Loop(); i++ {
		after := 5*time.Millisecond + time.Duration(i%100)*10*time.Microsecond // no multiple of the kernel's tick
		due := Now() + after
		a.Set(after)
		timerfdLate += a.expires(b) - due
		due = Now() + after
		timer.Reset(after)
		<-timer.C
		runtimeLate += Now() - due
	}
	us := func(d time.Duration) float64 { return float64(d.Microseconds()) / float64(b.N) }
	b.ReportMetric(us(timerfdLate), "timerfd-late-µs")
	b.ReportMetric(us(runtimeLate), "runtime-late-µs")
	b.ReportMetric(float64(runtimeLate)/float64(timerfdLate), "ratio")
	b.ReportMetric(0, "ns/op")
}

// The rate of this machine's clock is measured, and nothing here slews it by a per cent.
func TestRateMeter(t *testing.T) {
	m := NewRateMeter()
	if off, measured := m.Measure(); measured {
		t.Errorf("it has measured %v in no time", off)
	}
	for range 100 {
		<-time.After(rateWindow / 10)
		off, measured := m.Measure()
		if !measured {
			continue
		}
		if off < -0.01 || off > 0.01 {
			t.Errorf("the clock is off by %v", off)
		}
		return
	}
	t.Error("nothing was measured")
}

// A clock that has run ahead of the other one is found out.
func TestRateMeterOff(t *testing.T) {
	for range 10 {
		m := NewRateMeter()
		if m.raw == 0 {
			continue // interrupted, it has read neither clock yet
		}
		const window = 10 * time.Second
		m.raw -= window
		m.adjusted -= window + window/50
		if off, measured := m.Measure(); measured {
			if off < 0.019 || off > 0.021 {
				t.Errorf("it measures %v, want 2 %%", off)
			}
			return
		}
	}
	t.Error("nothing was measured")
}
