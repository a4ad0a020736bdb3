package keepalived

import (
	"strings"
	"unicode/utf8"
)

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
