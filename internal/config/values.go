package config

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/sirupsen/logrus"

	"topdog/election"
	"topdog/gpio"
	"topdog/wire"
)

// logLevels are the levels of logrus, by the names that journals and people use. Fatal and panic are
// not among them, because they would hide errors.
var logLevels = []string{"error", "warn", "info", "debug", "trace"}

func logLevelNamed(name string) (level logrus.Level, known bool) {
	i := slices.Index(logLevels, name)
	return logrus.ErrorLevel + logrus.Level(max(i, 0)), i >= 0
}

func parseLED(text string) (gpio.Spec, error) {
	spec, err := gpio.ParseSpec(text)
	if bad, ok := errors.AsType[*gpio.SpecError](err); ok {
		return spec, refuse(bad.Hint, "%s: %s", quoted(text), bad.Problem)
	}
	return spec, err
}

func parsePriority(text string) (uint8, error) {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 || n > election.MaxPriority {
		hint := "write a number from 1 to %d, more for a board that should lead, or 0 for one that never should"
		return 0, refuse(fmt.Sprintf(hint, election.MaxPriority), "%s is not from 0 to %d", text, election.MaxPriority)
	}
	return uint8(n), nil
}

// auto stands for the duration that follows from the heartbeat.
const auto = "auto"

// atLeastSomething leaves the bounds of the patience to validatePatience, since the lower one depends on the heartbeat.
func atLeastSomething(d time.Duration) error {
	if d <= 0 { // 0 stands for auto
		return errors.New("is not more than nothing")
	}
	return nil
}

// between returns a check of durations from least to most.
func between(least, most time.Duration) func(time.Duration) error {
	return func(d time.Duration) error {
		switch {
		case d < least:
			return errors.New("is less than " + short(least))
		case d > most:
			return errors.New("is more than " + short(most))
		}
		return nil
	}
}

// duration returns a function that reads the duration of key. If such a small mistake as a space can be mended, it suggests
// that, and otherwise it gives the hint.
func duration(key, hint string, check func(time.Duration) error) func(string) (time.Duration, error) {
	hint = "write a duration " + hint
	return func(text string) (time.Duration, error) {
		d, err := time.ParseDuration(text)
		squeezed, _ := time.ParseDuration(strings.ReplaceAll(strings.ToLower(text), " ", ""))
		if near := squeezed.Round(time.Millisecond); check(near) == nil && near != 0 {
			hint = "write " + key + " = " + Quote(short(near))
		}
		_, noNumber := strconv.ParseFloat(text, 64)
		switch {
		case noNumber == nil:
			return 0, refuse(hint, "%s has no unit", quoted(text))
		case err != nil:
			return 0, refuse(hint, "%s is not a duration", quoted(text))
		}
		if err := check(d); err != nil {
			return 0, refuse(hint, "%s %v", text, err)
		}
		return d, nil
	}
}

// orAuto has a duration read by parse, or auto, which is 0.
func orAuto(parse func(string) (time.Duration, error)) func(string) (time.Duration, error) {
	return func(text string) (time.Duration, error) {
		if text == auto {
			return 0, nil
		}
		return parse(text)
	}
}

// fromTo is the hint for durations from least to most, of which example is one.
func fromTo(key string, least, most, example time.Duration) string {
	return fmt.Sprintf("from %q to %q, for example %s = %q", short(least), short(most), key, short(example))
}

// short writes a duration without trailing units that are zero: "10m", not "10m0s".
func short(d time.Duration) string {
	text := strings.TrimSuffix(d.String(), "m0s")
	if text != d.String() {
		text += "m"
	}
	if hours, whole := strings.CutSuffix(text, "h0m"); whole {
		return hours + "h"
	}
	return text
}

// checkGroup accepts only ASCII: the name of the group is hashed into every packet, and two
// boards must not differ in how they encode an umlaut.
func checkGroup(text string) error {
	const hint = `write 1 to 32 letters, digits, signs or inner spaces (ASCII), for example group = "kitchen"`
	for _, r := range text {
		if r < ' ' || r > '~' {
			return refuse(hint, "%s contains %q, which is not printable ASCII", quoted(text), r)
		}
	}
	return checkLabel(text, MaxGroupBytes, hint)
}

func checkName(text string) error {
	return checkPrintable(text, wire.MaxName, `write at most 32 bytes of printable text, for example name = "shelf-3"`)
}

// checkPrintable is for texts that people read.
func checkPrintable(text string, most int, hint string) error {
	for _, r := range text {
		if r == utf8.RuneError || !unicode.IsPrint(r) {
			return refuse(hint, "%s contains %q, which cannot be printed", quoted(text), r)
		}
	}
	return checkLabel(text, most, hint)
}

func checkLabel(text string, most int, hint string) error {
	switch {
	case text == "":
		return refuse(hint, "the text is empty")
	case len(text) > most:
		return refuse(hint, "%s is %d bytes long, more than %d", quoted(text), len(text), most)
	case strings.TrimSpace(text) != text:
		return refuse(hint, "%s begins or ends with a space, which nobody sees", quoted(text))
	}
	return nil
}

// checkInterface follows the kernel's dev_valid_name: 1 to 15 bytes
// (IFNAMSIZ-1), no slash, no colon, no space, not "." or "..".
func checkInterface(text string) error {
	const hint = `write the name that "ip link" shows, for example interface = "eth0", ` +
		`or delete the line: then it is the one whose subnet contains the address`
	switch {
	case text == "":
		return refuse(hint, "the text is empty")
	case text == "lo":
		return refuse("write the interface on which the boards are; to try topdog on one machine run `topdog demo`",
			"no other board can be reached by %s", quoted(text))
	case len(text) > 15:
		return refuse(hint, "%s is %d bytes long; the kernel allows interface names of at most 15", quoted(text), len(text))
	case text == ".", text == "..", strings.ContainsFunc(text, func(r rune) bool {
		return r == '/' || r == ':' || unicode.IsSpace(r) || !unicode.IsPrint(r)
	}):
		return refuse(hint, "%s cannot be the name of an interface", quoted(text))
	}
	return nil
}

// checkPath refuses a path that cannot be what was meant.
func checkPath(text, hint string) error {
	switch {
	case text == "":
		return refuse(hint, "the path is empty")
	case strings.HasPrefix(text, "~"):
		return refuse(hint, `%s: "~" means nothing outside a shell`, quoted(text))
	case strings.ContainsFunc(text, unicode.IsControl):
		return refuse(hint, "%s contains a control character", quoted(text))
	case len(text) > 4095: // PATH_MAX less the final NUL
		return refuse(hint, "the path is %d bytes long, more than the 4095 that the kernel allows", len(text))
	}
	return nil
}

// checkProgram checks the value of key, of which example is one. topdog starts the program itself, without a
// shell that could find another meaning in its name. So a text that only a shell could take apart is refused.
func checkProgram(key, text, example string) error {
	hint := "write the program with its whole path, for example " + key + " = " + example
	if err := checkPath(text, hint); err != nil {
		return err
	}
	words := strings.Fields(text)
	switch {
	case !strings.HasPrefix(text, "/"):
		return refuse(hint, "%s is not an absolute path", quoted(text))
	case len(words) > 1:
		return refuse("write "+key+" = "+QuoteAll(words),
			"%s contains a space, and there is no shell that would split it", quoted(text))
	case words[0] != text:
		return refuse(hint, "%s begins or ends with a space, which nobody sees", quoted(text))
	}
	return nil
}

// maxSocketPath is the size of sun_path (unix(7)), 108 bytes, less the final NUL and the ".public" that the name
// of the public socket has in addition.
const maxSocketPath = 107 - len(".public")

func checkSocket(text string) error {
	const hint = `write an absolute path, for example socket = "/run/topdog/topdog.sock"`
	if err := checkPath(text, hint); err != nil {
		return err
	}
	switch {
	case !strings.HasPrefix(text, "/"):
		return refuse(hint, "%s is not an absolute path", quoted(text))
	case len(text) > maxSocketPath:
		return refuse(hint, "the path is %d bytes long; unix sockets and the name of the public one beside it allow %d",
			len(text), maxSocketPath)
	}
	return nil
}

// parseKeyFile returns NoKey or the absolute path of the key.
func (c *Config) parseKeyFile(text string) (string, error) {
	const hint = `write the path of the key file, for example key_file = "/etc/topdog/key", ` +
		`or key_file = "none" to run without authentication`
	if text == NoKey {
		return NoKey, nil
	}
	if _, bad := decodeHexKey(text); bad == nil {
		return "", refuse("put the key into a file that only root can read, and its path here; "+
			"then make a new key: this one has been in a file that others may read", "this is a key, not the path of one")
	}
	return besides(c.file, text), checkPath(text, hint)
}

// oneOf refuses a text that is not one of these words.
func oneOf(text string, words []string) error {
	if slices.Contains(words, text) {
		return nil
	}
	hint := ""
	if near := nearest(text, words); near != "" {
		hint = "did you mean " + Quote(near) + "?"
	}
	return refuse(hint, "%s is not one of %s", quoted(text), strings.Trim(QuoteAll(words), "[]"))
}
