package gpio

import (
	"cmp"
	"errors"
)

// LED is a light that can be switched. An LED belongs to one goroutine: its
// methods are not to be called at the same time.
type LED interface {
	// Set switches the light. After an error the LED remains usable: the next
	// Set starts from scratch, and succeeds once the cause is gone.
	Set(on bool) error
	// Close switches the light off and gives it back to the system.
	Close() error
	// String names the light for people: "GPIO17 on gpiochip0", "ACT (sysfs)",
	// "no LED".
	String() string
}

// The reasons why a light cannot be had. Each comes wrapped in a text that says
// which light was meant and what to do. All of them can go away by themselves
// (a driver loads, udev sets the group, another program ends), so that asking
// again later is always right. A lack of permission is fs.ErrPermission.
var (
	// ErrNoGPIO: the machine has no GPIO chip that can be used.
	ErrNoGPIO = errors.New("no GPIO")
	// ErrNotFound: there are chips or LEDs, but none with this name.
	ErrNotFound = errors.New("not found")
	// ErrBusy: another program or a kernel driver owns the line, or another
	// process that uses this package the board's LED.
	ErrBusy = errors.New("busy")
)

// Options say how Open does its work. The zero value is good.
type Options struct {
	// NotesIn is the directory in which Open notes what it has taken, so that it can be
	// given back even if the process is killed. It is made if necessary; "" notes nothing.
	NotesIn string
	// Report is told what goes wrong with the notes, and must be there if they are. It
	// stops nothing: the light works without notes.
	Report func(error)
	// LEDsIn is the directory of the board's own LEDs, for tests: /sys/class/leds if "".
	LEDsIn string
}

// Open takes the light into use. It is dark afterwards, always: a Raspberry Pi keeps
// the light of a dead process lit, and to open and close it puts it out. An empty Spec
// gives [None].
//
// One light is for one LED: while it is open, opening it again says ErrBusy, in
// whichever process.
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
