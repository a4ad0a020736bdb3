package pi

import (
	"testing"
	"time"

	"topdog/gpio"
	"topdog/internal/lab/assert"
)

// see plays a pattern for WatchTime, sampled as a board's light is, from any
// moment of its period on, and with pauses of the board.
func see(steps []gpio.Step, offset, pauseEvery, pause time.Duration) Watch {
	var period time.Duration
	for _, s := range steps {
		period += s.For
	}
	lit := func(at time.Duration) bool {
		if period == 0 {
			return steps[0].On
		}
		at %= period
		for _, s := range steps {
			if at < s.For {
				return s.On
			}
			at -= s.For
		}
		panic("beyond the period")
	}
	w := Watch{Now: lit(offset)}
	// A board that pauses shows what it showed when it stopped, and goes on there.
	board, last := offset, lit(offset)
	for elapsed, awake := time.Duration(0), time.Duration(0); elapsed < WatchTime; elapsed += samplePeriod {
		if pauseEvery > 0 && awake >= pauseEvery {
			w.add(last, pause)
			elapsed, awake = elapsed+pause, 0
		}
		board, awake = board+samplePeriod, awake+samplePeriod
		now := lit(board)
		w.add(now, samplePeriod)
		last = now
	}
	return w
}

func TestPatternsAreToldApart(t *testing.T) {
	patterns := []gpio.Pattern{gpio.Off, gpio.Follower, gpio.Election, gpio.Leader, gpio.Fault}
	for _, p := range patterns {
		for offset := time.Duration(0); offset < 3*time.Second; offset += 70 * time.Millisecond {
			assert.Is(t, p, see(p.Steps(), offset, 0, 0).Pattern(), "from %s on", offset)
		}
	}
	// Emulated boards pause for 150 to 300 ms.
	for _, p := range []gpio.Pattern{gpio.Off, gpio.Follower, gpio.Leader} {
		assert.Is(t, p, see(p.Steps(), 0, 700*time.Millisecond, 200*time.Millisecond).Pattern(), "on a board that pauses")
	}
}

// A daemon that died or froze may leave its light on: that is no leader's pulse.
func TestSteadyLightIsNoLeader(t *testing.T) {
	w := see([]gpio.Step{{On: true}}, 0, 0, 0)
	if w.Pattern() != Steady || w.String() != "steady (lit 100 %, 0 pulses)" {
		t.Errorf("a steady light is taken for %s", w)
	}
}

// The words are as QEMU's raspi3b gave them.
func TestLit(t *testing.T) {
	dark := make(registers, registerCount)
	on := make(registers, registerCount)
	on[1], on[4] = 1<<21, 1<<21 // GPIO17 and GPIO47 are outputs
	on[13], on[14] = 1<<17, 1<<15
	released := make(registers, registerCount)
	released[13], released[14] = 1<<17, 1<<15 // inputs that kept their level
	alternate := make(registers, registerCount)
	alternate[1], alternate[13] = 4<<21, 1<<17 // function 0 of the pin
	for name, tc := range map[string]struct {
		r    registers
		want bool
	}{"dark": {dark, false}, "on": {on, true}, "released": {released, false}} {
		for _, pin := range []Pin{GPIO17, ACT} {
			assert.Is(t, tc.want, tc.r.lit(pin), "%s: %s is lit", name, pin)
		}
	}
	if alternate.lit(GPIO17) {
		t.Error("a line that another function of the chip drives counts as lit")
	}
}
