package config

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"sort"
	"strings"
	"unicode/utf8"

	"topdog/internal/check"
)

// findings are a file and what is wrong with it.
type findings struct {
	*document
	file     string
	all      []*reading // of each group
	problems Errors
	more     int             // problems beyond maxProblems
	said     map[string]bool // what has been reported: the top level is read again for each group
}

// reading is the state of ParseGroups for one group.
type reading struct {
	*findings
	cfg     *Config
	top     *section // the keys above the checks, with those of the group's table in place of the top level's
	entries []entry  // of the top level
	checks  []table
	groups  []groupTable // of the file
	own     *section     // the keys of the group's table; nil without one
	at      *span        // of the header of the group; nil without one
}

func newReading(f *findings) *reading {
	r := &reading{findings: f, cfg: Defaults()}
	r.cfg.file = f.file
	r.top = r.newSection("", settings(r.cfg))
	return r
}

// section is one table that is being read: the whole configuration, a check, or an inline table
// in a check, such as exec = { path = "…", user = "…" }.
type section struct {
	*reading
	name     string // in front of its keys in messages: "", "check: " or "check: http."
	settings []setting
	keys     map[string]span   // every key that the file sets, known or not
	values   map[string][]span // for each key, the places of the values that were accepted
	bad      map[string]bool   // keys that have a problem already, so nothing more is said about them

	keysListed bool // a hint has listed the keys
}

func (r *reading) newSection(name string, settings []setting) *section {
	return &section{
		reading: r, name: name, settings: settings,
		keys: map[string]span{}, values: map[string][]span{}, bad: map[string]bool{},
	}
}

// ofConfig reports whether the keys of s are those of a configuration, at the top level or in a [[group]].
func (s *section) ofConfig() bool { return s == s.top || s == s.own }

// maxProblems bounds how much a bad file (a video, say) can print.
const maxProblems = 25

// ParseGroups checks data, the content of a file called name. The error is an
// [Errors] that lists everything that is wrong; every problem has a line.
// Relative paths in the file are relative to the directory of name.
func ParseGroups(name string, data []byte) (Groups, error) {
	f := &findings{file: name, said: map[string]bool{}}
	// Windows editors begin a file with a byte order mark. It means nothing.
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	if at := firstInvalidUTF8(string(data)); at >= 0 {
		f.document = &document{data: data}
		f.report(span{at, 1}, "this is not UTF-8 text", "save the file as UTF-8 without formatting")
		return nil, f.result()
	}
	f.document = parseTOML(data)
	r := newReading(f)
	r.readTop(f.tables[0].entries)
	for _, t := range f.tables[1:] {
		r.readTable(t)
	}
	f.all = r.readGroups()
	if f.syntax != nil {
		r.reportSyntax() // the rest of the file is unknown, so nothing can be missing or contradictory
	} else {
		for i, one := range f.all {
			one.readChecks()
			one.validate()
			one.validateGroups(f.all[:i])
		}
	}
	if err := f.result(); err != nil {
		return nil, err
	}
	var groups Groups
	for _, one := range f.all {
		one.cfg.Several, one.cfg.SecondPath = len(f.all) > 1, one.cfg.SecondInterface != ""
		for _, other := range f.all {
			for _, a := range other.cfg.Addresses {
				if other != one {
					one.cfg.OtherAddresses = append(one.cfg.OtherAddresses, a.IP)
				}
			}
		}
		one.cfg.set = one.origins()
		groups = append(groups, one.cfg)
	}
	return groups, nil
}

// origins returns where the values of the keys come from.
func (r *reading) origins() map[string]origin {
	set := map[string]origin{}
	for key, spans := range r.top.values {
		line, column := r.position(spans[0].offset)
		set[key] = origin{fmt.Sprintf("%s:%d:%d", r.file, line, column), r.textOf(spans)}
	}
	return set
}

// readTop reads keys of the top level.
func (r *reading) readTop(entries []entry) {
	r.entries = append(r.entries, entries...)
	r.top.readAll(entries)
}

// readTable keeps a check for readChecks, and a group for readGroups. Any other header is reported, and the keys below it
// are read as if the header were not there.
func (r *reading) readTable(t table) {
	first, _, dotted := strings.Cut(normal(t.name), ".")
	section := nearest(first, []string{checkKey, groupKey})
	if section == groupKey && dotted {
		section = groupCheckKey // a group has no other tables
	}
	if section == "" {
		r.report(t.at, "topdog's configuration has no sections but [["+checkKey+"]] and [["+groupKey+"]], and here begins "+quoted(t.name),
			"delete this line and keep the keys below it")
		r.readTop(t.entries)
		return
	}
	if t.name != section || !t.many {
		r.top.bad[section] = true
		r.report(t.at, "here begins "+quoted(t.name)+", which is no section", "the table is [["+section+"]]: write that in front of each "+sectionIs[section])
	}
	last := len(r.groups) - 1
	switch _, listed := r.top.keys[section]; {
	case section == groupKey:
		r.groups = append(r.groups, groupTable{table: t})
		return
	case section == groupCheckKey && last < 0:
		r.report(t.at, "this check belongs to a group, and there is none above it",
			"write [["+groupKey+"]] and the keys of the group above it, or [["+checkKey+"]] for a check of all groups")
		return
	case section == groupCheckKey:
		r.groups[last].checks = append(r.groups[last].checks, t)
		return
	case t.name == checkKey && listed:
		r.top.refuse(checkKey, t.at, "the list of checks is complete already", "write all checks as [["+checkKey+"]]")
	}
	r.checks = append(r.checks, t)
}

// sectionIs says what begins with each header.
var sectionIs = map[string]string{checkKey: "check", groupKey: "group", groupCheckKey: "check of a group"}

func (s *section) readAll(entries []entry) {
	for _, e := range entries {
		s.read(e)
	}
}

// read reads one key.
func (s *section) read(e entry) {
	k := find(s.settings, e.key)
	first, twice := s.keys[e.key]
	switch {
	case twice && k == nil: // it has been reported where it came first
	case twice:
		line, _ := s.position(first.offset)
		s.refuse(k.name, e.at, fmt.Sprintf("this key is already set on line %d", line), "delete one of the two")
	case k == nil:
		s.keys[e.key] = e.at
		s.unknownKey(e)
	default:
		s.keys[e.key] = e.at
		s.assign(k, e.value)
	}
}

// assign stores the value of a key, or reports what is wrong with it.
func (s *section) assign(k *setting, v value) {
	switch {
	case k.name == checkKey && s.ofConfig():
		s.listChecks(k, v)
	case k.parts != nil && v.form == aTable:
		s.assignParts(k, v)
	case k.parts != nil && v.form == aText:
		s.set(k, k.parts[0].set, v)
	case v.form == aList:
		s.assignList(k, v)
	case k.takes&v.form == 0:
		s.refuse(k.name, v.at, "this is "+v.form.inWords()+", but it must be "+required[k.takes], s.rewrite(k, v.text))
	default:
		s.set(k, k.set, v)
	}
}

// assignList stores each element of a list.
func (s *section) assignList(k *setting, v value) {
	switch {
	case k.takes&aList == 0:
		s.refuse(k.name, v.at, "a list does not belong here", s.example(k))
		return
	case len(v.list) == 0 && k.filled:
		s.refuse(k.name, v.at, "the list is empty", s.example(k))
		return
	case len(v.list) > k.max:
		s.refuse(k.name, v.list[k.max].at, fmt.Sprintf("this is number %d of %d, more than %d", k.max+1, len(v.list), k.max),
			fmt.Sprintf("keep at most %d of them", k.max))
		return
	}
	for _, element := range v.list {
		if element.form == aList || k.takes&element.form == 0 {
			s.refuse(k.name, element.at,
				"the list contains "+element.form.inWords()+", but each element must be "+required[k.takes&^aList], s.example(k))
			continue
		}
		s.set(k, k.set, element)
	}
}

// assignParts stores the keys of an inline table. The first of a setting's parts is required.
func (s *section) assignParts(k *setting, v value) {
	parts := s.newSection(s.name+k.name+".", k.parts)
	parts.readAll(v.entries)
	first := k.parts[0].name
	if _, set := parts.keys[first]; !set && len(parts.bad) == 0 {
		s.refuse(k.name, v.at, first+" is missing", "write "+k.name+" = "+k.example)
	}
	if len(parts.bad) > 0 {
		s.bad[k.name] = true
	}
	s.values[k.name] = append(s.values[k.name], v.at)
}

// set stores a value of k by the given function, and reports what that refuses.
func (s *section) set(k *setting, set func(string) error, v value) {
	err := set(v.text)
	if err == nil {
		s.values[k.name] = append(s.values[k.name], v.at)
		return
	}
	because := &refusal{message: err.Error()}
	errors.As(err, &because)
	s.refuse(k.name, v.at, because.message, cmp.Or(because.hint, s.example(k)))
}

// example says what to write.
func (s *section) example(k *setting) string {
	if strings.HasSuffix(k.means, "or "+k.example) {
		return "write " + k.means
	}
	return "write " + strings.TrimPrefix(k.means+", for example ", ", ") + k.name + " = " + k.example
}

// refuse reports a problem with the value of a key.
func (s *section) refuse(key string, at span, message, hint string) {
	s.bad[key] = true
	s.report(at, s.name+key+": "+message, hint)
}

// listChecks takes checks that are written as a list of inline tables.
func (s *section) listChecks(k *setting, v value) {
	tables := v.list
	if v.form != aList {
		tables = []value{v}
	}
	for _, element := range tables {
		if element.form != aTable || v.form != aList {
			s.refuse(k.name, element.at, "this is "+element.form.inWords()+", but it must be "+required[k.takes],
				"write "+k.name+" = "+k.example+", or [["+k.name+"]] and the keys of the check below it")
			return
		}
		s.checks = append(s.checks, table{at: element.at, entries: element.entries})
	}
}

// readChecks reads all checks.
func (r *reading) readChecks() {
	for i, t := range r.checks {
		if i == check.Max {
			r.top.refuse(checkKey, t.at, fmt.Sprintf("this is number %d of %d, more than %d", i+1, len(r.checks), check.Max),
				fmt.Sprintf("keep at most %d checks", check.Max))
			return
		}
		r.readCheck(t)
	}
}

// report adds a problem at a place of the file.
func (f *findings) report(at span, message, hint string) {
	what := fmt.Sprint(at.offset, message)
	if f.said[what] || f.noRoom() {
		return
	}
	f.said[what] = true
	line, column := f.position(at.offset)
	f.problems = append(f.problems, Problem{
		File:    f.file,
		Line:    line,
		Column:  column,
		width:   max(1, utf8.RuneCount(f.data[at.offset:at.offset+at.length])),
		Message: withoutSecrets(printable(message)),
		Hint:    withoutSecrets(printable(hint)),
		source:  f.sourceLine(at.offset),
	})
}

// noRoom reports whether there are so many problems that one more is only counted, and counts it.
func (f *findings) noRoom() bool {
	if len(f.problems) < maxProblems {
		return false
	}
	f.more++
	return true
}

// result returns the problems in the order of the lines, or nil.
func (f *findings) result() error {
	if len(f.problems) == 0 {
		return nil
	}
	sort.SliceStable(f.problems, func(i, j int) bool {
		a, b := f.problems[i], f.problems[j]
		return cmp.Or(a.Line-b.Line, a.Column-b.Column) < 0
	})
	if f.more > 0 {
		last := f.problems[len(f.problems)-1]
		f.problems = append(f.problems, Problem{
			File: f.file, Line: last.Line, Column: last.Column,
			Message: fmt.Sprintf("and %d more problems like these", f.more),
			Hint:    "is this the right file?",
		})
	}
	return f.problems
}
