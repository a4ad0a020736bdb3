// Package keepalived converts a configuration of keepalived: into parts of one of topdog, and into notes on each line that
// topdog has nothing for, with its place and with what to do instead.
//
// keepalived.conf(5) describes the file. Where that page leaves a question open, keepalived's
// lib/parser.c has answered it: the file is read line by line, "#" and "!" begin a comment unless they
// stand between double quotes, and braces need no white space around them.
//
// The reader takes any input: it has limits for everything that can grow, and a mistake is an error with file, line and
// column.
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
	Addresses []string // as `address` takes them
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

// Convert converts one group of a file: the one that has this name as a vrrp_instance or a vrrp_sync_group, or without a
// name the only one. Each line is converted, or has a note. The error is a config.Errors with the place of a mistake, a
// *ChoiceError, or the one of Machine.ReadFile.
func Convert(path, name string, m Machine) (*Converted, error) {
	r, err := read(path, m)
	if err != nil {
		return nil, err
	}
	c := &conversion{Converted: Converted{Notes: r.notes}, machine: m, file: r.top.block, preempt: true}
	chosen, err := c.file.choose(path, name)
	if err != nil {
		return nil, err
	}
	c.sift(chosen)
	if err := c.instances(chosen); err != nil {
		return nil, err
	}
	c.Own = c.own()
	if c.Checks, err = c.checks(chosen); err != nil {
		return nil, err
	}
	c.Hook = c.hook(chosen)
	sort.SliceStable(c.Notes, func(i, j int) bool {
		a, b := c.Notes[i].Place, c.Notes[j].Place
		return cmp.Or(cmp.Compare(slices.Index(r.files, a.file), slices.Index(r.files, b.file)),
			cmp.Compare(a.line, b.line), cmp.Compare(a.column, b.column)) < 0
	})
	return &c.Converted, nil
}

// ChoiceError says that a file has several groups, one of which has to be chosen.
type ChoiceError struct {
	file  string
	names []string
	why   string
}

func (e *ChoiceError) Error() string {
	return fmt.Sprintf("%s %s: %s", e.file, e.why, strings.Join(e.names, ", "))
}

// mistake is a config.Errors of one problem.
func mistake(at Place, hint, format string, args ...any) error {
	return config.Errors{{File: at.file, Line: at.line, Column: at.column, Message: fmt.Sprintf(format, args...), Hint: hint}}
}

// members returns the instances of a sync group.
func (b block) members(group *statement) (instances block) {
	for _, list := range group.block.all("group") {
		for _, line := range list.block {
			for _, w := range line.words {
				if s := b.named("vrrp_instance", w.text); s != nil {
					instances = append(instances, s)
				}
			}
		}
	}
	return instances
}

// selection is what becomes one group of topdog.
type selection struct {
	group     *statement // a vrrp_sync_group, or nil
	instances block
}

// blocks are those that track something, or notify somebody.
func (s selection) blocks() block {
	if s.group != nil {
		return append(slices.Clone(s.instances), s.group)
	}
	return s.instances
}

func (s selection) name() string {
	blocks := s.blocks()
	return blocks[len(blocks)-1].text(1)
}

// selections are the groups of topdog that the file could become.
func (b block) selections() (all []selection) {
	var inGroup block
	for _, g := range b.all("vrrp_sync_group") {
		if members := b.members(g); b.named("vrrp_sync_group", g.text(1)) == g && len(members) > 0 {
			inGroup = append(inGroup, members...)
			all = append(all, selection{group: g, instances: members})
		}
	}
	for _, s := range b.all("vrrp_instance") {
		if !slices.Contains(inGroup, s) && b.named("vrrp_instance", s.text(1)) == s {
			all = append(all, selection{instances: block{s}})
		}
	}
	return all
}

// choose finds what is to be converted.
func (b block) choose(path, name string) (selection, error) {
	if s := b.named("vrrp_instance", ""); s != nil {
		return selection{}, mistake(s.place, "write a name behind it", "this vrrp_instance has no name")
	}
	all := b.selections()
	names := make([]string, len(all))
	for i, s := range all {
		names[i] = printable(s.name())
		if name != "" && s.name() == name {
			return s, nil
		}
	}
	switch {
	case name != "":
		if s := b.named("vrrp_instance", name); s != nil { // of a sync group
			return selection{instances: block{s}}, nil
		}
		return selection{}, &ChoiceError{path, names, fmt.Sprintf("has no vrrp_instance %s, but", printable(name))}
	case len(all) == 0:
		return selection{}, mistake(Place{file: path}, "topdog keeps addresses, which keepalived has in blocks vrrp_instance",
			"there is no vrrp_instance in it")
	case len(all) == 1:
		return all[0], nil
	}
	return selection{}, &ChoiceError{path, names,
		"has several groups of addresses, which may be on different boards, and each is a daemon of topdog's own; choose one of"}
}
