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
//  2. After an Out() that failed, the next one skips the request and makes its
//     ioctl on file descriptor 0. This package closes a line after every
//     error, so that the next Set requests it anew.
//  3. Where /dev/gpiochip4 is a symbolic link to gpiochip0 (current Raspberry
//     Pi OS), looking for chips closes one file descriptor twice and then
//     file descriptor 0. Therefore [Init] comes first in main, before any
//     socket, and file descriptor 0 is put back if it is gone.
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
// Close removes the note. So [Leftovers] are the lights of a process that died, and to
// open and close each of them restores it. The lights of a living process are among
// them too, but cannot be opened: the kernel gives a line to one process only, and a
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
// That "GPIO17" is a line of the RP1 follows from gpioioctl and the device tree. The
// LEDs under /sys/class/leds were not tested on a real board.
package gpio

import (
	"cmp"
	"errors"
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

// Open takes the light into use. The light is always dark afterwards: a Raspberry Pi keeps
// the light of a dead process lit, so to open and close it puts it out. An empty Spec
// gives [None].
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
