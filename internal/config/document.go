package config

import (
	"bytes"
	"cmp"
	"errors"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/pelletier/go-toml/v2/unstable"
)

// form is a form of a TOML value, or a set of forms. Each is a bit, by the number of go-toml's kind.
type form uint32

const (
	aText   form = 1 << unstable.String
	aNumber form = 1 << unstable.Integer
	aBool   form = 1 << unstable.Bool
	aList   form = 1 << unstable.Array
	aTable  form = 1 << unstable.InlineTable
)

// inWords says what a value is.
func (f form) inWords() string {
	names := map[form]string{
		aText: "text", aNumber: "a number", aBool: "true or false", aList: "a list", aTable: "a table",
		1 << unstable.Float: "a number with a fraction",
	}
	return cmp.Or(names[f], "a date or time")
}

// required says what a value must be.
var required = map[form]string{
	aText:                   "text in quotes",
	aBool:                   "true or false",
	aNumber:                 "a whole number",
	aNumber | aList:         "a whole number, or a list of such numbers",
	aText | aNumber:         "a whole number, or text in quotes",
	aText | aNumber | aList: "a list of texts in quotes, or of whole numbers",
	aText | aList:           "text in quotes, or a list of such texts",
	aText | aTable:          "text in quotes, or a table",
	aList | aTable:          "a list of tables",
}

// span is a range of bytes of the file.
type span struct{ offset, length int }

// value is one TOML value of the file.
type value struct {
	form    form
	text    string // of a scalar: numbers in decimal, texts without quotes and escapes
	at      span
	list    []value
	entries []entry // of an inline table
}

// entry is a key of a table and its value.
type entry struct {
	key   string // with its dots
	at    span   // of the key
	value value
}

// table is a part of the file: what precedes the first header, or what follows a header.
type table struct {
	name    string
	at      span // of the name in the header
	many    bool // the header is [[name]], not [name]
	entries []entry
}

// document is the syntax of a file: its tables with the place of each key and value.
type document struct {
	data   []byte
	tables []table      // the first one has no header
	syntax *syntaxError // where it stops being TOML; nil if it does not
}

// syntaxError is a place and what go-toml says is wrong there.
type syntaxError struct {
	at      span
	message string
}

// parseTOML takes a file apart, up to its end or its first syntax error.
func parseTOML(data []byte) *document {
	doc := &document{data: data, tables: make([]table, 1)}
	var p unstable.Parser
	p.Reset(data)
	for p.NextExpression() {
		switch e := p.Expression(); e.Kind {
		case unstable.KeyValue:
			last := &doc.tables[len(doc.tables)-1]
			name, at := keyOf(e)
			last.entries = append(last.entries, entry{name, at, valueOf(e.Value(), doc.placeOfValue(e, at))})
		case unstable.Table, unstable.ArrayTable:
			name, at := keyOf(e)
			doc.tables = append(doc.tables, table{name: name, at: at, many: e.Kind == unstable.ArrayTable})
		}
	}
	if err := p.Error(); err != nil {
		doc.syntax = &syntaxError{message: err.Error()}
		if bad, ok := errors.AsType[*unstable.ParserError](err); ok {
			raw := p.Range(bad.Highlight)
			doc.syntax = &syntaxError{span{int(raw.Offset), int(raw.Length)}, bad.Message}
		}
		// An error at the end of the file is marked on the last character before it.
		at := &doc.syntax.at
		at.offset = max(0, min(at.offset, len(data)-1))
		at.length = max(0, min(at.length, len(data)-at.offset))
	}
	return doc
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

// placeOfValue returns the place of the value in "key = value". It is what follows the equals
// sign, because go-toml keeps no range for lists and tables.
func (doc *document) placeOfValue(e *unstable.Node, key span) span {
	end := int(e.Raw.Offset + e.Raw.Length)
	start := key.offset + key.length
	for start < end && strings.IndexByte(" \t=", doc.data[start]) >= 0 {
		start++
	}
	return span{start, end - start}
}

// valueOf copies a value out of the parser, which reuses its nodes. A list inside another value
// has no place of its own, so it gets the place of that value.
func valueOf(n *unstable.Node, at span) value {
	inside := func(child *unstable.Node, otherwise span) span {
		if child.Raw.Length == 0 {
			return otherwise
		}
		return span{int(child.Raw.Offset), int(child.Raw.Length)}
	}
	v := value{form: 1 << n.Kind, at: at, text: string(n.Data)}
	switch n.Kind {
	case unstable.Integer:
		// The hexadecimal, octal and binary notations of TOML, and its underscores, are those of Go.
		if number, err := strconv.ParseInt(v.text, 0, 64); err == nil {
			v.text = strconv.FormatInt(number, 10)
		}
	case unstable.Array:
		for it := n.Children(); it.Next(); {
			v.list = append(v.list, valueOf(it.Node(), inside(it.Node(), at)))
		}
	case unstable.InlineTable:
		for it := n.Children(); it.Next(); {
			name, place := keyOf(it.Node())
			child := it.Node().Value()
			if child.Kind != unstable.InlineTable {
				place = inside(child, place)
			}
			_, key := keyOf(it.Node())
			v.entries = append(v.entries, entry{name, key, valueOf(child, place)})
		}
	}
	return v
}

// position returns the line and the column (in characters) of an offset, both from 1.
func (doc *document) position(offset int) (line, column int) {
	before := doc.data[:offset]
	start := bytes.LastIndexByte(before, '\n') + 1
	return 1 + bytes.Count(before, []byte("\n")), 1 + utf8.RuneCount(before[start:])
}

// lineAround returns the line that contains offset, and where it starts.
func (doc *document) lineAround(offset int) (line string, start int) {
	start = bytes.LastIndexByte(doc.data[:offset], '\n') + 1
	before, _, _ := bytes.Cut(doc.data[start:], []byte("\n"))
	return string(before), start
}

// sourceLine returns the line around offset, fit to be shown.
func (doc *document) sourceLine(offset int) string {
	line, _ := doc.lineAround(offset)
	line = strings.TrimSuffix(line, "\r")
	// A line that sets something called "password" is not repeated in a journal.
	if i := strings.IndexAny(line, "=:"); i >= 0 && meansSecret(line[:i]) {
		line = line[:i+1] + strings.Repeat("*", utf8.RuneCountInString(line[i+1:]))
	}
	return withoutSecrets(printable(line))
}

// firstInvalidUTF8 returns the offset of the first byte that is no text, or -1.
func firstInvalidUTF8(text string) int {
	for i, r := range text {
		if r == 0 || r == utf8.RuneError && !strings.HasPrefix(text[i:], string(utf8.RuneError)) {
			return i
		}
	}
	return -1
}

// textOf returns the text at some places of the file, each on one line.
func (doc *document) textOf(spans []span) string {
	texts := make([]string, len(spans))
	for i, at := range spans {
		texts[i] = strings.Join(strings.Fields(string(doc.data[at.offset:at.offset+at.length])), " ")
	}
	return strings.Join(texts, ", ")
}
