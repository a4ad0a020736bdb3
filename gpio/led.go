// Package gpio drives the one light by which people recognize the leader from across
// the room.
//
// A [Spec] names a light:
//
//	""  "none"         no LED; that is not an error
//	"GPIO17"           a line by the name the kernel gives it
//	"line:SDA1"        the same, for names that do not start with GPIO
//	"gpiochip0/17"     a line by its chip and its number on that chip
//	"GPIO17:low"       any of these three, for an LED that is lit when the line is low
//	"ACT"  "led:ACT"   one of the board's own LEDs, under /sys/class/leds
//
// [Open] turns a Spec into an [LED]. A [Blinker] shows a [Pattern] on it.
//
// # How lines are driven
//
// periph.io/x/host/v3/gpioioctl drives the lines. It uses the kernel's GPIO
// character device, version 2 of its interface. It needs Linux 5.10 or newer, and
// access to /dev/gpiochip* (on Raspberry Pi OS: the group gpio). This package does
// not use the other drivers of periph. bcm283x writes to the registers without the
// kernel: it sees no other owner of a line, and leaves the line lit when the process
// dies. sysfs does the same.
//
// Much of this package works around defects of gpioioctl 3.8.5:
//
//  1. Read() on an output turns the line into an input with a pull-up, and the
//     light goes out. This package therefore never reads a line; the interface
//     through which it sees one has no such method.
//  2. After an Out() that failed, the next Out() does not request the line, and makes
//     its ioctl on file descriptor 0. This package closes a line after every
//     error, so that the next Set requests it anew.
//  3. Where /dev/gpiochip4 is a symbolic link to gpiochip0 (current Raspberry
//     Pi OS), looking for chips closes one file descriptor twice and then
//     file descriptor 0. Therefore [Init] comes first in main, before any
//     socket, and file descriptor 0 is /dev/null if it is gone.
//  4. Halt() does not release a line. This package takes its lines from
//     gpioioctl directly, never from the registry of pins, and ends with
//     Close().
//  5. Raspberry Pi kernels keep a released line at its last level
//     (pinctrl_bcm2835.persist_gpio_outputs), so that the light of a dead
//     process stays lit. Hence the leader's pattern is a pulse, an opened LED
//     is dark, Close darkens it again, and the unit file's ExecStopPost opens
//     and closes it once more after a crash.
//
// # After a crash
//
// [Options] can name a directory for notes. A reboot should empty it. Open writes a
// note there, with the light and the trigger that made a board's LED blink before.
// Close removes the note. So [Leftovers] returns the lights of a process that died, and
// opening and closing each of them restores it. It returns the lights of a living process
// too, but these cannot be opened: the kernel gives a line to one process only, and a
// lock does the same for a board's LED.
//
// While gpioioctl looks for chips, it reports problems with single chips through the
// standard logger of package log, at most once. This package does not redirect that
// logger. A program that logs elsewhere calls log.SetOutput before Init.
//
// # Not tested
//
// The lines were tested on emulated boards (Pi Zero and Pi 3B) and against
// fakes, but not on a Pi 5, whose lines belong to the RP1 chip behind PCI Express.
// We know only from gpioioctl and the device tree that "GPIO17" is a line of the RP1. The
// LEDs under /sys/class/leds were not tested on a real board.
package gpio

import (
	"cmp"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// LED is a light that can be switched. An LED belongs to one goroutine: its
// methods are not to be called at the same time.
type LED interface {
	// Set switches the light. After an error the LED remains usable: the next
	// Set starts from scratch, and succeeds when the cause is gone.
	Set(on bool) error
	// Close switches the light off and gives it back to the system.
	Close() error
	// String names the light for people: "GPIO17 on gpiochip0", "ACT (sysfs)",
	// "no LED".
	String() string
}

// The reasons why a light cannot be opened. Each is wrapped in a text that says
// which light was meant and what to do. All of them can go away by themselves
// (a driver loads, udev sets the group, another program ends), so it is always
// right to try again later. A lack of permission is fs.ErrPermission.
var (
	// ErrNoGPIO: the machine has no GPIO chip that can be used.
	ErrNoGPIO = errors.New("no GPIO")
	// ErrNotFound: there are chips or LEDs, but none with this name.
	ErrNotFound = errors.New("not found")
	// ErrBusy: another program or a kernel driver owns the line, or another
	// process that uses this package has the board's LED.
	ErrBusy = errors.New("busy")
)

// Options say how Open does its work. The zero value is good.
type Options struct {
	// NotesIn is the directory in which Open notes the lights that it has taken, so that they can be
	// given back even if the process is killed. Open creates it if necessary. With "" there are no notes.
	NotesIn string
	// Report is told what goes wrong with the notes. It must be set if NotesIn is. The light
	// works without notes.
	Report func(error)
	// LEDsIn is the directory of the board's own LEDs, for tests: /sys/class/leds if "".
	LEDsIn string
}

// Open takes the light into use. The light is always dark afterwards. So opening and closing
// the light of a dead process puts it out, which a Raspberry Pi does not do by itself. An empty
// Spec gives [None].
//
// While a light is open, opening it again fails with ErrBusy, in any process.
func Open(spec Spec, o Options) (LED, error) {
	notes := notes{dir: o.NotesIn, report: o.Report}
	switch spec.kind {
	case lineByName, lineByNumber:
		b, err := loadBoard()
		if err != nil {
			return nil, cannotOpen(spec, err)
		}
		return openLine(b, spec, notes)
	case sysfsLED:
		return openSysfs(cmp.Or(o.LEDsIn, "/sys/class/leds"), spec, notes)
	}
	return None, nil
}

// None is the LED of a board without one: every call succeeds and does nothing.
var None LED = none{}

type none struct{}

func (none) Set(bool) error { return nil }
func (none) Close() error   { return nil }
func (none) String() string { return "no LED" }

// Spec says which light to use. The zero value is "no LED". Two Specs that
// name the same light in the same way are equal under ==.
type Spec struct {
	kind   kind
	name   string // of the line or of the LED
	chip   int    // N of gpiochipN, for lineByNumber
	offset int    // the line's number on its chip, for lineByNumber
	low    bool   // the line lights its LED when it is low
}

type kind uint8

const (
	noLED kind = iota
	lineByName
	lineByNumber
	sysfsLED
)

// Default is the ACT LED, which every Raspberry Pi has, so that a demonstration needs no
// wiring.
var Default = Spec{kind: sysfsLED, name: "ACT"}

// The kernel's own limits: GPIO_MAX_NAME_SIZE (uapi/linux/gpio.h) and
// LED_MAX_NAME_SIZE (linux/leds.h), each with one byte for the final NUL.
const (
	maxLineName = 31
	maxLEDName  = 63
)

const specForms = `"none", "GPIO17", "gpiochip0/17", "line:NAME" (each with ":low" if low lights it) or, for the board's own LED, "ACT" or "led:NAME"`

// lowSuffix marks an LED between the supply and a line: current flows, and the
// LED is lit, while the line is low. The board's own LEDs need no such mark: the
// device tree says what lights them.
const lowSuffix = ":low"

// SpecError says why a text names no light.
type SpecError struct {
	text    string
	Problem string // a sentence without a full stop
	Hint    string // what to write instead; may be empty
}

func (e *SpecError) Error() string {
	said := fmt.Sprintf("LED %.80q: %s", e.text, e.Problem) // nobody reads on after 80 characters
	if e.Hint != "" {
		said += ": " + e.Hint
	}
	return said
}

// ParseSpec reads one of the text forms in the package comment. An error is a
// *SpecError. The meaning of a text does not depend on the machine, so that a
// configuration can be checked away from the board.
func ParseSpec(text string) (Spec, error) {
	spec, err := parseSpec(text)
	if err != nil {
		err.text = text
		return Spec{}, err
	}
	return spec, nil
}

func parseSpec(text string) (Spec, *SpecError) {
	if text == "" || text == "none" {
		return Spec{}, nil
	}
	if name, ok := strings.CutPrefix(text, "led:"); ok {
		return Spec{kind: sysfsLED, name: name}, checkName("the LED's name", name, maxLEDName)
	}
	line, low := strings.CutSuffix(text, lowSuffix)
	if name, ok := strings.CutPrefix(line, "line:"); ok {
		return Spec{kind: lineByName, name: name, low: low}, checkName("the line's name", name, maxLineName)
	}
	if number, ok := strings.CutPrefix(line, "gpiochip"); ok {
		chip, offset, err := parseNumbers(number)
		return Spec{kind: lineByNumber, chip: chip, offset: offset, low: low}, err
	}
	if isGPIOName(line) {
		return Spec{kind: lineByName, name: line, low: low}, checkName("the line's name", line, maxLineName)
	}
	// What is left is the name of an LED.
	if err := checkNotALine(line, low); err != nil {
		return Spec{}, err
	}
	err := checkName("the name", line, maxLEDName)
	if err != nil {
		err.Hint = "an LED is one of " + specForms
	}
	return Spec{kind: sysfsLED, name: line}, err
}

// parseNumbers reads the numbers of a chip and of one of its lines: "0/17".
func parseNumbers(text string) (chip, line int, err *SpecError) {
	chipText, lineText, _ := strings.Cut(text, "/")
	c, noChip := strconv.ParseUint(chipText, 10, 15)
	l, noLine := strconv.ParseUint(lineText, 10, 15)
	if noChip != nil || noLine != nil {
		return 0, 0, &SpecError{Problem: "these are not the numbers of a chip and of one of its lines", Hint: wayOfLines}
	}
	return int(c), int(l), nil
}

const wayOfLines = `a line is written "GPIO17" or "gpiochip0/17"`

// checkNotALine refuses lines that are written wrongly: "17", "gpio17" and "GPIO 17" must
// not become LEDs that nobody has.
func checkNotALine(text string, low bool) *SpecError {
	_, notNumber := strconv.Atoi(text)
	switch {
	case notNumber == nil, len(text) >= 4 && strings.EqualFold(text[:4], "gpio"):
		return &SpecError{Problem: "this is not the name of a line", Hint: wayOfLines}
	case low:
		return &SpecError{
			Problem: `":low" is for lines, as in "GPIO17:low"; for the board's own LEDs Linux knows which level lights them`,
			Hint:    `if the name of an LED really ends with ":low", write "led:NAME"`,
		}
	}
	return nil
}

// isGPIOName reports whether the text is GPIO and a number, the usual name of a
// Raspberry Pi's lines.
func isGPIOName(text string) bool {
	digits, ok := strings.CutPrefix(text, "GPIO")
	return ok && digits != "" && strings.Trim(digits, "0123456789") == ""
}

// checkName refuses names that the kernel cannot have. The slash and the dots matter
// most: an LED's name becomes part of a path, which must not lead out of /sys/class/leds.
// The text of the error begins with what.
func checkName(what, name string, limit int) *SpecError {
	fail := func(format string, args ...any) *SpecError {
		return &SpecError{Problem: what + " " + fmt.Sprintf(format, args...)}
	}
	switch {
	case name == "":
		return fail("is empty")
	case len(name) > limit:
		return fail("has %d characters, the kernel allows %d", len(name), limit)
	case name == ".", name == "..":
		return fail("is not a name")
	}
	for _, r := range name {
		if r <= ' ' || r > '~' || r == '/' {
			return fail("contains %q", r)
		}
	}
	return nil
}

// isLine reports whether the light is a GPIO line.
func (s Spec) isLine() bool { return s.kind == lineByName || s.kind == lineByNumber }

// String returns the shortest unambiguous form of the Spec. ParseSpec reads it as
// the same Spec.
func (s Spec) String() string {
	mark := ""
	if s.low {
		mark = lowSuffix
	}
	switch s.kind {
	case lineByName:
		if isGPIOName(s.name) {
			return s.name + mark
		}
		return "line:" + s.name + mark
	case lineByNumber:
		return s.chipName() + "/" + strconv.Itoa(s.offset) + mark
	case sysfsLED:
		return "led:" + s.name
	}
	return "none"
}

func (s Spec) chipName() string { return "gpiochip" + strconv.Itoa(s.chip) }
