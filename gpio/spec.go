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
	const enough = 80 // nobody reads on after that
	text := strconv.Quote(e.text)
	if len(e.text) > enough {
		text = strconv.Quote(e.text[:enough]) + "..."
	}
	if e.Hint == "" {
		return fmt.Sprintf("LED %s: %s", text, e.Problem)
	}
	return fmt.Sprintf("LED %s: %s: %s", text, e.Problem, e.Hint)
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
	const hint = `write for example "gpiochip0/17"`
	chipText, lineText, ok := strings.Cut(text, "/")
	if !ok {
		return 0, 0, &SpecError{Problem: "which line of the chip?", Hint: hint}
	}
	c, notNumber := strconv.ParseUint(chipText, 10, 15)
	if notNumber != nil {
		return 0, 0, &SpecError{Problem: fmt.Sprintf("%q is not the number of a chip", chipText), Hint: hint}
	}
	l, notNumber := strconv.ParseUint(lineText, 10, 15)
	if notNumber != nil {
		return 0, 0, &SpecError{Problem: fmt.Sprintf("%q is not the number of a line", lineText), Hint: hint}
	}
	return int(c), int(l), nil
}

// checkNotALine refuses lines that are written wrongly: "17", "gpio17" and "GPIO 17" must
// not become LEDs that nobody has.
func checkNotALine(text string, low bool) *SpecError {
	if _, err := strconv.Atoi(text); err == nil {
		return &SpecError{Problem: "a number alone says nothing", Hint: fmt.Sprintf(`write "GPIO%s" or "gpiochip0/%s"`, text, text)}
	}
	if len(text) >= 4 && strings.EqualFold(text[:4], "gpio") {
		return &SpecError{Problem: "this is not the name of a line", Hint: `a line is written "GPIO17" or "gpiochip0/17"`}
	}
	if low {
		return &SpecError{
			Problem: `":low" is for lines, as in "GPIO17:low"; of the board's own LEDs Linux knows what lights them`,
			Hint:    `one that is really called so is written "led:NAME"`,
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
// The text what begins the error.
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
