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

// reading is the state of Parse.
type reading struct {
	*document
	file     string
	cfg      *Config
	top      *section // the keys above the checks
	checks   []table
	problems Errors
	more     int // problems beyond maxProblems
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

// maxProblems bounds how much a bad file (a video, say) can print.
const maxProblems = 25

// Parse checks data, the content of a file called name. The error is an
// [Errors] that lists everything that is wrong; every problem has a line.
// Relative paths in the file are relative to the directory of name.
func Parse(name string, data []byte) (*Config, error) {
	r := &reading{file: name, cfg: Defaults()}
	r.cfg.file = name
	r.top = r.newSection("", settings(r.cfg))
	// Windows editors begin a file with a byte order mark. It means nothing.
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	if at := firstInvalidUTF8(string(data)); at >= 0 {
		r.document = &document{data: data}
		r.report(span{at, 1}, "this is not UTF-8 text", "save the file as UTF-8 without formatting")
		return nil, r.result()
	}
	r.document = parseTOML(data)
	r.top.readAll(r.tables[0].entries)
	for _, t := range r.tables[1:] {
		r.readTable(t)
	}
	if r.syntax != nil {
		r.reportSyntax() // the rest of the file is unknown, so nothing can be missing or contradictory
	} else {
		r.readChecks()
		r.validate()
	}
	if err := r.result(); err != nil {
		return nil, err
	}
	r.cfg.set = map[string]origin{}
	for key, spans := range r.top.values {
		line, column := r.position(spans[0].offset)
		r.cfg.set[key] = origin{fmt.Sprintf("%s:%d:%d", name, line, column), r.textOf(spans)}
	}
	return r.cfg, nil
}

// readTable keeps a check for readChecks. Any other header is reported, and the keys below it are
// read as if the header were not there.
func (r *reading) readTable(t table) {
	_, listed := r.top.keys[checkKey]
	switch {
	case nearest(normal(t.name), []string{checkKey}) == "":
		r.report(t.at, "topdog's configuration has no sections but [["+checkKey+"]], and here begins "+quoted(t.name),
			"delete this line and keep the keys below it")
		r.top.readAll(t.entries)
		return
	case t.name == checkKey && listed:
		r.top.refuse(checkKey, t.at, "the list of checks is complete already", "write all checks as [["+checkKey+"]]")
	case t.name != checkKey || !t.many:
		r.top.bad[checkKey] = true
		r.report(t.at, "here begins "+quoted(t.name)+", which is no section", "write [["+checkKey+"]] in front of each check")
	}
	r.checks = append(r.checks, t)
}

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
	case k.name == checkKey && s == s.top:
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
func (r *reading) report(at span, message, hint string) {
	if r.noRoom() {
		return
	}
	line, column := r.position(at.offset)
	r.problems = append(r.problems, Problem{
		File:    r.file,
		Line:    line,
		Column:  column,
		width:   max(1, utf8.RuneCount(r.data[at.offset:at.offset+at.length])),
		Message: withoutSecrets(printable(message)),
		Hint:    withoutSecrets(printable(hint)),
		source:  r.sourceLine(at.offset),
	})
}

// noRoom reports whether there are so many problems that one more is only counted, and counts it.
func (r *reading) noRoom() bool {
	if len(r.problems) < maxProblems {
		return false
	}
	r.more++
	return true
}

// result returns the problems in the order of the lines, or nil.
func (r *reading) result() error {
	if len(r.problems) == 0 {
		return nil
	}
	sort.SliceStable(r.problems, func(i, j int) bool {
		a, b := r.problems[i], r.problems[j]
		return cmp.Or(a.Line-b.Line, a.Column-b.Column) < 0
	})
	if r.more > 0 {
		last := r.problems[len(r.problems)-1]
		r.problems = append(r.problems, Problem{
			File: r.file, Line: last.Line, Column: last.Column,
			Message: fmt.Sprintf("and %d more problems like these", r.more),
			Hint:    "is this the right file?",
		})
	}
	return r.problems
}
