package gpio

import (
	"cmp"
	"errors"
	"sync"
	"time"
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

// An Edge is a change of the light.
type Edge struct {
	At time.Time // with a monotonic reading
	On bool
}

// Recorder is an LED that only remembers when it was switched, for tests and for the
// demo's picture of the boards. Unlike other LEDs it may be used from several
// goroutines. The zero value is not usable; see NewRecorder.
type Recorder struct {
	mu    sync.Mutex
	name  string
	limit int
	on    bool
	edges []Edge
}

// NewRecorder returns a dark LED with a name for String. It remembers the last limit
// edges; a limit below 1 counts as 1.
func NewRecorder(name string, limit int) *Recorder {
	return &Recorder{name: name, limit: max(1, limit)}
}

// Set remembers a change of the light.
func (r *Recorder) Set(on bool) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.set(on)
	return nil
}

func (r *Recorder) set(on bool) {
	if on == r.on {
		return
	}
	r.on = on
	if len(r.edges) >= r.limit {
		r.edges = append(r.edges[:0], r.edges[len(r.edges)-r.limit+1:]...)
	}
	r.edges = append(r.edges, Edge{At: time.Now(), On: on})
}

// Close switches the light off. A closed Recorder can be used again, so a function
// that opens LEDs may return the same one each time.
func (r *Recorder) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.set(false)
	return nil
}

func (r *Recorder) String() string { return r.name }

// On reports whether the light is on now.
func (r *Recorder) On() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.on
}

// Edges returns a copy of the remembered changes, oldest first.
func (r *Recorder) Edges() []Edge {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]Edge(nil), r.edges...)
}
