package gpio

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
	periph "periph.io/x/conn/v3/gpio"
	"periph.io/x/host/v3/gpioioctl"

	"topdog/internal/lab/assert"
)

// kernelLine behaves as a gpioioctl line of version 3.8.5 does, defect 2
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
	led := &lineLED{line: k, name: "GPIO17 on gpiochip0"}
	for range 2 {
		err := led.Set(true)
		assert.ErrorIs(t, err, ErrBusy, "Set")
		for _, want := range []string{"GPIO17 on gpiochip0", "gpioinfo"} {
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
	return &board{lines: []chipLine{{chip: "gpiochip0", name: "GPIO17", line: k}}}
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

// pi3 is a Pi 3B as its device tree names the lines, shortened.
func pi3(t *testing.T) *board {
	dev := t.TempDir()
	assert.WriteFile(t, filepath.Join(dev, "gpiochip0"), nil, 0o600)
	assert.NoError(t, os.Symlink("gpiochip0", filepath.Join(dev, "gpiochip4")))
	b := &board{dev: dev}
	for i := range 28 {
		b.lines = append(b.lines, chipLine{chip: "gpiochip0", label: "pinctrl-bcm2835", number: i, name: fmt.Sprintf("GPIO%d", i)})
	}
	b.lines[2].name = "SDA1"
	b.lines[27].name = ""
	b.lines = append(b.lines, chipLine{chip: "gpiochip1", label: "raspberrypi-exp-gpio", name: "BT_ON"})
	return b
}

func TestFind(t *testing.T) {
	for _, tc := range []struct{ spec, want, err string }{
		{"GPIO17", "GPIO17 on gpiochip0", ""},
		{"line:BT_ON", "BT_ON on gpiochip1", ""},
		{"GPIO2", `GPIO2 on gpiochip0 ("SDA1")`, ""},
		{"gpiochip0/17", `line 17 on gpiochip0 ("GPIO17")`, ""},
		{"gpiochip4/17", `line 17 on gpiochip0 ("GPIO17")`, ""},
		{"gpiochip0/27", "line 27 on gpiochip0", ""},
		{"GPIO54", "", "there are GPIO0, GPIO1, SDA1, GPIO3, GPIO4, GPIO5, GPIO6, GPIO7 and 20 more"},
		{"GPIO017", "", "not found"},
		{"line:17", "", "not found"},
		{"gpiochip0/28", "", "no chip has a line of this number; there are gpiochip0/0, gpiochip0/1, "},
		{"gpiochip7/0", "", "no chip has a line of this number; there are gpiochip0/0, "},
	} {
		t.Run(tc.spec, func(t *testing.T) {
			_, title, err := pi3(t).find(mustSpec(t, tc.spec))
			assert.ErrorContains(t, err, tc.err, "")
			if err != nil {
				assert.ErrorIs(t, err, ErrNotFound, "")
				return
			}
			assert.Is(t, tc.want, title, "found")
		})
	}
}

// On a machine without GPIO the error is clear and nothing panics; "GPIO17"
// is nil in periph's registry there.
func TestOpenWithoutGPIO(t *testing.T) {
	if chips, _ := filepath.Glob("/dev/gpiochip*"); len(chips) > 0 {
		t.Skip("this machine has GPIO chips")
	}
	for _, text := range []string{"GPIO17", "gpiochip0/17"} {
		spec := mustSpec(t, text)
		Init(spec) // Must be harmless.
		led, err := Open(spec, Options{})
		if !errors.Is(err, ErrNoGPIO) || led != nil {
			t.Fatalf("Open(%s) = %v, %v; want ErrNoGPIO", text, led, err)
		}
		for _, want := range []string{text, "/dev/gpiochip*", `"ACT"`} {
			assert.ErrorContains(t, err, want, "")
		}
	}
}

func TestOpenNone(t *testing.T) {
	led, err := Open(Spec{}, Options{})
	if err != nil || led.String() != "no LED" {
		t.Fatalf("Open = %v, %v", led, err)
	}
	assert.NoError(t, errors.Join(led.Set(true), led.Close()))
}

// A machine on which udev has not handed out all chips yet is not looked at.
func TestUsable(t *testing.T) {
	dev := t.TempDir()
	assert.ErrorIs(t, usable(dev), ErrNoGPIO, "empty /dev")
	assert.NoError(t, os.WriteFile(filepath.Join(dev, "gpiochip0"), nil, 0o600))
	assert.ErrorIs(t, usable(dev), nil, "one chip")
	assert.NoError(t, os.Symlink("gone", filepath.Join(dev, "gpiochip1")))
	err := usable(dev)
	assert.ErrorIs(t, err, fs.ErrNotExist, "a chip that cannot be opened")
	assert.ErrorContains(t, err, "gpiochip1", "its name")
}

func TestRefused(t *testing.T) {
	for _, tc := range []struct {
		cause unix.Errno
		want  string
	}{
		{unix.EACCES, "sudo usermod -aG gpio USER"},
		{unix.EPERM, "DeviceAllow=char-gpiochip"},
	} {
		err := refused("/nowhere/gpiochip0", tc.cause)
		assert.ErrorIs(t, err, fs.ErrPermission, "%v", tc.cause)
		assert.ErrorContains(t, err, tc.want, "%v", tc.cause)
	}
}

// Trap 3: if somebody closes descriptor 0, it becomes /dev/null, and otherwise it is left alone. No other test runs meanwhile.
func TestKeepDescriptor0(t *testing.T) {
	saved, err := unix.FcntlInt(0, unix.F_DUPFD_CLOEXEC, 3)
	assert.NoError(t, err)
	defer func() { assert.NoError(t, errors.Join(unix.Dup3(saved, 0, 0), unix.Close(saved))) }()
	file := func(name string) (stat unix.Stat_t) {
		t.Helper()
		if name == "" {
			assert.NoError(t, unix.Fstat(0, &stat))
		} else {
			assert.NoError(t, unix.Stat(name, &stat))
		}
		return stat
	}
	before := file("")
	assert.NoError(t, keepDescriptor0())
	assert.Is(t, before.Ino, file("").Ino, "an open file")
	assert.NoError(t, unix.Close(0))
	assert.NoError(t, keepDescriptor0())
	assert.Is(t, file("/dev/null").Rdev, file("").Rdev, "a closed one")
}

// Trap 4: with periph's bcm283x driver in the program, a pin is another object
// that writes to registers past the kernel.
func TestOnlyTheKernelsDriver(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", ".").Output()
	if err != nil {
		t.Skipf("go list: %v", err)
	}
	for pkg := range strings.FieldsSeq(string(out)) {
		if strings.HasPrefix(pkg, "periph.io/x/host/") && pkg != "periph.io/x/host/v3/gpioioctl" {
			t.Errorf("imports %s", pkg)
		}
	}
}
