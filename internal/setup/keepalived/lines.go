package keepalived

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// word is a part of a line between white space or quotes.
type word struct {
	text   string
	column int
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
		case c == '"':
			if quote < 0 {
				quote = i
			} else {
				quote = -1
			}
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

// piece is a part of a line: "{", "}", one of the templates, or what stands between braces.
type piece struct {
	text   string
	column int
}

// templates are the beginnings of what stands in templates of Ansible, Docker and others, and of parameters without a
// value. No keepalived.conf has them.
var templates = []string{"{{", "{%", "${"}

// pieces cuts a line at the braces that are not between double quotes. A quote behind a backslash does not count.
func pieces(line string) (all []piece) {
	quoted, start := false, 0
	add := func(from, to int) {
		text := strings.TrimLeft(line[from:to], blank)
		from = to - len(text)
		if text = strings.TrimRight(text, blank); text != "" {
			all = append(all, piece{text, utf8.RuneCountInString(line[:from]) + 1})
		}
	}
	for i := 0; i < len(line); i++ {
		switch c := line[i]; {
		case c == '\\' && quoted:
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case i+1 < len(line) && slices.Contains(templates, line[i:i+2]):
			add(start, i)
			add(i, i+2)
			i++
			start = i + 1
		case c == '{' || c == '}':
			add(start, i)
			add(i, i+1)
			start = i + 1
		}
	}
	add(start, len(line))
	return all
}

// words splits a piece as keepalived does for all keywords but scripts: double quotes hold a word
// together, and no character has another meaning.
func words(p piece) (all []word) {
	text, at := p.text, 0
	for {
		at += len(text[at:]) - len(strings.TrimLeft(text[at:], blank))
		if at == len(text) {
			return all
		}
		column := p.column + utf8.RuneCountInString(text[:at])
		if text[at] == '"' {
			inside, _, _ := strings.Cut(text[at+1:], `"`)
			all = append(all, word{inside, column})
			at = min(at+len(inside)+2, len(text))
			continue
		}
		end := strings.IndexAny(text[at:], blank+`"`)
		if end < 0 {
			end = len(text) - at
		}
		all = append(all, word{text[at : at+end], column})
		at += end
	}
}

// split splits a text at white space, as a shell does: single and double quotes hold words together, and
// the character behind a backslash has no special meaning. With escapes, a backslash and its letters become the character
// that they mean to keepalived (\n, \t, \x41, …); without, they stay. It reports false if a quote is not closed.
func split(text string, escapes bool) (all []string, ok bool) {
	for {
		text = strings.TrimLeft(text, blank)
		if text == "" {
			return all, true
		}
		var b strings.Builder
		quote := byte(0)
		for text != "" {
			c := text[0]
			text = text[1:]
			switch {
			case c == '\\' && text == "":
				return nil, false
			case c == '\\' && escapes:
				text = unescape(&b, text)
			case c == '\\':
				b.WriteString(`\` + text[:1])
				text = text[1:]
			case quote == 0 && strings.IndexByte(blank, c) >= 0:
				goto end
			case quote == 0 && (c == '"' || c == '\''):
				quote = c
			case c == quote && quote != 0:
				quote = 0
			default:
				b.WriteByte(c)
			}
		}
	end:
		if quote != 0 {
			return nil, false
		}
		all = append(all, b.String())
	}
}

// unescape writes the character that the text behind a backslash means, and returns the rest of the text.
func unescape(b *strings.Builder, text string) string {
	number := func(from, most int, base byte) string {
		value, i := byte(0), from
		for ; i < len(text) && i < from+most && digit(text[i]) < base; i++ {
			value = value*base + digit(text[i])
		}
		b.WriteByte(value)
		return text[i:]
	}
	const letters, meanings = "abEfnrtv", "\a\b\x1b\f\n\r\t\v"
	switch c := text[0]; {
	case c == 'x' && len(text) > 1 && digit(text[1]) < 16:
		return number(1, 2, 16)
	case digit(c) < 8:
		return number(0, 3, 8)
	case c == 'c' && len(text) > 1:
		b.WriteByte(text[1] & 0x1f)
		return text[2:]
	case strings.IndexByte(letters, c) >= 0:
		b.WriteByte(meanings[strings.IndexByte(letters, c)])
	default:
		b.WriteByte(c)
	}
	return text[1:]
}

// digit returns the value of a hexadecimal digit, or 255 for anything else.
func digit(c byte) byte {
	switch {
	case '0' <= c && c <= '9':
		return c - '0'
	case 'a' <= c && c <= 'f':
		return c - 'a' + 10
	case 'A' <= c && c <= 'F':
		return c - 'A' + 10
	}
	return 255
}
