package gpio

import (
	"fmt"
	"strconv"
	"strings"
)

// Spec says which light to use. The zero value is "no LED". Two Specs that
// name the same light in the same way are equal under ==.
type Spec struct {
	kind   kind
	name   string // of the line or of the LED
	chip   int    // N of gpiochipN, for byNumber
	offset int    // the line's number on its chip, for byNumber
	low    bool   // a line that lights its LED when it is low
}

type kind uint8

const (
	noLED kind = iota
	lineByName
	lineByNumber
	sysfsLED
)

// The kernel's own limits: GPIO_MAX_NAME_SIZE (uapi/linux/gpio.h) and
// LED_MAX_NAME_SIZE (linux/leds.h), each with one byte for the final NUL.
const (
	maxLineName = 31
	maxLEDName  = 63
)

const specForms = `"none", "GPIO17", "gpiochip0/17", "line:NAME" (each with ":low" if low lights it) or, for the board's own LED, "ACT" or "led:NAME"`

// lowSuffix marks an LED between the supply and a line: current flows, and the
// LED is lit, while the line is low. The board's own LEDs need no such mark, the
// device tree has it.
const lowSuffix = ":low"

// ParseSpec reads the text form that the package comment lists. What a text
// means depends on the text alone, never on the machine it is read on, so that
// a config can be checked away from the board.
func ParseSpec(text string) (Spec, error) {
	whole := text
	fail := func(format string, args ...any) (Spec, error) {
		return Spec{}, fmt.Errorf("LED %s: %s", quoted(whole), fmt.Sprintf(format, args...))
	}
	if text == "" || text == "none" {
		return Spec{}, nil
	}
	if name, ok := strings.CutPrefix(text, "led:"); ok {
		if err := checkName(name, maxLEDName); err != nil {
			return fail("the LED's name %v", err)
		}
		return Spec{kind: sysfsLED, name: name}, nil
	}
	text, low := strings.CutSuffix(text, lowSuffix)
	if name, ok := strings.CutPrefix(text, "line:"); ok {
		if err := checkName(name, maxLineName); err != nil {
			return fail("the line's name %v", err)
		}
		return Spec{kind: lineByName, name: name, low: low}, nil
	}
	if number, ok := strings.CutPrefix(text, "gpiochip"); ok {
		chip, line, ok := strings.Cut(number, "/")
		if !ok {
			return fail(`which line of the chip? Write "gpiochip0/17"`)
		}
		c, err := strconv.ParseUint(chip, 10, 15)
		if err != nil {
			return fail(`%q is not the number of a chip, as in "gpiochip0/17"`, chip)
		}
		l, err := strconv.ParseUint(line, 10, 15)
		if err != nil {
			return fail(`%q is not the number of a line, as in "gpiochip0/17"`, line)
		}
		return Spec{kind: lineByNumber, chip: int(c), offset: int(l), low: low}, nil
	}
	if isGPIOName(text) {
		if err := checkName(text, maxLineName); err != nil {
			return fail("the line's name %v", err)
		}
		return Spec{kind: lineByName, name: text, low: low}, nil
	}

	// What is left is the name of an LED, unless it is a line written
	// wrongly: "17", "gpio17" and "GPIO 17" must not become LEDs that nobody has.
	if _, err := strconv.Atoi(text); err == nil {
		return fail(`a number alone says nothing; write "GPIO%s" or "gpiochip0/%s"`, text, text)
	}
	if len(text) >= 4 && strings.EqualFold(text[:4], "gpio") {
		return fail(`a line is written "GPIO17" or "gpiochip0/17"`)
	}
	if low {
		return fail(`":low" is for lines, as in "GPIO17:low"; of the board's own LEDs Linux knows what lights them (one that is really called so is written "led:NAME")`)
	}
	if err := checkName(text, maxLEDName); err != nil {
		return fail("the name %v; an LED is one of %s", err, specForms)
	}
	return Spec{kind: sysfsLED, name: text}, nil
}

// isGPIOName tells whether the text is GPIO and a number, the usual name of a
// Raspberry Pi's lines.
func isGPIOName(text string) bool {
	digits, ok := strings.CutPrefix(text, "GPIO")
	return ok && digits != "" && strings.Trim(digits, "0123456789") == ""
}

// checkName refuses what cannot be a name. The slash and the dots matter most:
// an LED's name becomes part of a path, and it must not lead out of
// /sys/class/leds.
func checkName(name string, limit int) error {
	if name == "" {
		return fmt.Errorf("is empty")
	}
	if len(name) > limit {
		return fmt.Errorf("has %d characters, the kernel allows %d", len(name), limit)
	}
	if name == "." || name == ".." {
		return fmt.Errorf("is not a name")
	}
	for _, r := range name {
		if r <= ' ' || r > '~' || r == '/' {
			return fmt.Errorf("contains %q", r)
		}
	}
	return nil
}

// quoted quotes a text for an error, and cuts it where nobody would read on.
func quoted(text string) string {
	const enough = 80
	if len(text) > enough {
		return strconv.Quote(text[:enough]) + "..."
	}
	return strconv.Quote(text)
}

// IsLine tells whether the light is a GPIO line, so that [Init] has work to do.
func (s Spec) IsLine() bool { return s.kind == lineByName || s.kind == lineByNumber }

// String gives the Spec in its shortest unambiguous form, which ParseSpec reads
// back as the same Spec.
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

// UnmarshalText reads what ParseSpec reads. On an error the Spec is unchanged.
func (s *Spec) UnmarshalText(text []byte) error {
	parsed, err := ParseSpec(string(text))
	if err != nil {
		return err
	}
	*s = parsed
	return nil
}

// MarshalText writes what String gives. It never fails.
func (s Spec) MarshalText() ([]byte, error) { return []byte(s.String()), nil }
