package config

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"sort"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/pelletier/go-toml/v2/unstable"
)

// span is a range of bytes of the file.
type span struct{ offset, length int }

// value is one TOML value of the file: a scalar, or a list of them.
type value struct {
	kind unstable.Kind
	text string // numbers in decimal, text without quotes and escapes
	at   span
	list []value
	keys []entry // of an inline table
}

// entry is a key of a table, and its value.
type entry struct {
	key   string
	at    span
	value value
}

// reading is the state of Parse: what has been read and what was wrong with it.
type reading struct {
	file       string
	data       []byte
	host       string // of the board, for the defaults
	fields     []field
	cfg        *Config
	problems   Errors
	more       int               // problems beyond maxProblems
	keys       map[string]span   // every key that the file sets, known or not
	values     map[string][]span // for each key, the places of the values that were accepted
	keysListed bool              // the keys have been listed in a hint
	refused    map[string]bool   // keys with a problem, about which nothing more need be said
	tables     []table           // those of [[check]]
	section    *table            // that in which the keys are; nil for none
}

// table is a table of the file.
type table struct {
	at   span // of its name, or of its bracket
	keys []entry
}

// maxProblems bounds what one bad file (somebody's video, say) can print.
const maxProblems = 25

// Parse checks data, the content of a file called name. The error is an
// [Errors] that lists everything that is wrong; every problem has a line.
// Relative paths in the file are relative to the directory of name.
func Parse(name string, data []byte) (*Config, error) { return parseOn(hostname(), name, data) }

// parseOn is Parse on a board with that host name.
func parseOn(host, name string, data []byte) (*Config, error) {
	r := &reading{
		file:    name,
		host:    host,
		fields:  fields(),
		cfg:     defaults(host),
		keys:    map[string]span{},
		values:  map[string][]span{},
		refused: map[string]bool{},
	}
	r.cfg.file = name
	// Windows editors begin a file with a byte order mark. It means nothing.
	r.data = []byte(strings.TrimPrefix(string(data), "\ufeff"))

	if at := firstInvalidUTF8(r.data); at >= 0 {
		r.report(span{at, 1}, "this is not UTF-8 text", "save the file as UTF-8 without formatting")
		return nil, r.result()
	}
	if r.walk() {
		r.checks()
		r.check()
	}
	if err := r.result(); err != nil {
		return nil, err
	}
	r.cfg.places = map[string]string{}
	for key, spans := range r.values {
		if len(spans) > 0 {
			line, column := r.position(spans[0].offset)
			r.cfg.places[key] = fmt.Sprintf("%s:%d:%d", name, line, column)
		}
	}
	return r.cfg, nil
}

func firstInvalidUTF8(data []byte) int {
	for i := 0; i < len(data); {
		r, size := utf8.DecodeRune(data[i:])
		if r == utf8.RuneError && size <= 1 || r == 0 {
			return i
		}
		i += size
	}
	return -1
}

// walk goes through the expressions of the file. It reports whether the end was
// reached: after a syntax error it is not known what the rest would have said.
func (r *reading) walk() bool {
	var p unstable.Parser
	p.Reset(r.data)
	for p.NextExpression() {
		switch e := p.Expression(); e.Kind {
		case unstable.KeyValue:
			r.keyValue(&p, e)
		case unstable.Table, unstable.ArrayTable:
			name, at := keyOf(e)
			r.begin(name, at, e.Kind)
		}
	}
	r.endSection()
	if err := p.Error(); err != nil {
		r.syntaxError(&p, err)
		return false
	}
	return true
}

// begin begins a section. There is one for each check. The keys below another one are read as if it were
// not there, so that one superfluous line is one problem.
func (r *reading) begin(name string, at span, kind unstable.Kind) {
	r.endSection()
	_, listed := r.keys[checkKey]
	switch near := nearest(normal(name), []string{checkKey}); {
	case name == checkKey && kind == unstable.ArrayTable && !listed:
		r.section = &table{at: at}
	case name == checkKey && listed:
		r.section = &table{at: at}
		r.refuse(r.field(checkKey), at, "the list of checks is complete already", "write all checks as [["+checkKey+"]]")
	case near != "":
		r.section = &table{at: at}
		r.refused[checkKey] = true
		r.report(at, "here begins "+quoted(name)+", which is no section", "write [["+checkKey+"]] in front of each check")
	default:
		r.report(at, "topdog's configuration has no sections but [["+checkKey+"]], and here begins "+quoted(name),
			"delete this line and keep the keys below it")
	}
}

// endSection keeps what was in a section.
func (r *reading) endSection() {
	if r.section != nil {
		r.tables = append(r.tables, *r.section)
	}
	r.section = nil
}

// keyOf returns the (dotted) key of an expression and its place.
func keyOf(e *unstable.Node) (name string, at span) {
	var parts []string
	for it := e.Key(); it.Next(); {
		raw := it.Node().Raw
		if len(parts) == 0 {
			at.offset = int(raw.Offset)
		}
		at.length = int(raw.Offset+raw.Length) - at.offset
		parts = append(parts, string(it.Node().Data))
	}
	return strings.Join(parts, "."), at
}

func (r *reading) keyValue(p *unstable.Parser, e *unstable.Node) {
	name, at := keyOf(e)
	if r.section != nil {
		r.section.keys = append(r.section.keys, entry{name, at, valueOf(p, e.Value(), r.placeOfValue(p, e))})
		return
	}
	first, twice := r.keys[name]
	switch {
	case twice && r.field(name) == nil:
		return // it has been reported where it came first
	case twice:
		line, _ := r.position(first.offset)
		r.report(at, fmt.Sprintf("%s is set twice, first on line %d", printable(name), line), "delete one of the two")
		return
	}
	r.keys[name] = at
	f := r.field(name)
	if f == nil {
		r.unknownKey(name, at)
		return
	}
	r.assign(f, valueOf(p, e.Value(), r.placeOfValue(p, e)))
}

// placeOfValue finds where the value of a key-value expression begins and ends.
// go-toml keeps no range for lists, so it is taken from what surrounds them.
func (r *reading) placeOfValue(p *unstable.Parser, e *unstable.Node) span {
	_, key := keyOf(e)
	end := int(e.Raw.Offset + e.Raw.Length)
	start := key.offset + key.length
	for start < end && strings.IndexByte(" \t=", r.data[start]) >= 0 {
		start++
	}
	return span{start, end - start}
}

// valueOf copies a value out of the parser, whose nodes are reused.
func valueOf(p *unstable.Parser, n *unstable.Node, outer span) value {
	v := value{kind: n.Kind, at: outer}
	switch n.Kind {
	case unstable.Array:
		for it := n.Children(); it.Next(); {
			child := it.Node()
			at := outer
			if child.Raw.Length > 0 {
				at = span{int(child.Raw.Offset), int(child.Raw.Length)}
			}
			if child.Kind == unstable.Array {
				// No key takes lists of lists, so nobody needs to look inside.
				v.list = append(v.list, value{kind: unstable.Array, at: at})
				continue
			}
			v.list = append(v.list, valueOf(p, child, at))
		}
	case unstable.InlineTable:
		for it := n.Children(); it.Next(); {
			name, at := keyOf(it.Node())
			child, inside := it.Node().Value(), at
			if child.Raw.Length > 0 && child.Kind != unstable.InlineTable {
				inside = span{int(child.Raw.Offset), int(child.Raw.Length)}
			}
			v.keys = append(v.keys, entry{name, at, valueOf(p, child, inside)})
		}
	case unstable.Integer:
		v.text = string(n.Data)
		// TOML's hexadecimal, octal and binary notations and its
		// underscores are those of Go.
		if number, err := strconv.ParseInt(v.text, 0, 64); err == nil {
			v.text = strconv.FormatInt(number, 10)
		}
	default:
		v.text = string(n.Data)
	}
	return v
}

func (r *reading) field(key string) *field {
	for i := range r.fields {
		if r.fields[i].key == key {
			return &r.fields[i]
		}
	}
	return nil
}

// assign stores a value, or each element of a list, or says why not.
func (r *reading) assign(f *field, v value) {
	if f.form == takesTables {
		r.assignTables(f, v)
		return
	}
	if v.kind != unstable.Array {
		r.assignScalar(f, v)
		return
	}
	switch {
	case f.form&takesList == 0:
		r.refuse(f, v.at, "a list does not belong here", "write "+f.key+" = "+f.example)
	case len(v.list) == 0 && f.filled:
		r.refuse(f, v.at, "the list is empty", "write "+f.key+" = "+f.example)
	case len(v.list) > f.max:
		r.refuse(f, v.list[f.max].at, fmt.Sprintf("this is number %d of %d, more than %d", f.max+1, len(v.list), f.max),
			fmt.Sprintf("keep at most %d of them", f.max))
	default:
		for _, element := range v.list {
			r.assignElement(f, element)
		}
	}
}

func (r *reading) assignScalar(f *field, v value) {
	if !f.takes(v.kind) {
		r.refuse(f, v.at, "this is "+kindInWords(v.kind)+", but it must be "+f.form.inWords(), r.rewrite(f, v.text))
		return
	}
	r.set(f, v)
}

func (r *reading) assignElement(f *field, v value) {
	if !f.takes(v.kind) {
		elements := "texts in quotes"
		if f.form&takesNumber != 0 {
			elements += ", or whole numbers"
		}
		r.refuse(f, v.at, "the list contains "+kindInWords(v.kind)+", but its elements must be "+elements,
			"write for example "+f.key+" = ["+f.exampleElement()+"]")
		return
	}
	r.set(f, v)
}

// exampleElement returns one element of the example of a list.
func (f *field) exampleElement() string {
	first, _, _ := strings.Cut(strings.Trim(f.example, "[]"), ",")
	return first
}

func (r *reading) set(f *field, v value) {
	err := f.set(r.cfg, v.text)
	if err == nil {
		r.values[f.key] = append(r.values[f.key], v.at)
		return
	}
	var because *refusal
	if !errors.As(err, &because) {
		because = &refusal{message: err.Error()}
	}
	r.refuse(f, v.at, because.message, because.hint)
}

func (f *field) takes(kind unstable.Kind) bool {
	switch kind {
	case unstable.String:
		return f.form&takesText != 0
	case unstable.Integer:
		return f.form&takesNumber != 0
	case unstable.Bool:
		return f.form&takesBool != 0
	default:
		return false
	}
}

func (f form) inWords() string {
	switch f {
	case takesTables:
		return "a list of tables"
	case takesBool:
		return "true or false"
	case takesNumber:
		return "a whole number"
	case takesText | takesNumber:
		return "a whole number, or text in quotes"
	case takesText | takesNumber | takesList:
		return "a list of texts in quotes, or of whole numbers"
	case takesText | takesList:
		return "text in quotes, or a list of such texts"
	default:
		return "text in quotes"
	}
}

func kindInWords(kind unstable.Kind) string {
	switch kind {
	case unstable.String:
		return "text"
	case unstable.Integer:
		return "a number"
	case unstable.Float:
		return "a number with a fraction"
	case unstable.Bool:
		return "true or false"
	case unstable.Array:
		return "a list"
	case unstable.InlineTable:
		return "a table"
	default:
		return "a date or time"
	}
}

// report adds a problem at a place of the file.
func (r *reading) report(at span, message, hint string) {
	if len(r.problems) >= maxProblems {
		r.more++
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
		source:  sourceLine(r.data, at.offset),
	})
}

// refuse reports a problem with the value of a key.
func (r *reading) refuse(f *field, at span, message, hint string) {
	r.refused[f.key] = true
	r.report(at, f.key+": "+message, hint)
}

// position returns the line and the column (in characters) of an offset.
func (r *reading) position(offset int) (line, column int) {
	before := r.data[:offset]
	start := bytes.LastIndexByte(before, '\n') + 1
	return 1 + bytes.Count(before, []byte("\n")), 1 + utf8.RuneCount(before[start:])
}

// lineAround returns the line that contains offset, and where it starts.
func lineAround(data []byte, offset int) (line string, start int) {
	start = bytes.LastIndexByte(data[:offset], '\n') + 1
	before, _, _ := bytes.Cut(data[start:], []byte("\n"))
	return string(before), start
}

// sourceLine returns the line around offset, fit to be shown.
func sourceLine(data []byte, offset int) string {
	line, _ := lineAround(data, offset)
	line = strings.TrimSuffix(line, "\r")
	// A line that sets something called "password" is not repeated in a journal.
	if i := strings.IndexAny(line, "=:"); i >= 0 && meansSecret(line[:i]) {
		line = line[:i+1] + strings.Repeat("*", utf8.RuneCountInString(line[i+1:]))
	}
	return withoutSecrets(printable(line))
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
