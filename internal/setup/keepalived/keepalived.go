// Package keepalived reads the configuration of keepalived, and says what of it topdog has: addresses,
// priority, checks, hooks. What topdog has not, it names with its place and with what to do instead.
//
// keepalived.conf(5) describes the file. Where that page leaves a question open, keepalived's
// lib/parser.c has answered it: the file is read line by line, "#" and "!" begin a comment unless they
// stand between double quotes, and braces need no white space around them.
//
// What reads the file takes anything for input: it has limits for everything that can grow, and a
// mistake is an error with file, line and column.
package keepalived

import (
	"cmp"
	"fmt"
	"slices"
	"sort"

	"topdog/internal/config"
)

// Place is where something stands in a file.
type Place struct {
	file         string
	line, column int // from 1; the column in characters
}

func (p Place) String() string { return fmt.Sprintf("%s:%d:%d", p.file, p.line, p.column) }

// Note says what became of a line that is not simply converted.
type Note struct {
	Place   Place
	Keyword string
	Text    string // why, and what to do
	// Act says that the line is not converted, or not wholly, and that somebody has to look. Other
	// lines are left out because topdog needs nothing like them.
	Act bool
}

// Machine is what has to be known of the board that converts.
type Machine struct {
	Name string // up to the first dot; keepalived compares it with the word behind an @
	// ReadFile returns the content of a file of at most so many bytes, and Glob the files that a
	// pattern of a shell finds.
	ReadFile func(path string, most int64) ([]byte, error)
	Glob     func(pattern string) ([]string, error)
	// HasUnit reports whether systemd has a unit of this name, and Program returns the path of a
	// program in the usual directories, or "".
	HasUnit func(name string) bool
	Program func(name string) string
}

// mistake is a config.Errors of one problem.
func mistake(at Place, hint, format string, args ...any) error {
	return config.Errors{{File: at.file, Line: at.line, Column: at.column, Message: fmt.Sprintf(format, args...), Hint: hint}}
}

// sortNotes puts notes into the order of the lines, file by file.
func sortNotes(notes []Note, files []string) {
	sort.SliceStable(notes, func(i, j int) bool {
		a, b := &notes[i], &notes[j]
		return cmp.Or(
			cmp.Compare(slices.Index(files, a.Place.file), slices.Index(files, b.Place.file)),
			cmp.Compare(a.Place.line, b.Place.line),
			cmp.Compare(a.Place.column, b.Place.column)) < 0
	})
}
