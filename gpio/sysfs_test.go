package gpio

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"topdog/internal/lab/assert"
)

// fakeLED writes a directory as the kernel shows an LED, and returns its root.
func fakeLED(t *testing.T, name string, attributes map[string]string) string {
	t.Helper()
	root := t.TempDir()
	assert.NoError(t, os.Mkdir(filepath.Join(root, name), 0o755))
	for file, text := range attributes {
		assert.NoError(t, os.WriteFile(filepath.Join(root, name, file), []byte(text), 0o644))
	}
	return root
}

func attributes(t *testing.T, root, name string) map[string]string {
	t.Helper()
	got := map[string]string{}
	for _, file := range entries(filepath.Join(root, name)) {
		text, err := os.ReadFile(filepath.Join(root, name, file))
		assert.NoError(t, err)
		got[file] = string(text)
	}
	return got
}

func TestBoardLED(t *testing.T) {
	root := fakeLED(t, "ACT", map[string]string{
		"trigger": "none rfkill-any timer [mmc0] heartbeat\n", "brightness": "128\n", "max_brightness": "255\n",
	})
	check := func(when, trigger, brightness string) {
		t.Helper()
		want := map[string]string{"trigger": trigger, "brightness": brightness, "max_brightness": "255\n"}
		assert.Equal(t, want, attributes(t, root, "ACT"), "%s", when)
	}
	led, err := Open(mustSpec(t, "ACT"), Options{LEDsIn: root})
	assert.NoError(t, err)
	if led.String() != "ACT (sysfs)" {
		t.Errorf("String = %q", led)
	}
	check("opened", "none", "0")
	assert.NoError(t, led.Set(true))
	check("on", "none", "255")
	assert.NoError(t, led.Set(false))
	check("off", "none", "0")
	assert.NoError(t, errors.Join(led.Set(true), led.Close()))
	check("closed", "mmc0", "0")
}

// Without triggers, and without a maximum: the least that a kernel shows.
func TestBoardLEDWithBrightnessOnly(t *testing.T) {
	root := fakeLED(t, "ACT", map[string]string{"brightness": "1\n"})
	led, err := Open(mustSpec(t, "ACT"), Options{LEDsIn: root})
	assert.NoError(t, err)
	assert.NoError(t, led.Set(true))
	assert.Equal(t, map[string]string{"brightness": "1"}, attributes(t, root, "ACT"), "on")
	assert.NoError(t, led.Close())
	assert.Equal(t, map[string]string{"brightness": "0"}, attributes(t, root, "ACT"), "closed")
}

func TestBoardLEDMissing(t *testing.T) {
	root := fakeLED(t, "PWR", map[string]string{"brightness": "0"})
	_, err := Open(mustSpec(t, "ACT"), Options{LEDsIn: root})
	if !errors.Is(err, ErrNotFound) || !strings.Contains(err.Error(), "there are PWR") {
		t.Errorf("error %v, want ErrNotFound and the names there are", err)
	}
	_, err = Open(mustSpec(t, "ACT"), Options{LEDsIn: filepath.Join(root, "nowhere")})
	assert.ErrorIs(t, err, ErrNotFound, "no class leds at all")
}

// An LED that goes away is an error, and one that comes back works again: the
// driver was reloaded.
func TestBoardLEDGoesAndComes(t *testing.T) {
	root := fakeLED(t, "ACT", map[string]string{"brightness": "0"})
	led, err := Open(mustSpec(t, "ACT"), Options{LEDsIn: root})
	assert.NoError(t, err)
	away := filepath.Join(root, "away")
	assert.NoError(t, os.Rename(filepath.Join(root, "ACT"), away))
	if err := led.Set(true); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "ACT (sysfs) on") {
		t.Errorf("Set without the LED: %v, want fs.ErrNotExist and what was attempted", err)
	}
	assert.NoError(t, os.Rename(away, filepath.Join(root, "ACT")))
	assert.ErrorIs(t, led.Set(true), nil, "Set after it came back")

	brightness := filepath.Join(root, "ACT", "brightness")
	assert.NoError(t, os.Remove(brightness))
	assert.ErrorIs(t, led.Set(true), fs.ErrNotExist, "Set without the file")
}

// If the LED cannot be switched, its trigger gets it back.
func TestBoardLEDThatCannotBeSwitched(t *testing.T) {
	root := fakeLED(t, "ACT", map[string]string{"trigger": "none [mmc0]"})
	assert.NoError(t, os.Mkdir(filepath.Join(root, "ACT", "brightness"), 0o755))
	if led, err := Open(mustSpec(t, "ACT"), Options{LEDsIn: root}); err == nil {
		t.Errorf("Open = %v, want an error", led)
	}
	trigger, err := os.ReadFile(filepath.Join(root, "ACT", "trigger"))
	if err != nil || string(trigger) != "mmc0" {
		t.Errorf("trigger %q, %v; want mmc0 back", trigger, err)
	}
}

func TestBoardLEDExplains(t *testing.T) {
	dir := t.TempDir() // a board has the real one, as a link to somewhere else
	l := &boardLED{dir: dir, name: "ACT"}
	for cause, want := range map[error]string{
		syscall.EACCES: "udev rule",
		syscall.EROFS:  "ReadWritePaths=" + dir,
	} {
		err := l.explain(&fs.PathError{Op: "open", Path: l.dir, Err: cause})
		if !errors.Is(err, cause) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %q, want %q in it", cause, err, want)
		}
	}
}

func TestActiveTrigger(t *testing.T) {
	for list, want := range map[string]string{
		"[none] timer mmc0": "none", "none [timer] mmc0": "timer", "none timer [mmc0]\n": "mmc0", "": "none", "none timer": "none",
	} {
		assert.Is(t, want, activeTrigger(list), "%q", list)
	}
}
