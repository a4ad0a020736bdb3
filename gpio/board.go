package gpio

import (
	"fmt"
	"path/filepath"
	"strconv"
	"strings"

	"periph.io/x/host/v3/gpioioctl"
)

// board is what is known of the machine's GPIO: a copy of what gpioioctl found,
// in a form that a test can write down.
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

// foundLine is a line with the name under which people shall know it.
type foundLine struct {
	lineInfo
	title string
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

// find looks the line up, by name on all chips in their order (gpioioctl puts
// the SoC's own first), or by number.
func (b *board) find(spec Spec) (foundLine, error) {
	if spec.kind == lineByNumber {
		return b.byNumber(spec)
	}
	for _, c := range b.chips {
		for _, l := range c.lines {
			if l.name == spec.name {
				return foundLine{l, l.name + " on " + c.name}, nil
			}
		}
	}
	// Some lines are named after what the board uses them for: GPIO2 of a Pi
	// 3B is "SDA1". Its number on the SoC's chip is still 2.
	for _, c := range b.chips {
		if n, ok := socNumber(spec.name); ok && c.isRaspberrySoC() && n < len(c.lines) {
			l := c.lines[n]
			return foundLine{l, fmt.Sprintf("%s on %s (%q)", spec.name, c.name, l.name)}, nil
		}
	}
	return foundLine{}, fmt.Errorf("%w: no chip has a line of this name; there are %s; a chip that came after topdog started is seen after a restart",
		ErrNotFound, listed(b.lineNames()))
}

func (b *board) byNumber(spec Spec) (foundLine, error) {
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
			return foundLine{}, fmt.Errorf("%w: %s has %d lines, numbered from 0", ErrNotFound, name, len(c.lines))
		}
		l := c.lines[spec.offset]
		title := fmt.Sprintf("line %d on %s", spec.offset, name)
		if l.name != "" {
			title += fmt.Sprintf(" (%q)", l.name)
		}
		return foundLine{l, title}, nil
	}
	return foundLine{}, fmt.Errorf("%w: no such chip; there are %s; a chip that came after topdog started is seen after a restart",
		ErrNotFound, listed(names))
}

// isRaspberrySoC tells whether line N of the chip is what everybody calls GPIO
// N: bcm2835 (Pi 0 to 3), bcm2711 (Pi 4), rp1 (Pi 5).
func (c chip) isRaspberrySoC() bool {
	return strings.HasPrefix(c.label, "pinctrl-bcm2835") || strings.HasPrefix(c.label, "pinctrl-bcm2711") || strings.HasPrefix(c.label, "pinctrl-rp1")
}

// socNumber gives N of "GPIO<N>", if it is written the usual way.
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

// listed names a few of what there is: enough to see the pattern of the names,
// not so many that the error is no longer read.
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
