package gpio

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
	"periph.io/x/conn/v3/driver/driverreg"
	periph "periph.io/x/conn/v3/gpio"
	"periph.io/x/host/v3/gpioioctl"
)

// line is all that this package needs of a periph line. It has no Read, no In
// and no Func, because each of them turns an output into an input (defect 1), and
// no Halt, because that releases nothing (defect 4).
type line interface {
	Out(periph.Level) error
	Close()
}

// lineLED is a light on a GPIO line.
type lineLED struct {
	line  line
	name  string // "GPIO17 on gpiochip0"
	spec  Spec
	notes notes
}

func openLine(b *board, spec Spec, notes notes) (LED, error) {
	found, name, err := b.find(spec)
	if err != nil {
		return nil, cannotOpen(spec, err)
	}
	led := &lineLED{line: found.line, name: name, spec: spec, notes: notes}
	// The first Set requests the line from the kernel. So a line that is taken is
	// noticed here and not at the first blink.
	if err := led.Set(false); err != nil {
		return nil, err
	}
	notes.keep(spec, "")
	return led, nil
}

func cannotOpen(spec Spec, err error) error {
	return fmt.Errorf("open the LED %q: %w", spec, err)
}

// Set drives the line. A line that failed is closed at once: gpioioctl believes
// after a failed Out that the line is its own, and would make the next ioctl on
// file descriptor 0 (defect 2). Closed, it is requested anew by the next Out.
func (l *lineLED) Set(on bool) error {
	if err := l.line.Out(periph.Level(on != l.spec.low)); err != nil {
		l.line.Close()
		return fmt.Errorf("switch the LED %s %s: %w", l.name, onOff(on), l.explain(err))
	}
	return nil
}

// Close puts the light out before it releases the line, since a Raspberry Pi
// kernel keeps a released line at its last level (defect 5). Other kernels turn the line
// into an input. Too little current flows then to light the LED, whatever its polarity.
func (l *lineLED) Close() error {
	err := l.Set(false)
	l.line.Close()
	if err == nil {
		l.notes.drop(l.spec)
	}
	return err
}

func (l *lineLED) String() string {
	if l.spec.low {
		return l.name + ", lit when low"
	}
	return l.name
}

// explain says what to do. periph turns the kernel's error numbers into plain
// strings, so that errors.Is finds nothing and the text has to be compared.
func (l *lineLED) explain(err error) error {
	if !strings.Contains(err.Error(), syscall.EBUSY.Error()) {
		return err
	}
	return fmt.Errorf("%w: the line belongs to another program or a kernel driver; `gpioinfo` shows to which: "+
		"stop that, remove its dtoverlay, or choose another line", ErrBusy)
}

func onOff(on bool) string {
	if on {
		return "on"
	}
	return "off"
}

// board has the lines that gpioioctl found on this machine, in a form that a test can write down. The lines of the SoC's
// own chip come first.
type board struct {
	dev   string // the directory of the chips' device files
	lines []chipLine
}

type chipLine struct {
	chip   string // "gpiochip0"
	label  string // of the chip, "pinctrl-bcm2835"
	number int    // on the chip
	name   string // "GPIO17", or none
	line   line
}

func boardOf(chips []*gpioioctl.GPIOChip, dev string) *board {
	b := &board{dev: dev}
	for _, c := range chips {
		for _, l := range c.Lines() {
			b.lines = append(b.lines, chipLine{c.Name(), c.Label(), l.Number(), l.Name(), l})
		}
	}
	return b
}

// find looks a line up. title is its name for people.
func (b *board) find(spec Spec) (found chipLine, title string, err error) {
	if spec.kind == lineByNumber {
		return b.byNumber(spec)
	}
	var names []string
	for _, l := range b.lines {
		if l.name == spec.name {
			return l, l.name + " on " + l.chip, nil
		}
		if l.name != "" && l.name != "-" && l.name != "_" {
			names = append(names, l.name)
		}
	}
	// Some lines are named after what the board uses them for: GPIO2 of a Pi
	// 3B is "SDA1". Its number on the SoC's chip is still 2.
	for _, l := range b.lines {
		if l.onRaspberrySoC() && spec.name == "GPIO"+strconv.Itoa(l.number) {
			return l, fmt.Sprintf("%s on %s (%q)", spec.name, l.chip, l.name), nil
		}
	}
	return found, "", noSuchLine("name", names)
}

func (b *board) byNumber(spec Spec) (found chipLine, title string, err error) {
	// Raspberry Pi OS links gpiochip4 to gpiochip0, because the RP1 was gpiochip4 with early kernels of the Pi 5.
	chip := filepath.Base(resolved(filepath.Join(b.dev, spec.chipName())))
	var numbers []string
	for _, l := range b.lines {
		if l.chip != chip || l.number != spec.offset {
			numbers = append(numbers, fmt.Sprintf("%s/%d", l.chip, l.number))
			continue
		}
		title = fmt.Sprintf("line %d on %s", l.number, chip)
		if l.name != "" {
			title += fmt.Sprintf(" (%q)", l.name)
		}
		return l, title, nil
	}
	return found, "", noSuchLine("number", numbers)
}

func noSuchLine(what string, have []string) error {
	return fmt.Errorf("%w: no chip has a line of this %s; there are %s; a chip that came after topdog started is seen after a restart",
		ErrNotFound, what, listed(have))
}

// onRaspberrySoC reports whether line N of its chip is what everybody calls GPIO
// N: bcm2835 (Pi 0 to 3), bcm2711 (Pi 4), rp1 (Pi 5).
func (l chipLine) onRaspberrySoC() bool {
	for _, label := range []string{"pinctrl-bcm2835", "pinctrl-bcm2711", "pinctrl-rp1"} {
		if strings.HasPrefix(l.label, label) {
			return true
		}
	}
	return false
}

// listed writes a few of the names: enough to see their pattern, and not so many that nobody reads the error.
func listed(names []string) string {
	const few = 8
	switch {
	case len(names) == 0:
		return "none with a name"
	case len(names) > few:
		return fmt.Sprintf("%s and %d more", strings.Join(names[:few], ", "), len(names)-few)
	}
	return strings.Join(names, ", ")
}

// loaded is the result of looking for chips. It is a variable of the package, as in
// periph, which looks once per process.
var loaded struct {
	sync.Mutex
	done  bool
	board *board
	err   error
}

// Init looks for the GPIO chips if the Spec needs them. Call it early in main,
// before the first socket is opened and the first goroutine started: where a
// chip has two names in /dev, looking for chips closes one file descriptor
// twice, and a socket that gets that number in between would die (defect 3).
//
// Init reports no error: if it found nothing, Open looks again and says what is
// wrong. On a board whose chips come late there is therefore one moment, of about a
// microsecond, in which a new socket could be closed.
func Init(spec Spec) {
	if spec.isLine() {
		_, _ = loadBoard() // Open returns the error.
	}
}

func loadBoard() (*board, error) {
	loaded.Lock()
	defer loaded.Unlock()
	if loaded.done {
		return loaded.board, loaded.err
	}
	// Whatever can fail for a passing reason is checked before periph looks: periph
	// looks only once, and logs what it does not like.
	if err := usable("/dev"); err != nil {
		return nil, err
	}
	loaded.done = true
	_, err := driverreg.Init()
	switch {
	case len(gpioioctl.Chips) == 0:
		loaded.err = fmt.Errorf("%w: none of the chips in /dev/gpiochip* could be read; the log says why, "+
			"and topdog has to be restarted to try again", ErrNoGPIO)
	case err != nil:
		loaded.err = fmt.Errorf("look for GPIO chips: %w", err)
	default:
		loaded.board, loaded.err = boardOf(gpioioctl.Chips, "/dev"), keepDescriptor0()
	}
	return loaded.board, loaded.err
}

// keepDescriptor0 opens /dev/null as file descriptor 0 if that is closed (defect 3). A line must never get it: gpioioctl
// takes 0 for "none". Nothing that uses a line reads its standard input.
func keepDescriptor0() error {
	if _, err := unix.FcntlInt(0, unix.F_GETFD, 0); !errors.Is(err, unix.EBADF) {
		return nil
	}
	_, err := unix.Open("/dev/null", unix.O_RDWR|unix.O_CLOEXEC, 0) // the lowest that is free
	return err
}

// usable returns an error unless periph would find chips and be allowed to open all of
// them. One chip is not enough: at boot udev sets their groups one by one, and periph looks only once.
func usable(dev string) error {
	paths, _ := filepath.Glob(filepath.Join(dev, "gpiochip*")) // fails for wrong patterns only
	if len(paths) == 0 {
		return fmt.Errorf(`%w: this machine has no %s/gpiochip*; use the board's own LED ("ACT"), or none`, ErrNoGPIO, dev)
	}
	for _, path := range paths {
		// An os.File would bring a finalizer and the poller along.
		fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err != nil {
			return refused(path, err)
		}
		_ = unix.Close(fd) // Nothing was written.
	}
	return nil
}

// refused explains why a chip's device file could not be opened.
func refused(path string, err error) error {
	cause := &fs.PathError{Op: "open", Path: path, Err: err}
	switch {
	case errors.Is(err, unix.EACCES): // our udev rule and Raspberry Pi OS both give the chips to this group
		return fmt.Errorf("%w; add the user to the group gpio: `sudo usermod -aG gpio USER`, or SupplementaryGroups=gpio in the unit file", cause)
	case errors.Is(err, unix.EPERM):
		return fmt.Errorf("%w; the service needs DeviceAllow=char-gpiochip rw", cause)
	}
	return cause
}
