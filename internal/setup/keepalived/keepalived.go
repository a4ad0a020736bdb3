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
	"sort"
	"strings"

	"topdog/internal/config"
)

// Converted is what became of keepalived's configuration.
type Converted struct {
	Groups []Group // one or more, in the order of the file
	Checks string  // the tables of TOML, [[check]], that hold for all groups
	Hook   []byte  // a shell script that calls the notify scripts; nil if there are none

	Notes []Note // on all that is not simply converted, in the order of the lines
}

// Group is what became of a vrrp_instance and its partners of IPv6.
type Group struct {
	Origin    string   // the instance and its line, for a comment
	Name      string   // "" if the file has nothing to make one of, and no other group
	Addresses []string // as `address` takes them, those of IPv4 first
	Interface string   // "" if the file says none
	Own       string   // the lines of TOML that are this board's own: its priority and the like
	Checks    string   // the tables of TOML, [[group.check]], if not all groups have the same
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

// Convert converts the vrrp_instance of this name, or without a name all of a file. Their partners of IPv6 are converted
// with them. Each line is converted, or has a note. hasUnit reports whether systemd has a unit of that name here. The error
// is a config.Errors with the place of a mistake, or a *ChoiceError.
func Convert(path string, data []byte, name string, hasUnit func(name string) bool) (*Converted, error) {
	file, err := read(path, data)
	if err != nil {
		return nil, err
	}
	chosen, err := file.choose(path, name)
	if err != nil {
		return nil, err
	}
	s := &source{file: file, hasUnit: hasUnit, noted: map[Note]bool{}}
	for _, instance := range chosen {
		s.all = append(s.all, &conversion{source: s, instance: instance, partners: file.partners(instance), preempt: true})
	}
	s.sift()
	for _, c := range s.all {
		if err := c.convert(); err != nil {
			return nil, err
		}
	}
	s.name()
	made := Converted{}
	if made.Checks, err = s.checks(); err != nil {
		return nil, err
	}
	made.Hook = s.hook()
	for _, c := range s.all {
		made.Groups = append(made.Groups, c.Group)
	}
	made.Notes = s.notes
	sort.SliceStable(made.Notes, func(i, j int) bool {
		a, b := made.Notes[i].Place, made.Notes[j].Place
		return cmp.Or(a.line-b.line, a.column-b.column) < 0
	})
	return &made, nil
}

// ChoiceError says that one group of a file has to be chosen.
type ChoiceError struct{ error }

// mistake is a config.Errors of one problem.
func mistake(at Place, hint, format string, args ...any) error {
	return config.Errors{{File: at.file, Line: at.line, Column: at.column, Message: fmt.Sprintf(format, args...), Hint: hint}}
}

// choose finds the instances to be converted.
func (b block) choose(path, name string) (block, error) {
	if s := b.named("vrrp_instance", ""); s != nil {
		return nil, mistake(s.place, "write a name behind it", "this vrrp_instance has no name")
	}
	for _, s := range b.all("vrrp_instance") {
		if s.text(1) == name {
			return block{s}, nil
		}
	}
	all := b.heads()
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
	case len(all) > config.MaxGroups:
		return nil, mistake(all[config.MaxGroups].place, "take some out of a copy of the file, and convert that",
			"this is group %d of %d, more than %d", config.MaxGroups+1, len(all), config.MaxGroups)
	}
	moving := map[*statement]*statement{} // for each vrrp_sync_group, its first instance
	for _, s := range all {
		group := b.syncGroup(s)
		if first := moving[group]; group != nil && first != nil {
			return nil, &ChoiceError{fmt.Errorf("%v: %s and %s move together, as the addresses of one group of topdog do, and two groups do not; "+
				"choose one of: %s", group.place, printable(first.text(1)), printable(s.text(1)), listed)}
		}
		moving[group] = s
	}
	return all, nil
}
