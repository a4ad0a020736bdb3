package gpio

import (
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

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
	line   line
	name   string // "GPIO17 on gpiochip0"
	holder string // who owned the line when the chips were read, or ""
	spec   Spec
	notes  notes
}

func openLine(b *board, spec Spec, notes notes) (LED, error) {
	found, name, err := b.find(spec)
	if err != nil {
		return nil, cannotOpen(spec, err)
	}
	led := &lineLED{line: found.line, name: name, holder: found.holder, spec: spec, notes: notes}
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
// kernel keeps a released line at its last level (defect 5). Other kernels make it
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

// board is a copy of what gpioioctl found on this machine, in a form that a test can write down.
type board struct {
	chips []chip
	// alias says which chip a second name in /dev stands for. Raspberry Pi OS
	// links gpiochip4 to gpiochip0, because it was gpiochip4 on early Pi 5 kernels.
	alias map[string]string
}

type chip struct {
	name  string // "gpiochip0"
	label string // "pinctrl-bcm2835"
	lines []lineInfo
}

type lineInfo struct {
	name   string
	holder string
	line   line
}

func copyOf(chips []*gpioioctl.GPIOChip, dev string) *board {
	b := &board{alias: map[string]string{}}
	for _, c := range chips {
		ours := chip{name: c.Name(), label: c.Label()}
		for _, l := range c.Lines() {
			ours.lines = append(ours.lines, lineInfo{name: l.Name(), holder: l.Consumer(), line: l})
		}
		b.chips = append(b.chips, ours)
	}
	for _, path := range chipFiles(dev) {
		if real, err := filepath.EvalSymlinks(path); err == nil {
			b.alias[filepath.Base(path)] = filepath.Base(real)
		}
	}
	return b
}

// find looks a line up, by name on all chips in their order (gpioioctl puts
// the SoC's own first), or by number. title is its name for people.
func (b *board) find(spec Spec) (found lineInfo, title string, err error) {
	if spec.kind == lineByNumber {
		return b.byNumber(spec)
	}
	for _, c := range b.chips {
		for _, l := range c.lines {
			if l.name == spec.name {
				return l, l.name + " on " + c.name, nil
			}
		}
	}
	// Some lines are named after what the board uses them for: GPIO2 of a Pi
	// 3B is "SDA1". Its number on the SoC's chip is still 2.
	for _, c := range b.chips {
		if n, ok := socNumber(spec.name); ok && c.isRaspberrySoC() && n < len(c.lines) {
			l := c.lines[n]
			return l, fmt.Sprintf("%s on %s (%q)", spec.name, c.name, l.name), nil
		}
	}
	return found, "", fmt.Errorf("%w: no chip has a line of this name; there are %s; a chip that came after topdog started is seen after a restart",
		ErrNotFound, listed(b.lineNames()))
}

func (b *board) byNumber(spec Spec) (found lineInfo, title string, err error) {
	name := spec.chipName()
	if real, ok := b.alias[name]; ok {
		name = real
	}
	var names []string
	for _, c := range b.chips {
		names = append(names, c.name)
		if c.name != name {
			continue
		}
		if spec.offset >= len(c.lines) {
			return found, "", fmt.Errorf("%w: %s has %d lines, numbered from 0", ErrNotFound, name, len(c.lines))
		}
		l := c.lines[spec.offset]
		title = fmt.Sprintf("line %d on %s", spec.offset, name)
		if l.name != "" {
			title += fmt.Sprintf(" (%q)", l.name)
		}
		return l, title, nil
	}
	return found, "", fmt.Errorf("%w: no such chip; there are %s; a chip that came after topdog started is seen after a restart",
		ErrNotFound, listed(names))
}

// isRaspberrySoC reports whether line N of the chip is what everybody calls GPIO
// N: bcm2835 (Pi 0 to 3), bcm2711 (Pi 4), rp1 (Pi 5).
func (c chip) isRaspberrySoC() bool {
	for _, label := range []string{"pinctrl-bcm2835", "pinctrl-bcm2711", "pinctrl-rp1"} {
		if strings.HasPrefix(c.label, label) {
			return true
		}
	}
	return false
}

// socNumber returns N of "GPIO<N>", if it is written the usual way.
func socNumber(name string) (int, bool) {
	digits, ok := strings.CutPrefix(name, "GPIO")
	n, err := strconv.Atoi(digits)
	return n, ok && err == nil && strconv.Itoa(n) == digits
}

func (b *board) lineNames() []string {
	var names []string
	for _, c := range b.chips {
		for _, l := range c.lines {
			if l.name != "" && l.name != "-" && l.name != "_" {
				names = append(names, l.name)
			}
		}
	}
	return names
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
