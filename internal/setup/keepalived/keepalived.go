// Package keepalived converts a configuration of keepalived: into parts of one of topdog, and into notes on each line that
// topdog has nothing for, with its place and with what to do instead.
//
// keepalived.conf(5) describes the file. Where that page leaves a question open, keepalived's
// lib/parser.c has answered it: the file is read line by line, "#" and "!" begin a comment unless they
// stand between double quotes, and braces need no white space around them.
//
// keepalived can also make other lines of a file before it reads them: of parameters, conditions and templates. A file
// with such lines is refused, because a person converts one file once, and can write the lines out for that.
package keepalived

import (
	"cmp"
	"fmt"
	"slices"
	"sort"
	"strings"

	"topdog/internal/config"
)

// Converted is what became of one group in keepalived's configuration.
type Converted struct {
	Addresses []string // as `address` takes them, those of IPv4 first
	Interface string   // "" if the file says none
	Group     string   // the name; "" if the file has nothing to make one of
	Own       string   // the lines of TOML that are this board's own: its priority and the like
	Checks    string   // the tables of TOML, [[check]]
	Hook      []byte   // a shell script that calls the notify scripts; nil if there are none

	Notes []Note // on all that is not simply converted, in the order of the lines
}

// Note says what became of a line that is not simply converted.
type Note struct {
	Place   Place
	Keyword string
	Text    string // why, and what to do
	// Act says that the line is not converted, or not wholly, and that somebody has to look. Other
	// lines are left out because topdog needs nothing like them.
	Act bool
}

// Place is where something stands in a file.
type Place struct {
	file         string
	line, column int // from 1; the column in characters
}

func (p Place) String() string { return fmt.Sprintf("%s:%d:%d", p.file, p.line, p.column) }

// Convert converts one vrrp_instance of a file: the one of this name, or without a name the only one, together with its
// partners of IPv6. Each line is converted, or has a note. hasUnit reports whether systemd has a unit of that name here. The error is a config.Errors with
// the place of a mistake, or a *ChoiceError.
func Convert(path string, data []byte, name string, hasUnit func(name string) bool) (*Converted, error) {
	file, err := read(path, data)
	if err != nil {
		return nil, err
	}
	chosen, err := file.choose(path, name)
	if err != nil {
		return nil, err
	}
	c := &conversion{hasUnit: hasUnit, file: file, instance: chosen, partners: file.partners(chosen), preempt: true}
	c.sift()
	if err := c.convert(); err != nil {
		return nil, err
	}
	c.Own = c.own()
	if c.Checks, err = c.checks(); err != nil {
		return nil, err
	}
	c.Hook = c.hook()
	sort.SliceStable(c.Notes, func(i, j int) bool {
		a, b := c.Notes[i].Place, c.Notes[j].Place
		return cmp.Or(a.line-b.line, a.column-b.column) < 0
	})
	return &c.Converted, nil
}

// ChoiceError says that a file has several groups, one of which has to be chosen.
type ChoiceError struct{ error }

// mistake is a config.Errors of one problem.
func mistake(at Place, hint, format string, args ...any) error {
	return config.Errors{{File: at.file, Line: at.line, Column: at.column, Message: fmt.Sprintf(format, args...), Hint: hint}}
}

// choose finds the instance to be converted.
func (b block) choose(path, name string) (*statement, error) {
	if s := b.named("vrrp_instance", ""); s != nil {
		return nil, mistake(s.place, "write a name behind it", "this vrrp_instance has no name")
	}
	for _, s := range b.all("vrrp_instance") {
		if s.text(1) == name {
			return s, nil
		}
	}
	all := b.instances()
	for _, s := range b.instances() {
		partners := b.partners(s)
		all = slices.DeleteFunc(all, func(other *statement) bool { return slices.Contains(partners, other) })
	}
	var names []string
	for _, s := range all {
		names = append(names, printable(s.text(1)))
	}
	listed := strings.Join(names, ", ")
	switch {
	case len(all) == 0:
		return nil, mistake(Place{file: path}, "topdog keeps addresses, which keepalived has in blocks vrrp_instance. "+
			"Files that it includes are not read", "there is no vrrp_instance in it")
	case name != "":
		return nil, &ChoiceError{fmt.Errorf("%s has no vrrp_instance %s, but: %s", path, printable(name), listed)}
	case len(all) == 1:
		return all[0], nil
	}
	return nil, &ChoiceError{fmt.Errorf("%s has several groups of addresses, which may be on different boards, "+
		"and each is a daemon of topdog's own; choose one of: %s", path, listed)}
}
