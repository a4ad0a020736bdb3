package netio

import (
	"testing"
	"time"
)

func newAlarm(t testing.TB) *Timer {
	t.Helper()
	a, err := NewTimer()
	must(t, err)
	t.Cleanup(func() { a.Close() })
	return a
}

// rang waits until it rings, and returns when that was.
func (a *Timer) rang(t testing.TB) time.Duration {
	t.Helper()
	select {
	case <-a.Rings():
		return Now()
	case <-time.After(testTimeout):
		t.Fatal("the alarm does not ring")
		return 0
	}
}

func TestAlarmRings(t *testing.T) {
	for _, after := range []time.Duration{-time.Second, 0, 1, 3 * time.Millisecond} {
		a := newAlarm(t)
		before := Now()
		a.Set(after)
		if took := a.rang(t) - before; took < after {
			t.Errorf("set for %v, it rang after %v", after, took)
		}
	}
}

// A second alarm tells when the first one ought to have rung.
func TestAlarmMovedLater(t *testing.T) {
	a, witness := newAlarm(t), newAlarm(t)
	a.Set(20 * time.Millisecond)
	a.Set(time.Hour)
	witness.Set(40 * time.Millisecond)
	witness.rang(t)
	select {
	case <-a.Rings():
		t.Error("it rang at the time that it was set for first")
	default:
	}
	a.Set(time.Millisecond)
	a.rang(t)
}

func TestAlarmRingsOnce(t *testing.T) {
	a, witness := newAlarm(t), newAlarm(t)
	a.Set(time.Millisecond)
	a.rang(t)
	witness.Set(20 * time.Millisecond)
	witness.rang(t)
	select {
	case <-a.Rings():
		t.Error("it rang twice")
	default:
	}
}

func TestAlarmClose(t *testing.T) {
	a := newAlarm(t)
	a.Set(time.Hour)
	must(t, a.Close()) // ends although nothing rings
}

// BenchmarkAlarm measures how late it rings, and how late a timer of the Go runtime is
// in the same run, both in a process that has nothing else to do.
//
//	go test ./netio -run '^$' -bench Alarm -benchtime 500x
func BenchmarkAlarm(b *testing.B) {
	a := newAlarm(b)
	timer := time.NewTimer(time.Hour)
	var alarmLate, timerLate time.Duration
	for i := 0; b.Loop(); i++ {
		after := 5*time.Millisecond + time.Duration(i%100)*10*time.Microsecond // no multiple of the kernel's tick
		due := Now() + after
		a.Set(after)
		alarmLate += a.rang(b) - due
		due = Now() + after
		timer.Reset(after)
		<-timer.C
		timerLate += Now() - due
	}
	us := func(d time.Duration) float64 { return float64(d.Microseconds()) / float64(b.N) }
	b.ReportMetric(us(alarmLate), "alarm-late-µs")
	b.ReportMetric(us(timerLate), "timer-late-µs")
	b.ReportMetric(float64(timerLate)/float64(alarmLate), "ratio")
	b.ReportMetric(0, "ns/op")
}
