package gpio

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
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

// openACT opens the LED ACT of a fake directory.
func openACT(t *testing.T, root string) LED {
	t.Helper()
	led, err := Open(mustSpec(t, "ACT"), Options{LEDsIn: root})
	assert.NoError(t, err)
	return led
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

// What a kernel shows at least is the brightness, without triggers and without a maximum.
func TestBoardLED(t *testing.T) {
	for name, shown := range map[string]struct{ before, opened, lit, closed map[string]string }{
		"with a trigger": {
			map[string]string{"trigger": "none rfkill-any timer [mmc0] heartbeat\n", "brightness": "128\n", "max_brightness": "255\n"},
			map[string]string{"trigger": "none", "brightness": "0", "max_brightness": "255\n"},
			map[string]string{"trigger": "none", "brightness": "255", "max_brightness": "255\n"},
			map[string]string{"trigger": "mmc0", "brightness": "0", "max_brightness": "255\n"},
		},
		"with its brightness only": {
			map[string]string{"brightness": "1\n"},
			map[string]string{"brightness": "0"}, map[string]string{"brightness": "255"}, map[string]string{"brightness": "0"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			root := fakeLED(t, "ACT", shown.before)
			led := openACT(t, root)
			assert.Is(t, "ACT (sysfs)", led.String(), "")
			assert.Equal(t, shown.opened, attributes(t, root, "ACT"), "opened")
			assert.NoError(t, led.Set(true))
			assert.Equal(t, shown.lit, attributes(t, root, "ACT"), "on")
			assert.NoError(t, led.Set(false))
			assert.Equal(t, shown.opened, attributes(t, root, "ACT"), "off")
			assert.NoError(t, errors.Join(led.Set(true), led.Close()))
			assert.Equal(t, shown.closed, attributes(t, root, "ACT"), "closed")
		})
	}
}

func TestBoardLEDMissing(t *testing.T) {
	root := fakeLED(t, "PWR", map[string]string{"brightness": "0"})
	_, err := Open(mustSpec(t, "ACT"), Options{LEDsIn: root})
	assert.ErrorIs(t, err, ErrNotFound, "")
	assert.ErrorContains(t, err, "there are PWR", "the names there are")
	_, err = Open(mustSpec(t, "ACT"), Options{LEDsIn: filepath.Join(root, "nowhere")})
	assert.ErrorIs(t, err, ErrNotFound, "no class leds at all")
}

// An LED that goes away is an error, and one that comes back works again: the
// driver was reloaded.
func TestBoardLEDGoesAndComes(t *testing.T) {
	root := fakeLED(t, "ACT", map[string]string{"brightness": "0"})
	led := openACT(t, root)
	away := filepath.Join(root, "away")
	assert.NoError(t, os.Rename(filepath.Join(root, "ACT"), away))
	err := led.Set(true)
	assert.ErrorIs(t, err, fs.ErrNotExist, "Set without the LED")
	assert.ErrorContains(t, err, "ACT (sysfs) on", "what was attempted")
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
	assert.NoError(t, err)
	assert.Is(t, "mmc0", string(trigger), "the trigger is back")
}

func TestBoardLEDExplains(t *testing.T) {
	dir := t.TempDir() // a board has the real one, as a link to somewhere else
	l := &boardLED{dir: dir, name: "ACT"}
	for cause, want := range map[error]string{
		syscall.EACCES: "udev rule",
		syscall.EROFS:  "ReadWritePaths=" + dir,
	} {
		err := l.explain(&fs.PathError{Op: "open", Path: l.dir, Err: cause})
		assert.ErrorIs(t, err, cause, "")
		assert.ErrorContains(t, err, want, "%v", cause)
	}
}

func TestActiveTrigger(t *testing.T) {
	for list, want := range map[string]string{
		"[none] timer mmc0": "none", "none [timer] mmc0": "timer", "none timer [mmc0]\n": "mmc0", "": "none", "none timer": "none",
	} {
		assert.Is(t, want, activeTrigger(list), "%q", list)
	}
}
