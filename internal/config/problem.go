package config

import (
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"unicode"
	"unicode/utf8"
)

// Problem is one thing that is wrong with a file, and where.
type Problem struct {
	File    string
	Line    int    // from 1; 0 if the file as a whole is meant
	Column  int    // from 1, in characters
	width   int    // how many characters to mark
	Message string // what is wrong
	Hint    string // what to do about it; "" if the message says it
	source  string // the line, without secrets and control characters; "" if there is nothing to show
	err     error  // the cause, if it was an error of the system
}

// Errors is everything that is wrong with one file, in the order of its lines.
// Its text is meant for people, in a terminal or a journal:
//
//	topdog.toml:3:13: heartbeat: 5ms is less than 10ms
//	    3 | heartbeat = "5ms"
//	      |             ^^^^^
//	      = help: write a duration from "10ms" to "10s", for example heartbeat = "100ms"
type Errors []Problem

// Error returns the text of all problems, without a final newline.
func (e Errors) Error() string {
	texts := make([]string, len(e))
	for i, p := range e {
		texts[i] = p.String()
	}
	return strings.Join(texts, "\n")
}

// Unwrap gives errors.Is and errors.As the causes.
func (e Errors) Unwrap() []error {
	var causes []error
	for _, p := range e {
		if p.err != nil {
			causes = append(causes, p.err)
		}
	}
	return causes
}

// Mistake reports whether a person must mend a file: what it says or is, or who may write to it. If
// not, the system could not read a file. That may pass by itself, as with a directory that is not mounted yet.
func (e Errors) Mistake() bool {
	return slices.ContainsFunc(e, func(p Problem) bool {
		_, bySystem := errors.AsType[syscall.Errno](p.err)
		return !bySystem
	})
}

// Place returns "file:line:column", or "file" if the file as a whole is meant.
func (p Problem) Place() string {
	if p.Line == 0 {
		return p.File
	}
	return fmt.Sprintf("%s:%d:%d", p.File, p.Line, p.Column)
}

// maxExcerpt bounds how much of a long line is shown, in characters: a terminal's
// width less the margin.
const maxExcerpt = 100

// String returns the problem as Errors prints it.
func (p Problem) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s", p.Place(), p.Message)
	if p.source != "" {
		source, indent := excerpt(p.source, p.Column)
		room := utf8.RuneCountInString(source) - utf8.RuneCountInString(indent)
		fmt.Fprintf(&b, "\n%5d | %s\n      | %s%s", p.Line, source, indent, strings.Repeat("^", max(1, min(p.width, room))))
	}
	if p.Hint != "" {
		fmt.Fprintf(&b, "\n      = help: %s", p.Hint)
	}
	return b.String()
}

// excerpt cuts a long line to the part around column, and returns it with the
// white space that brings a mark under the column. Tabs stay tabs in both, so
// that they line up whatever the terminal makes of them.
func excerpt(line string, column int) (shown, indent string) {
	runes := []rune(line)
	at := max(0, min(column-1, len(runes)))
	if len(runes) > maxExcerpt {
		from := max(0, min(at-maxExcerpt/2, len(runes)-maxExcerpt))
		to := from + maxExcerpt
		if to < len(runes) {
			runes = append(runes[:to:to], '…')
		}
		if from > 0 {
			runes = append([]rune{'…'}, runes[from:]...)
			at = at - from + 1
		}
	}
	space := make([]rune, at)
	for i := range space {
		space[i] = ' '
		if runes[i] == '\t' {
			space[i] = '\t'
		}
	}
	return string(runes), string(space)
}

// printable replaces what could confuse or attack a terminal (control
// characters, escape sequences, invalid UTF-8). Each character becomes one other, so
// that the columns stay right.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if r == '\t' || unicode.IsPrint(r) {
			return r
		}
		return utf8.RuneError
	}, s)
}

// keyMaterial is what is taken for a key, or a good part of one: errors go to journals, and a key
// does not belong there.
var keyMaterial = regexp.MustCompile("[0-9A-Fa-f]{24,}")

// withoutSecrets covers everything in s that looks like key material.
func withoutSecrets(s string) string {
	return keyMaterial.ReplaceAllStringFunc(s, func(digits string) string { return strings.Repeat("*", len(digits)) })
}

// quoted shows a value in a message: cut to a readable length and without secrets.
func quoted(s string) string {
	const most = 48
	s = withoutSecrets(s)
	if runes := []rune(s); len(runes) > most {
		s = string(runes[:most]) + "…"
	}
	return strconv.Quote(s)
}

// refusal is why a value is not accepted, and what to write instead.
// [section.set] adds the key and the place.
type refusal struct {
	message string
	hint    string
}

func (r *refusal) Error() string {
	if r.hint == "" {
		return r.message
	}
	return r.message + ": " + r.hint
}

func refuse(hint, format string, args ...any) error {
	return &refusal{message: fmt.Sprintf(format, args...), hint: hint}
}

// WithHint adds what to write instead to an error that does not say it.
func WithHint(err error, hint string) error {
	if _, says := errors.AsType[*refusal](err); says {
		return err
	}
	return refuse(hint, "%v", err)
}

// bare returns the reason of an error of package os, without the operation
// and the path: the problem names them already.
func bare(err error) string {
	if pathErr, ok := errors.AsType[*fs.PathError](err); ok {
		return pathErr.Err.Error()
	}
	return err.Error()
}

// ShellQuote quotes text for a POSIX shell where it needs it.
func ShellQuote(text string) string {
	special := func(r rune) bool { return !isLetterOrDigit(r) && !strings.ContainsRune("/._-+@", r) }
	if text != "" && !strings.ContainsFunc(text, special) {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}
