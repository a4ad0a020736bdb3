package gpio

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"topdog/internal/lab/assert"
)

// noted is a directory for notes, and what was reported about them.
type noted struct {
	dir     string
	reports []string
}

func newNoted(t *testing.T) *noted {
	return &noted{dir: filepath.Join(t.TempDir(), "run", "topdog")}
}

func (n *noted) options(leds string) Options {
	return Options{NotesIn: n.dir, Report: func(err error) { n.reports = append(n.reports, err.Error()) }, LEDsIn: leds}
}

func (n *noted) leftovers(t *testing.T, when string, want ...string) {
	t.Helper()
	specs, err := Leftovers(n.dir)
	assert.NoError(t, err)
	var got []string
	for _, s := range specs {
		got = append(got, s.String())
	}
	assert.Equal(t, want, got, "left over %s", when)
}

// A process that is killed closes nothing. The next one finds the LED dark or
// lit and without a trigger, and gives it back to the right one all the same.
func TestTriggerOutlivesTheProcess(t *testing.T) {
	root := fakeLED(t, "ACT", map[string]string{"trigger": "none timer [mmc0]", "brightness": "0", "max_brightness": "255"})
	n := newNoted(t)
	spec := mustSpec(t, "ACT")
	open := func() LED {
		t.Helper()
		led, err := Open(spec, n.options(root))
		assert.NoError(t, err)
		return led
	}
	// takenAway makes of the file what the kernel makes of it.
	takenAway := func() {
		t.Helper()
		assert.Is(t, "none", attributes(t, root, "ACT")["trigger"], "the trigger while the LED is taken")
		assert.NoError(t, os.WriteFile(filepath.Join(root, "ACT", "trigger"), []byte("[none] timer mmc0"), 0o644))
	}
	killed := open()
	assert.NoError(t, killed.Set(true))
	takenAway()
	n.leftovers(t, "by the first", "led:ACT")
	die(killed)

	die(open()) // is killed as well, before it does anything
	n.leftovers(t, "by the second", "led:ACT")

	assert.NoError(t, open().Close())
	want := map[string]string{"trigger": "mmc0", "brightness": "0", "max_brightness": "255"}
	assert.Equal(t, want, attributes(t, root, "ACT"), "the LED")
	n.leftovers(t, "at the end")
	assert.Equal(t, []string(nil), n.reports, "reported")
}

// die lets go of an LED as the kernel does when its process is killed.
func die(led LED) { led.(*boardLED).release() }

// Another daemon on the same board may keep its notes in the same directory. While
// it lives nobody touches its LED: no second daemon, and no cleanup after one.
func TestLightOfAnotherProcessIsLeftAlone(t *testing.T) {
	root := fakeLED(t, "ACT", map[string]string{"trigger": "none timer [mmc0]", "brightness": "0", "max_brightness": "255"})
	n := newNoted(t)
	open := func() (LED, error) { return Open(mustSpec(t, "ACT"), n.options(root)) }
	other, err := open()
	assert.NoError(t, err)
	assert.NoError(t, other.Set(true))
	n.leftovers(t, "while its owner lives", "led:ACT")
	_, err = open()
	assert.ErrorIs(t, err, ErrBusy, "opened a second time")
	want := map[string]string{"trigger": "none", "brightness": "255", "max_brightness": "255"}
	assert.Equal(t, want, attributes(t, root, "ACT"), "the LED")
	n.leftovers(t, "after it was tried", "led:ACT")

	assert.NoError(t, other.Close())
	again, err := open()
	assert.NoError(t, err) // its owner has closed it
	die(again)
	_, err = open()
	assert.ErrorIs(t, err, nil, "after its owner was killed")
}

// Whoever may write a note must not get anything but a trigger written.
func TestNoteWithNonsense(t *testing.T) {
	for _, text := range []string{"", "\n", "mmc1\n", "../../x\n", strings.Repeat("m", 1000), "[none]"} {
		root := fakeLED(t, "ACT", map[string]string{"trigger": "[none] timer mmc0", "brightness": "0"})
		n := newNoted(t)
		path := notes{dir: n.dir}.path(mustSpec(t, "ACT"))
		assert.NoError(t, errors.Join(os.MkdirAll(n.dir, 0o755), os.WriteFile(path, []byte(text), 0o644)))
		led, err := Open(mustSpec(t, "ACT"), n.options(root))
		assert.NoError(t, err)
		assert.NoError(t, led.Close())
		assert.Is(t, "[none] timer mmc0", attributes(t, root, "ACT")["trigger"], "the trigger after the note %q", text)
	}
}

// A link in the place of a note is replaced, not written through.
func TestNoteIsNotWrittenThroughALink(t *testing.T) {
	root := fakeLED(t, "ACT", map[string]string{"trigger": "none [mmc0]", "brightness": "0"})
	n := newNoted(t)
	victim := filepath.Join(t.TempDir(), "victim")
	assert.NoError(t, errors.Join(os.MkdirAll(n.dir, 0o755), os.WriteFile(victim, []byte("precious"), 0o644),
		os.Symlink(victim, notes{dir: n.dir}.path(mustSpec(t, "ACT")))))
	_, err := Open(mustSpec(t, "ACT"), n.options(root))
	assert.NoError(t, err)
	text, err := os.ReadFile(victim)
	assert.NoError(t, err)
	assert.Is(t, "precious", string(text), "the file")
	n.leftovers(t, "while it is taken", "led:ACT")
}

// Lines are noted too, so that what died is found even if the configuration
// names another light by now.
func TestLinesAreNoted(t *testing.T) {
	n := newNoted(t)
	keeping := notes{n.dir, func(err error) { t.Error(err) }}
	b := boardWith(&kernelLine{})
	var leds []LED
	for _, text := range []string{"GPIO17:low", "gpiochip0/0"} {
		led, err := openLine(b, mustSpec(t, text), keeping)
		assert.NoError(t, err)
		leds = append(leds, led)
	}
	n.leftovers(t, "while both are taken", "GPIO17:low", "gpiochip0/0")
	assert.NoError(t, leds[0].Close())
	n.leftovers(t, "after one was closed", "gpiochip0/0")

	busy := boardWith(&kernelLine{taken: true})
	led, err := openLine(busy, mustSpec(t, "GPIO17"), keeping)
	assert.ErrorIs(t, err, ErrBusy, "")
	assert.Is(t, nil, led, "the LED")
	n.leftovers(t, "after one that could not be had", "gpiochip0/0")
}

// Without a place for notes the light works, and somebody hears of it.
func TestNotesThatCannotBeWritten(t *testing.T) {
	root := fakeLED(t, "ACT", map[string]string{"trigger": "none [mmc0]", "brightness": "0"})
	n := newNoted(t)
	n.dir = filepath.Join(root, "ACT", "trigger", "sub") // below a file
	led, err := Open(mustSpec(t, "ACT"), n.options(root))
	assert.NoError(t, err)
	if len(n.reports) != 1 || !strings.Contains(n.reports[0], `note that the LED "led:ACT" is taken`) {
		t.Errorf("reported %q", n.reports)
	}
	assert.NoError(t, led.Close())
	assert.Is(t, "mmc0", attributes(t, root, "ACT")["trigger"], "the trigger")
}

func TestLeftoversOfOthers(t *testing.T) {
	n := newNoted(t)
	n.leftovers(t, "without a directory")
	assert.NoError(t, os.MkdirAll(n.dir, 0o755))
	for _, name := range []string{"topdog.sock", "led.", "led.none", "led.%zz", "led.17", "led.led:..%2Fx"} {
		assert.NoError(t, os.WriteFile(filepath.Join(n.dir, name), nil, 0o644))
	}
	n.leftovers(t, "by others")
}

func TestPatternLooks(t *testing.T) {
	seen := map[string]bool{}
	for p := range Pattern(len(patterns)) {
		if text := p.Looks(); text == "" || seen[text] {
			t.Errorf("%v looks like %q, as another does or like nothing", p, text)
		} else {
			seen[text] = true
		}
	}
}
