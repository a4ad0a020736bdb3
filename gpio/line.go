package gpio

import (
	"fmt"
	"strings"
	"syscall"

	periph "periph.io/x/conn/v3/gpio"
)

// line is all that this package wants of a periph line. It has no Read, no In
// and no Func, because each of them turns an output into an input (trap 1), and
// no Halt, because it releases nothing (trap 4).
type line interface {
	Out(periph.Level) error
	Close()
}

// lineLED is a light on a GPIO line.
type lineLED struct {
	line   line
	name   string // "GPIO17 on gpiochip0"
	holder string // who owned the line when the chips were read, or ""
	low    bool   // the LED is lit while the line is low
	spec   Spec
	notes  notes
}

func openLine(b *board, spec Spec, notes notes) (LED, error) {
	found, err := b.find(spec)
	if err != nil {
		return nil, cannotOpen(spec, err)
	}
	led := &lineLED{line: found.line, name: found.title, holder: found.holder, low: spec.low, spec: spec, notes: notes}
	// The first Set requests the line from the kernel, so that one that is
	// taken shows here and not at the first blink.
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
// file descriptor 0 (trap 2). Closed, it is requested anew by the next Out.
func (l *lineLED) Set(on bool) error {
	if err := l.line.Out(periph.Level(on != l.low)); err != nil {
		l.line.Close()
		return fmt.Errorf("switch the LED %s %s: %w", l.name, onOff(on), l.explain(err))
	}
	return nil
}

// Close puts the light out before it releases the line, since a Raspberry Pi
// kernel keeps a released line at its last level (trap 5). Other kernels make it
// an input, which is dark with either polarity: too little current flows.
func (l *lineLED) Close() error {
	err := l.Set(false)
	l.line.Close()
	if err == nil {
		l.notes.drop(l.spec)
	}
	return err
}

func (l *lineLED) String() string {
	if l.low {
		return l.name + ", lit when low"
	}
	return l.name
}

// explain adds what to do. periph turns the kernel's error numbers into plain
// strings, so that errors.Is finds nothing and the text has to be compared.
func (l *lineLED) explain(err error) error {
	if !strings.Contains(err.Error(), syscall.EBUSY.Error()) {
		return err
	}
	holder := "another program or a kernel driver"
	if l.holder != "" {
		holder = fmt.Sprintf("%q (when topdog started)", l.holder)
	}
	return fmt.Errorf("%w: the line belongs to %s; `gpioinfo` shows to whom: stop that, remove its dtoverlay, or choose another line",
		ErrBusy, holder)
}

func onOff(on bool) string {
	if on {
		return "on"
	}
	return "off"
}
