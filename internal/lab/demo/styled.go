package demo

import (
	"strings"
	"unicode/utf8"
)

// style is how a piece of text looks.
type style uint8

const (
	plain style = iota
	bold
	dim
	green
	yellow
	red
	marked // the floating address: one must find it at a glance
)

// codes are the parameters of SGR (ECMA-48, section 8.3.117). Only the sixteen
// colours that every theme of every terminal defines are used.
var codes = [...]struct{ colour, mono string }{
	plain:  {"", ""},
	bold:   {"1", "1"},
	dim:    {"2", "2"},
	green:  {"1;32", "1"},
	yellow: {"33", ""},
	red:    {"1;31", "1"},
	marked: {"1;7;32", "1;7"},
}

// span is a piece of text in one style, and row is a row of the screen.
type (
	span struct {
		text  string
		style style
	}
	row []span
)

func text(s string) row               { return row{{s, plain}} }
func styled(s string, look style) row { return row{{s, look}} }

// width counts characters; all that the picture uses are one column wide.
func (r row) width() (n int) {
	for _, s := range r {
		n += utf8.RuneCountInString(s.text)
	}
	return n
}

// add appends spans.
func (r row) add(more ...row) row {
	for _, m := range more {
		r = append(r, m...)
	}
	return r
}

// pad fills up to a width on the right.
func (r row) pad(width int) row {
	if missing := width - r.width(); missing > 0 {
		r = append(r, span{strings.Repeat(" ", missing), plain})
	}
	return r
}

// centre puts the row in the middle of a width.
func (r row) centre(width int) row {
	left := max(0, (width-r.width())/2)
	return append(row{{strings.Repeat(" ", left), plain}}, r...).pad(width)
}

// cut shortens the row to a width.
func (r row) cut(width int) (short row) {
	for _, s := range r {
		if n := utf8.RuneCountInString(s.text); n > width {
			s.text = string([]rune(s.text)[:max(0, width)])
		}
		width -= utf8.RuneCountInString(s.text)
		if s.text != "" {
			short = append(short, s)
		}
	}
	return short
}

// palette is what the terminal may be asked for.
type palette int

const (
	noEscapes palette = iota // nothing but text
	mono                     // bold and reverse, for NO_COLOR
	colours
)

// render makes what is sent to a terminal.
func (r row) render(p palette) string {
	var b strings.Builder
	for _, s := range r {
		code := ""
		switch p {
		case mono:
			code = codes[s.style].mono
		case colours:
			code = codes[s.style].colour
		}
		if code == "" {
			b.WriteString(s.text)
			continue
		}
		b.WriteString("\x1b[" + code + "m" + s.text + "\x1b[0m")
	}
	return b.String()
}
