package keepalived

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"
)

// The limits. Nobody writes files of that size by hand, and keepalived has similar ones.
const (
	maxBytes    = 1 << 20 // of all files, after substitution
	maxIncludes = 16      // of files in files
	maxBlocks   = 16      // of blocks in blocks
	maxLine     = 64 << 10
	maxReplaced = 1000 // parameters in one line
)

// statement is a keyword, what follows it, and its block.
type statement struct {
	place  Place
	words  []word
	raw    string // what stands behind the keyword, with its quotes
	block  block
	opened Place // where its block begins; its line is 0 if it has none
}

func (s *statement) keyword() string { return s.words[0].text }

// text returns the word at an index, or "".
func (s *statement) text(i int) string {
	if i >= len(s.words) {
		return ""
	}
	return s.words[i].text
}

// options are the words behind the one at an index.
func (s *statement) options(i int) (texts []string) {
	for i++; i < len(s.words); i++ {
		texts = append(texts, s.words[i].text)
	}
	return texts
}

// at is the place of a word.
func (s *statement) at(i int) Place {
	p := s.place
	if i < len(s.words) {
		p.column = s.words[i].column
	}
	return p
}

// block has the statements between two braces, or those of a whole file.
type block []*statement

// all returns the statements of a keyword.
func (b block) all(keyword string) (found block) {
	for _, s := range b {
		if s.keyword() == keyword {
			found = append(found, s)
		}
	}
	return found
}

// last returns the last statement of a keyword, or nil.
func (b block) last(keyword string) *statement {
	if all := b.all(keyword); len(all) > 0 {
		return all[len(all)-1]
	}
	return nil
}

// named returns the first statement of a keyword that has this name, or nil. keepalived ignores a second one.
func (b block) named(keyword, name string) *statement {
	for _, s := range b.all(keyword) {
		if s.text(1) == name {
			return s
		}
	}
	return nil
}

// reader turns lines into statements.
type reader struct {
	machine Machine
	params  map[string]string // what was defined by $NAME=VALUE
	defines bool              // the next line belongs to a definition of several lines, which is not converted
	notes   []Note

	top   statement    // its block is the whole file
	open  []*statement // the blocks around the next statement
	bytes int
	files []string // that were read, each once
}

// read reads a file, and the files that it includes.
func read(path string, m Machine) (*reader, error) {
	r := &reader{machine: m, params: map[string]string{"_INSTANCE": m.Name, "_HASH": "#", "_BANG": "!"}}
	r.open = []*statement{&r.top}
	data, err := m.ReadFile(path, maxBytes)
	if err != nil {
		return nil, fmt.Errorf("read keepalived's configuration: %w", err)
	}
	if err := r.file(path, data, 0); err != nil {
		return nil, err
	}
	if open := r.open[len(r.open)-1]; open != &r.top {
		return nil, mistake(open.opened, `write a "}" where it ends`, "the block of %s never ends", open.keyword())
	}
	return r, nil
}

// file reads the lines of one file.
func (r *reader) file(path string, data []byte, depth int) error {
	at := Place{file: path}
	if !slices.Contains(r.files, path) {
		r.files = append(r.files, path)
	}
	if r.bytes += len(data); r.bytes > maxBytes {
		return mistake(at, "", "the files have more than %d bytes, so they cannot be the right ones", maxBytes)
	}
	for line := range strings.Lines(string(data)) {
		at.line++
		at.column = 1
		line = strings.TrimRight(line, "\r\n")
		if len(line) > maxLine || strings.ContainsRune(line, 0) || !utf8.ValidString(line) {
			return mistake(at, "", "this is no line of text")
		}
		text, unclosed := withoutComment(line)
		if unclosed > 0 {
			at.column = unclosed
			return mistake(at, `write a second "`, "this quote is never closed")
		}
		if err := r.line(at, text, depth); err != nil {
			return err
		}
	}
	return nil
}

// line reads a line from which the comment was removed.
func (r *reader) line(at Place, text string, depth int) error {
	if r.defines {
		r.defines = strings.HasSuffix(text, `\`)
		return nil
	}
	begin := func() (begins string) {
		begins = strings.TrimLeft(text, blank)
		at.column = utf8.RuneCountInString(text[:len(text)-len(begins)]) + 1
		return begins
	}
	left := begin()
	if strings.HasPrefix(left, "@") {
		rest, applies := r.condition(at, left)
		if !applies {
			return nil
		}
		text = strings.Repeat(" ", len(text)-len(rest)) + rest // columns stay those of the line
		left = begin()
	}
	if strings.HasPrefix(left, "$") && r.define(at, left) {
		return nil
	}
	if strings.HasPrefix(left, "~") {
		keyword, _, _ := strings.Cut(left, "(")
		r.look(at, keyword, "the line is not repeated: write what it stands for, line by line")
		return nil
	}
	changed, err := r.replace(at, text)
	if err != nil {
		return err
	}
	if r.bytes += len(changed) - len(text); r.bytes > maxBytes {
		return mistake(at, "", "with its parameters the file has more than %d bytes", maxBytes)
	}
	if pattern, ok := included(changed); ok {
		return r.include(at, pattern, depth)
	}
	return r.statements(at, changed, changed != text)
}

// look notes that somebody has to look at a line.
func (r *reader) look(at Place, keyword, format string, args ...any) {
	r.notes = append(r.notes, Note{Place: at, Keyword: printable(keyword), Text: fmt.Sprintf(format, args...), Act: true})
}

// condition looks at a line that counts on some machines only, and returns what follows the name.
func (r *reader) condition(at Place, text string) (rest string, applies bool) {
	i := strings.IndexAny(text, blank)
	if i < 0 {
		return "", false
	}
	name, not := strings.CutPrefix(text[1:i], "^")
	applies = (name == r.machine.Name) != not
	what := "is left out"
	if applies {
		what = "counts"
	}
	r.look(at, text[:i], "the line %s, because this board is called %s. If keepalived was started with -i, see whether that is right",
		what, r.machine.Name)
	return strings.TrimLeft(text[i:], blank), applies
}

// included returns the pattern of a line that includes files. The last letter of the keyword says what is an error; see
// keepalived.conf(5).
func included(text string) (pattern string, ok bool) {
	keyword, pattern, _ := strings.Cut(strings.ReplaceAll(strings.Trim(text, blank), "\t", " "), " ")
	ok = slices.Contains(strings.Fields(includes), keyword)
	return strings.Trim(pattern, ` "`), ok && pattern != ""
}

// include reads the files that a line names, as if their lines stood there.
func (r *reader) include(at Place, pattern string, depth int) error {
	if depth == maxIncludes {
		return mistake(at, "", "files are included more than %d deep", maxIncludes)
	}
	path := pattern
	if !filepath.IsAbs(path) {
		path = filepath.Join(filepath.Dir(at.file), path)
	}
	found, err := r.machine.Glob(path)
	if err != nil || len(found) == 0 {
		r.look(at, "include", "no file was read: there is none like %s. (Lists in braces are not understood here)", printable(path))
	}
	for _, file := range found {
		data, err := r.machine.ReadFile(file, maxBytes)
		if err != nil {
			r.look(at, "include", "%s was not read: %v", printable(file), err)
			continue
		}
		if err := r.file(file, data, depth+1); err != nil {
			return err
		}
	}
	return nil
}

// statements splits a line into statements, and opens and closes blocks. In a line in which parameters were replaced, nobody
// could find the column.
func (r *reader) statements(at Place, text string, replaced bool) error {
	var last *statement // that the next word belongs to
	for _, w := range words(text) {
		if replaced {
			w.column = at.column
		}
		place := at
		place.column = w.column
		around := r.open[len(r.open)-1]
		switch {
		case !w.brace && last == nil:
			last = &statement{place: place, words: []word{w}}
			around.block = append(around.block, last)
			continue
		case !w.brace:
			last.words = append(last.words, w)
			last.raw = text[last.words[0].to:w.to]
			continue
		case w.text == "{" && (len(around.block) == 0 || around.block[len(around.block)-1].opened.line != 0):
			return mistake(place, "write a keyword before it", "this block has no keyword")
		case w.text == "{" && len(r.open) > maxBlocks:
			return mistake(place, "", "blocks are more than %d deep", maxBlocks)
		case w.text == "{":
			opened := around.block[len(around.block)-1]
			opened.opened = place
			r.open = append(r.open, opened)
		case w.text == "}" && around == &r.top:
			return mistake(place, "delete it, or look for a missing {", "this brace closes nothing")
		case w.text == "}":
			r.open = r.open[:len(r.open)-1]
		default:
			return mistake(place, "convert the file that the template becomes, or write the value",
				"this is a template, or a parameter without a value")
		}
		last = nil
	}
	return nil
}

// define reads the definition of a parameter, $NAME=VALUE. It reports false if the line is something else.
func (r *reader) define(at Place, text string) bool {
	name := parameterName(text[1:])
	value, found := strings.CutPrefix(text[1+len(name):], "=")
	if name == "" || !found {
		return false
	}
	delete(r.params, name)
	if r.defines = strings.HasSuffix(value, `\`); r.defines {
		r.look(at, "$"+name, "a definition of several lines is not converted: write its lines where it is used")
	} else {
		r.params[name] = strings.TrimLeft(value, blank)
	}
	return true
}

// parameterName returns the name that a text begins with, or "".
func parameterName(text string) string {
	for i := range len(text) {
		if c := text[i]; c != '_' && !isLetter(c) && (i == 0 || c < '0' || c > '9') {
			return text[:i]
		}
	}
	return text
}

func isLetter(c byte) bool { return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' }

// replace replaces parameters, $NAME and ${NAME}, by their values, and parameters in these values too. A parameter that is
// not defined stays as it is.
func (r *reader) replace(at Place, text string) (string, error) {
	from, replaced := 0, 0
	for {
		i := strings.IndexByte(text[from:], '$')
		if i < 0 {
			return text, nil
		}
		from += i
		value, length, ok := r.parameter(at, text[from+1:])
		if !ok {
			from++
			continue
		}
		text = text[:from] + value + text[from+1+length:]
		if replaced++; replaced > maxReplaced || len(text) > maxLine {
			return "", mistake(at, "look for a parameter that contains itself", "the parameters of this line make it endless")
		}
	}
}

// parameter returns the value of the parameter that a text behind a "$" names, and the length of that name.
func (r *reader) parameter(at Place, text string) (value string, length int, ok bool) {
	name := parameterName(text)
	length = len(name)
	if inside, braces := strings.CutPrefix(text, "{"); braces {
		name, _, ok = strings.Cut(inside, "}")
		length = len(name) + len("{}")
	} else {
		ok = length == len(text) || strings.IndexByte(blank, text[length]) >= 0
	}
	if name == "_PWD" {
		return filepath.Dir(at.file), length, ok
	}
	value, defined := r.params[name]
	return value, length, ok && defined
}

// printable joins words for a message, without what could confuse a terminal.
func printable(words ...string) string {
	const most = 60
	text := strings.Map(func(c rune) rune {
		if c < ' ' || c >= 0x7f && c < 0xa0 {
			return utf8.RuneError
		}
		return c
	}, strings.Join(words, " "))
	if runes := []rune(text); len(runes) > most {
		return string(runes[:most]) + "…"
	}
	return text
}
