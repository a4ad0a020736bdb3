package gpio

import (
	"errors"
	"strings"
	"testing"

	"topdog/internal/lab/assert"
)

func TestParseSpec(t *testing.T) {
	for _, tc := range []struct {
		text string
		want Spec
		back string // what String gives
	}{
		{"", Spec{}, "none"},
		{"none", Spec{}, "none"},
		{"GPIO17", Spec{kind: lineByName, name: "GPIO17"}, "GPIO17"},
		{"line:GPIO17", Spec{kind: lineByName, name: "GPIO17"}, "GPIO17"},
		{"line:SDA1", Spec{kind: lineByName, name: "SDA1"}, "line:SDA1"},
		{"gpiochip0/17", Spec{kind: lineByNumber, offset: 17}, "gpiochip0/17"},
		{"gpiochip04/07", Spec{kind: lineByNumber, chip: 4, offset: 7}, "gpiochip4/7"},
		{"GPIO17:low", Spec{kind: lineByName, name: "GPIO17", low: true}, "GPIO17:low"},
		{"gpiochip0/17:low", Spec{kind: lineByNumber, offset: 17, low: true}, "gpiochip0/17:low"},
		{"line:SDA1:low", Spec{kind: lineByName, name: "SDA1", low: true}, "line:SDA1:low"},
		{"line:GPIO17:low", Spec{kind: lineByName, name: "GPIO17", low: true}, "GPIO17:low"},
		{"led:x:low", Spec{kind: sysfsLED, name: "x:low"}, "led:x:low"},
		{"ACT", Default, "led:ACT"},
		{"led:ACT", Spec{kind: sysfsLED, name: "ACT"}, "led:ACT"},
		{"green:status", Spec{kind: sysfsLED, name: "green:status"}, "led:green:status"},
		{"led:GPIO17", Spec{kind: sysfsLED, name: "GPIO17"}, "led:GPIO17"},
	} {
		t.Run(tc.text, func(t *testing.T) {
			got, err := ParseSpec(tc.text)
			if err != nil || got != tc.want {
				t.Fatalf("ParseSpec = %+v, %v; want %+v", got, err, tc.want)
			}
			assert.Is(t, tc.back, got.String(), "")
		})
	}
}

func TestParseSpecErrors(t *testing.T) {
	for _, tc := range []struct{ text, want string }{
		{"17", `a line is written "GPIO17" or "gpiochip0/17"`},
		{"gpio17", `a line is written "GPIO17"`},
		{"GPIO 17", `a line is written "GPIO17"`},
		{"GPIO", `a line is written "GPIO17"`},
		{"gpiochip0", `not the numbers of a chip and of one of its lines: a line is written "GPIO17" or "gpiochip0/17"`},
		{"gpiochipX/1", "not the numbers"},
		{"gpiochip/1", "not the numbers"},
		{"gpiochip0/-1", "not the numbers"},
		{"gpiochip0/99999999999", "not the numbers"},
		{"ACT:low", `":low" is for lines, as in "GPIO17:low"`},
		{":low", `":low" is for lines`},
		{"none:low", `":low" is for lines`},
		{"GPIO17:high", `a line is written "GPIO17"`},
		{"GPIO17:low:low", `a line is written "GPIO17"`},
		{"17:low", `a line is written "GPIO17"`},
		{"line:", "the line's name is empty"},
		{"led:", "the LED's name is empty"},
		{"led:..", "is not a name"},
		{"led:../../etc/passwd", `contains '/'`},
		{"a b", `contains ' '`},
		{"ACT\n", `contains '\n'`},
		{"ÄCT", `contains 'Ä'`},
		{"GPIO" + strings.Repeat("1", 40), "the kernel allows 31"},
		{strings.Repeat("x", 500), "the kernel allows 63"},
	} {
		t.Run(tc.text, func(t *testing.T) {
			spec, err := ParseSpec(tc.text)
			assert.ErrorContains(t, err, tc.want, "")
			if err != nil && len(err.Error()) > 300 {
				t.Errorf("nobody reads an error of %d bytes", len(err.Error()))
			}
			if bad, ok := errors.AsType[*SpecError](err); !ok || bad.text != tc.text || bad.Problem == "" {
				t.Errorf("error %#v, want a *SpecError about the text", err)
			}
			if spec != (Spec{}) {
				t.Errorf("an error and %+v", spec)
			}
		})
	}
}

// FuzzParseSpec: whatever is read survives the way to text and back, and no
// LED's name leads out of its directory.
func FuzzParseSpec(f *testing.F) {
	for _, seed := range []string{"", "none", "GPIO17", "gpiochip0/17", "ACT", "led:ACT", "line:SDA1", "GPIO17:low", "line:x:low", "led:led:x", "..", "17"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s, err := ParseSpec(text)
		if err != nil {
			if s != (Spec{}) {
				t.Fatalf("an error and %+v", s)
			}
			return
		}
		again, err := ParseSpec(s.String())
		if err != nil || again != s {
			t.Fatalf("%q -> %+v -> %q -> %+v, %v", text, s, s, again, err)
		}
		if s.kind == sysfsLED && (strings.Contains(s.name, "/") || strings.Trim(s.name, ".") == "" && len(s.name) < 3) {
			t.Fatalf("%q is a way out of the directory", s.name)
		}
	})
}
