package gpio

import (
	"errors"
	"testing"

	periph "periph.io/x/conn/v3/gpio"
	"periph.io/x/host/v3/gpioioctl"

	"topdog/internal/lab/assert"
)

// kernelLine behaves as a gpioioctl line of version 3.8.5 does, trap 2
// included: after a failed request it believes that the line is its own.
type kernelLine struct {
	taken     bool // by someone else
	requested bool // whether the kernel gave it to us
	believed  bool // whether the line thinks so
	level     periph.Level
	log       []string
}

func (k *kernelLine) Out(l periph.Level) error {
	if !k.believed {
		k.believed = true
		if k.taken {
			k.log = append(k.log, "request: busy")
			return errors.New("GPIOLine.Out(): line_request ioctl: device or resource busy")
		}
		k.requested = true
		k.log = append(k.log, "request")
	}
	if !k.requested {
		k.log = append(k.log, "ioctl on file descriptor 0")
		return errors.New("inappropriate ioctl for device")
	}
	k.level = l
	k.log = append(k.log, "out "+l.String())
	return nil
}

func (k *kernelLine) Close() {
	if k.requested {
		k.log = append(k.log, "release")
	}
	k.requested, k.believed = false, false
}

// Trap 2: a line that was busy is requested anew, not used through descriptor 0.
func TestBusyLineIsRequestedAnew(t *testing.T) {
	k := &kernelLine{taken: true}
	led := &lineLED{line: k, name: "GPIO17 on gpiochip0", holder: "other@42"}
	for range 2 {
		err := led.Set(true)
		assert.ErrorIs(t, err, ErrBusy, "Set")
		for _, want := range []string{"GPIO17 on gpiochip0", `"other@42"`, "gpioinfo"} {
			assert.ErrorContains(t, err, want, "Set")
		}
	}
	k.taken = false
	assert.ErrorIs(t, led.Set(true), nil, "Set after the line became free")
	want := []string{"request: busy", "request: busy", "request", "out High"}
	assert.Equal(t, want, k.log, "what the kernel saw")
}

// The same with the library itself: a GPIOLine without a chip asks descriptor
// 0, which `go test` makes /dev/null, and is refused. Each error must come from
// a request; without the Close the second comes from setting values.
func TestBusyLineIsRequestedAnewByPeriph(t *testing.T) {
	led := &lineLED{line: &gpioioctl.GPIOLine{}, name: "a line of no chip"}
	for i := range 3 {
		assert.ErrorContains(t, led.Set(true), "line_request", "Set number %d", i+1)
	}
}

// boardWith has one line, GPIO17.
func boardWith(k *kernelLine) *board {
	return &board{chips: []chip{{name: "gpiochip0", lines: []lineInfo{{name: "GPIO17", line: k}}}}}
}

// Traps 4 and 5: the line is dark when it is opened and before it is released,
// and it is released. An LED that is wired to the supply has the levels turned round.
func TestLineIsDarkAndReleased(t *testing.T) {
	for _, test := range []struct {
		spec, title string
		want        []string
	}{
		{"GPIO17", "GPIO17 on gpiochip0", []string{"request", "out Low", "out High", "out Low", "release"}},
		{"GPIO17:low", "GPIO17 on gpiochip0, lit when low", []string{"request", "out High", "out Low", "out High", "release"}},
	} {
		k := &kernelLine{}
		led, err := openLine(boardWith(k), mustSpec(t, test.spec), notes{})
		assert.NoError(t, err)
		assert.Is(t, test.title, led.String(), "")
		assert.NoError(t, errors.Join(led.Set(true), led.Close()))
		assert.Equal(t, test.want, k.log, "what the kernel saw of %s", test.spec)
	}
}

func mustSpec(t *testing.T, text string) Spec {
	t.Helper()
	s, err := ParseSpec(text)
	assert.NoError(t, err)
	return s
}
