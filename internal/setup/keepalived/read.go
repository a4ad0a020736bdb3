package keepalived

import (
	"strings"
	"unicode/utf8"
)

// maxLine bounds what is done for one line. Nobody writes longer ones.
const maxLine = 64 << 10

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
	top  statement    // its block is the whole file
	open []*statement // the blocks around the next statement
}

// read reads a file.
func read(path string, data []byte) (block, error) {
	var r reader
	r.open = []*statement{&r.top}
	at := Place{file: path}
	for line := range strings.Lines(string(data)) {
		at.line++
		at.column = 1
		line = strings.TrimRight(line, "\r\n")
		if len(line) > maxLine || strings.ContainsRune(line, 0) || !utf8.ValidString(line) {
			return nil, mistake(at, "", "this is no line of text")
		}
		text, unclosed := withoutComment(line)
		if unclosed > 0 {
			at.column = unclosed
			return nil, mistake(at, `write a second "`, "this quote is never closed")
		}
		if err := r.statements(at, text); err != nil {
			return nil, err
		}
	}
	if open := r.open[len(r.open)-1]; open != &r.top {
		return nil, mistake(open.opened, `write a "}" where it ends`, "the block of %s never ends", open.keyword())
	}
	return r.top.block, nil
}

// statements splits a line into statements, and opens and closes blocks.
func (r *reader) statements(at Place, text string) error {
	var last *statement // that the next word belongs to
	for _, w := range words(text) {
		at.column = w.column
		around := r.open[len(r.open)-1]
		switch {
		case !w.brace && last == nil && strings.ContainsAny(w.text[:min(1, len(w.text))], "$@~"):
			return mistake(at, "write what keepalived makes of it into a copy of the file, and convert that",
				"keepalived makes other lines of this one, by a parameter, a condition or a sequence")
		case !w.brace && last == nil:
			last = &statement{place: at, words: []word{w}}
			around.block = append(around.block, last)
			continue
		case !w.brace:
			last.words = append(last.words, w)
			last.raw = text[last.words[0].to:w.to]
			continue
		case w.text == "{" && (len(around.block) == 0 || around.block[len(around.block)-1].opened.line != 0):
			return mistake(at, "write a keyword before it", "this block has no keyword")
		case w.text == "{":
			opened := around.block[len(around.block)-1]
			opened.opened = at
			r.open = append(r.open, opened)
		case w.text == "}" && around == &r.top:
			return mistake(at, "delete it, or look for a missing {", "this brace closes nothing")
		case w.text == "}":
			r.open = r.open[:len(r.open)-1]
		default:
			return mistake(at, "convert the file that the template becomes, or write the value",
				"this is a template, or a parameter without a value")
		}
		last = nil
	}
	return nil
}

// blank are the characters that separate words.
const blank = " \t\r\f\v"

// withoutComment cuts a comment from a line. Outside of double quotes a "\#" is a plain "#", and so is
// "\!". It reports the column of a quote that is never closed, or 0.
func withoutComment(line string) (text string, unclosed int) {
	var b strings.Builder
	quote := -1
	for i := 0; i < len(line); i++ {
		c := line[i]
		switch {
		case c == '"' && quote < 0:
			quote = i
		case c == '"':
			quote = -1
		case c == '\\' && i+1 < len(line):
			next := line[i+1]
			i++
			if quote >= 0 || next != '#' && next != '!' {
				b.WriteByte(c)
			}
			c = next
		case (c == '#' || c == '!') && quote < 0:
			return strings.TrimRight(b.String(), blank), 0
		}
		b.WriteByte(c)
	}
	if quote >= 0 {
		unclosed = utf8.RuneCountInString(line[:quote]) + 1
	}
	return strings.TrimRight(b.String(), blank), unclosed
}

// word is a part of a line: what stands between white space, between double quotes, a brace, or the beginning of a template.
type word struct {
	text     string // without quotes
	column   int
	from, to int  // where it stands in the line, in bytes, with its quotes
	brace    bool // it is a brace or a template
}

// words splits a line as keepalived does for all keywords but scripts: double quotes hold a word together, unless they
// stand behind a backslash inside of quotes, and no other character has a meaning.
func words(line string) (all []word) {
	for at := 0; at < len(line); {
		rest, w := line[at:], word{from: at, column: utf8.RuneCountInString(line[:at]) + 1}
		switch n := braceLength(rest); {
		case strings.IndexByte(blank, rest[0]) >= 0:
			at++
			continue
		case n > 0:
			at += n
			w.text, w.brace = rest[:n], true
		case rest[0] == '"':
			n := quotedLength(rest)
			at += n
			w.text = strings.TrimSuffix(rest[1:n], `"`)
		default:
			for at++; at < len(line) && strings.IndexByte(blank+`"`, line[at]) < 0 && braceLength(line[at:]) == 0; at++ {
			}
			w.text = line[w.from:at]
		}
		w.to = at
		all = append(all, w)
	}
	return all
}

// braceLength returns the length of the brace or template that a text begins with, or 0. Templates are those of Ansible, Docker
// and others, and parameters without a value. No keepalived.conf has them.
func braceLength(text string) int {
	for _, brace := range []string{"{{", "{%", "${", "{", "}"} {
		if strings.HasPrefix(text, brace) {
			return len(brace)
		}
	}
	return 0
}

// quotedLength returns the length of the quoted word that a text begins with.
func quotedLength(text string) int {
	for i := 1; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(text)
}

// split splits a text at white space, as a shell does: single and double quotes hold words together, and the character
// behind a backslash has no special meaning. The backslash stays unless escapes is set. It reports false if a quote is not
// closed.
func split(text string, escapes bool) (all []string, ok bool) {
	var b strings.Builder
	begun, escaped, quote := false, false, rune(0)
	for _, c := range text {
		switch {
		case escaped:
			escaped = false
			b.WriteRune(c)
		case c == '\\':
			begun, escaped = true, true
			if !escapes {
				b.WriteRune(c)
			}
		case c == quote:
			quote = 0
		case quote == 0 && (c == '"' || c == '\''):
			begun, quote = true, c
		case quote == 0 && strings.ContainsRune(blank, c):
			if begun {
				all = append(all, b.String())
			}
			b.Reset()
			begun = false
		default:
			begun = true
			b.WriteRune(c)
		}
	}
	if quote != 0 || escaped {
		return nil, false
	}
	if begun {
		all = append(all, b.String())
	}
	return all, true
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
