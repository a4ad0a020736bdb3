package gpio

import "errors"

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

// An Option changes where Open looks.
type Option func(*options)

type options struct {
	ledRoot string
	notes   notes
}

// LEDRoot makes Open look for LEDs in this directory instead of
// /sys/class/leds, for tests.
func LEDRoot(dir string) Option { return func(o *options) { o.ledRoot = dir } }

// NotesIn makes Open note in this directory, which is made if necessary, what it
// takes, so that it can be given back even if the process is killed. What goes
// wrong with the notes is told to report and stops nothing: the light works
// without.
func NotesIn(dir string, report func(error)) Option {
	return func(o *options) { o.notes = notes{dir, report} }
}

// Open takes the light into use; it is dark afterwards. The dark is part of the
// contract: a Raspberry Pi keeps the light of a dead process lit, and opening
// and closing it puts it out. An empty Spec gives [None].
//
// One light is for one LED: while it is open, opening it again says ErrBusy, in
// whichever process.
func Open(spec Spec, opts ...Option) (LED, error) {
	o := options{ledRoot: "/sys/class/leds"}
	for _, opt := range opts {
		opt(&o)
	}
	switch spec.kind {
	case lineByName, lineByNumber:
		b, err := loadBoard()
		if err != nil {
			return nil, cannotOpen(spec, err)
		}
		return openLine(b, spec, o.notes)
	case sysfsLED:
		return openSysfs(o.ledRoot, spec, o.notes)
	}
	return None, nil
}

// None is the LED of a board without one: every call succeeds and does nothing.
var None LED = none{}

type none struct{}

func (none) Set(bool) error { return nil }
func (none) Close() error   { return nil }
func (none) String() string { return "no LED" }
