package netio

import (
	"testing"
	"time"
)

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
