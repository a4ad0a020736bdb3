package pi

import (
	"bufio"
	"encoding/json"
	"net"
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

// fakeQEMU answers each line with the next of the texts.
func fakeQEMU(t *testing.T, answers ...string) (m *monitor, asked <-chan string) {
	t.Helper()
	ours, theirs := net.Pipe()
	seen := make(chan string, len(answers))
	done := make(chan struct{})
	t.Cleanup(func() {
		ours.Close()
		<-done
	})
	go func() {
		defer close(done)
		defer theirs.Close()
		in := bufio.NewReader(theirs)
		for _, a := range answers {
			line, err := in.ReadString('\n')
			if err != nil {
				return
			}
			seen <- line
			if _, err := theirs.Write([]byte(a)); err != nil {
				return
			}
		}
	}()
	return &monitor{ours, json.NewDecoder(ours)}, seen
}

// The answer is as QEMU gives it, after its greeting, or after an event.
func TestMonitorReadsRegisters(t *testing.T) {
	m, asked := fakeQEMU(t, `{"QMP": {"version": {"qemu": {"micro": 22, "minor": 2, "major": 7}}, "capabilities": ["oob"]}}`+"\r\n"+`{"return": {}}`+"\r\n",
		`{"timestamp": {"seconds": 1, "microseconds": 2}, "event": "RTC_CHANGE", "data": {"offset": 0}}`+"\r\n"+
			`{"return": "000000003f200000: 0x00000000 0x00200000 0x00000000 0x3fe40000\r\n000000003f200010: 0x24000924 0x00000924\r\n"}`+"\r\n")
	_, err := m.execute("qmp_capabilities", map[string]string{})
	assert.NoError(t, err)
	assert.Is(t, `{"arguments":{},"execute":"qmp_capabilities"}`+"\n", <-asked, "asked")
	got, err := m.words(0x3f200000, 6)
	assert.NoError(t, err)
	assert.Equal(t, []uint32{0, 0x00200000, 0, 0x3fe40000, 0x24000924, 0x924}, got, "")
	assert.Is(t, `{"arguments":{"command-line":"xp /6wx 0x3f200000"},"execute":"human-monitor-command"}`+"\n", <-asked, "asked")
}

// What is said instead of numbers is in an error that tells what was asked.
func TestMonitorErrors(t *testing.T) {
	for name, tc := range map[string]struct{ answer, want string }{
		"too few words": {`{"return": "000000003f200000: 0x00000001\r\n"}`, "xp /2wx 0x3f200000: 1 words, want 2"},
		"no words":      {`{"return": "Cannot access memory\r\n"}`, "0 words, want 2"},
		"no numbers":    {`{"return": "000000003f200000: x y\r\n"}`, "0 words, want 2"},
		"an error":      {`{"error": {"class": "GenericError", "desc": "no such command"}}`, "no such command"},
		"the end":       {`{"return": "000000003f200000:`, "EOF"},
	} {
		t.Run(name, func(t *testing.T) {
			m, _ := fakeQEMU(t, tc.answer)
			_, err := m.words(0x3f200000, 2)
			assert.ErrorContains(t, err, tc.want, "")
		})
	}
}
