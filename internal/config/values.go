package config

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/sirupsen/logrus"

	"topdog/election"
	"topdog/gpio"
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
	n, err := wholeNumber(text, 0, election.MaxPriority)
	return uint8(n), err
}

// wholeNumber reads a number from least to most.
func wholeNumber(text string, least, most int) (int, error) {
	n, err := strconv.Atoi(text)
	if err != nil || n < least || n > most {
		return 0, fmt.Errorf("%s is not from %d to %d", text, least, most)
	}
	return n, nil
}

// auto stands for the duration that follows from the heartbeat, and off for no watch.
const (
	auto = "auto"
	off  = "off"
)

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

// duration returns a function that reads the duration of key. For a small mistake, such as a space, it suggests what was
// probably meant.
func duration(key string, check func(time.Duration) error) func(string) (time.Duration, error) {
	return func(text string) (time.Duration, error) {
		hint := ""
		squeezed, _ := time.ParseDuration(strings.ReplaceAll(strings.ToLower(text), " ", ""))
		if near := squeezed.Round(time.Millisecond); check(near) == nil && near != 0 {
			hint = "write " + key + " = " + Quote(short(near))
		}
		d, err := time.ParseDuration(text)
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

// orAuto returns a function that reads "auto" as 0, and everything else by parse.
func orAuto(parse func(string) (time.Duration, error)) func(string) (time.Duration, error) {
	return orWord(auto, 0, parse)
}

// orWord returns a function that reads a word as what it stands for, and everything else by parse.
func orWord(word string, means time.Duration, parse func(string) (time.Duration, error)) func(string) (time.Duration, error) {
	return func(text string) (time.Duration, error) {
		if text == word {
			return means, nil
		}
		return parse(text)
	}
}

// fromTo says which durations a key takes.
func fromTo(least, most time.Duration) string {
	return fmt.Sprintf("a duration from %q to %q", short(least), short(most))
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
func CheckGroup(text string) error {
	for _, r := range text {
		if r < ' ' || r > '~' {
			return fmt.Errorf("%s contains %q, which is not printable ASCII", quoted(text), r)
		}
	}
	return atMost(MaxGroupBytes)(text)
}

// printableText returns a check of texts that people read.
func printableText(most int) func(string) error {
	return func(text string) error {
		for _, r := range text {
			if r == utf8.RuneError || !unicode.IsPrint(r) {
				return fmt.Errorf("%s contains %q, which cannot be printed", quoted(text), r)
			}
		}
		return atMost(most)(text)
	}
}

// atMost returns a check of texts: at least one byte, at most so many, and no space at either end.
func atMost(most int) func(string) error {
	return func(text string) error {
		switch {
		case text == "":
			return errors.New("the text is empty")
		case len(text) > most:
			return fmt.Errorf("%s is %d bytes long, more than %d", quoted(text), len(text), most)
		case strings.TrimSpace(text) != text:
			return fmt.Errorf("%s begins or ends with a space, which nobody sees", quoted(text))
		}
		return nil
	}
}

// checkInterface follows the kernel's dev_valid_name: 1 to 15 bytes
// (IFNAMSIZ-1), no slash, no colon, no space, not "." or "..".
func checkInterface(text string) error {
	odd := func(r rune) bool { return r == '/' || r == ':' || unicode.IsSpace(r) || !unicode.IsPrint(r) }
	switch {
	case text == "":
		return errors.New("the text is empty")
	case text == "lo":
		return refuse("write the interface on which the boards are; to try topdog on one machine run `topdog demo`",
			"no other board can be reached by %s", quoted(text))
	case strings.Contains(text, ","): // which the kernel allows, and nobody has
		return refuse("write each name by itself: "+QuoteAll(strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == ' ' })),
			"%s is no name of an interface", quoted(text))
	case len(text) > 15:
		return fmt.Errorf("%s is %d bytes long; the kernel allows interface names of at most 15", quoted(text), len(text))
	case text == ".", text == "..", strings.ContainsFunc(text, odd):
		return fmt.Errorf("%s cannot be the name of an interface", quoted(text))
	}
	return nil
}

// interfaces is the setting of the interface, and of that of the second path.
func interfaces(c *Config, k setting) setting {
	k.takes, k.max = aText|aList, 2
	return scalar(&c.Paths, func(name string) (p Paths, err error) {
		p = c.Paths
		switch err := checkInterface(name); {
		case err != nil:
			return p, err
		case p.Interface == "":
			p.Interface = name
		case p.Interface == name:
			return p, refuse("delete one of the two", "%s is listed twice", name)
		default:
			p.SecondInterface = name
		}
		return p, nil
	}, k)
}

// checkPath refuses a path that cannot be what was meant.
func checkPath(text string) error {
	switch {
	case text == "":
		return errors.New("the path is empty")
	case strings.HasPrefix(text, "~"):
		return fmt.Errorf(`%s: "~" means nothing outside a shell`, quoted(text))
	case strings.ContainsFunc(text, unicode.IsControl):
		return fmt.Errorf("%s contains a control character", quoted(text))
	case len(text) > 4095: // PATH_MAX less the final NUL
		return fmt.Errorf("the path is %d bytes long, more than the 4095 that the kernel allows", len(text))
	}
	return nil
}

// checkAbsolute refuses a path that is not absolute.
func checkAbsolute(text string) error {
	if err := checkPath(text); err != nil || strings.HasPrefix(text, "/") {
		return err
	}
	return fmt.Errorf("%s is not an absolute path", quoted(text))
}

// checkProgram checks the value of key. topdog starts the program itself, without a shell that could find another
// meaning in its name. So a text that only a shell could take apart is refused.
func checkProgram(key, text string) error {
	if err := checkAbsolute(text); err != nil {
		return err
	}
	if words := strings.Fields(text); len(words) > 1 {
		return refuse("write "+key+" = "+QuoteAll(words),
			"%s contains a space, and there is no shell that would split it", quoted(text))
	}
	return atMost(len(text))(text) // which finds a space at its end
}

// maxSocketPath is the size of sun_path (unix(7)), 108 bytes, less the final NUL and the ".public" that the name
// of the public socket has in addition.
const maxSocketPath = 107 - len(".public")

func checkSocket(text string) error {
	if err := checkAbsolute(text); err != nil || len(text) <= maxSocketPath {
		return err
	}
	return fmt.Errorf("the path is %d bytes long; unix sockets and the name of the public one beside it allow %d",
		len(text), maxSocketPath)
}

// parseKeyFile returns NoKey or the absolute path of the key.
func (c *Config) parseKeyFile(text string) (string, error) {
	if text == NoKey {
		return NoKey, nil
	}
	if _, wrong, _ := decodeHexKey(text); wrong == "" {
		return "", refuse("put the key into a file that only root can read, and its path here; "+
			"then make a new key: this one has been in a file that others may read", "this is a key, not the path of one")
	}
	path := filepath.Clean(text)
	if !filepath.IsAbs(path) {
		path = filepath.Join(filepath.Dir(c.file), path)
	}
	return path, checkPath(text)
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
