package console

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// joint is a no-break space, as in "12 s".
const joint = '\u00a0'

// joined replaces blanks by joints.
func joined(text string) string { return strings.ReplaceAll(text, " ", string(joint)) }

// clean makes a text fit for a terminal, as one line.
func clean(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) && r != joint {
			return ' '
		}
		return shown(r)
	}, text)
}

// Printable makes a text fit for a terminal. It keeps the lines and tabs.
func Printable(text string) string {
	return strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' {
			return r
		}
		return shown(r)
	}, text)
}

// shown returns a character as it is sent to a terminal. Names come from other boards, over a network. No control sequence
// in them, and no mark that reverses the direction of a line, may reach the terminal.
func shown(r rune) rune {
	if r == joint || r != utf8.RuneError && unicode.IsPrint(r) {
		return r
	}
	return '?'
}

// PrintableJSON escapes the characters in JSON that are not printable. They can only be in strings. encoding/json does not
// escape DEL, the C1 control characters and marks of direction.
func PrintableJSON(text []byte) []byte {
	clean := make([]byte, 0, len(text))
	for _, r := range string(text) {
		switch {
		case r == '\n' || unicode.IsPrint(r):
			clean = utf8.AppendRune(clean, r)
		case r > 0xffff: // a pair of surrogates (RFC 8259, section 7)
			high, low := utf16.EncodeRune(r)
			clean = fmt.Appendf(clean, `\u%04x\u%04x`, high, low)
		default:
			clean = fmt.Appendf(clean, `\u%04x`, r)
		}
	}
	return clean
}

// cells returns how many columns of a terminal a character takes.
func cells(r rune) int {
	switch {
	case unicode.In(r, unicode.Mn, unicode.Me):
		return 0
	case r < 0x1100:
		return 1
	// Roughly the blocks that are wide in Unicode's EastAsianWidth.txt, so that the row of a board called 台所 is
	// aligned with the others.
	case r <= 0x115f, r >= 0x2e80 && r <= 0xa4cf, r >= 0xac00 && r <= 0xd7a3, r >= 0xf900 && r <= 0xfaff,
		r >= 0xfe30 && r <= 0xfe6f, r >= 0xff00 && r <= 0xff60, r >= 0xffe0 && r <= 0xffe6,
		r >= 0x1f300 && r <= 0x1faff, r >= 0x20000 && r <= 0x3fffd:
		return 2
	}
	return 1
}

// width returns how many columns a text takes.
func width(text string) (n int) {
	for _, r := range text {
		n += cells(r)
	}
	return n
}

// split cuts off as much of a text as fits into most columns, and at least one character.
func split(text string, most int) (head, tail string) {
	taken := 0
	for i, r := range text {
		if taken += cells(r); taken > most && i > 0 {
			return text[:i], text[i:]
		}
	}
	return text, ""
}

// truncate shortens a text to most columns, with an ellipsis.
func truncate(text string, most int) string {
	if width(text) <= most {
		return text
	}
	head, _ := split(text, most-1)
	return head + "…"
}

// pad fills a text up to a width, on the right or on the left.
func pad(text string, to int, left bool) string {
	fill := strings.Repeat(" ", max(0, to-width(text)))
	if left {
		return fill + text
	}
	return text + fill
}

// wrap breaks a text between words into lines of at most room columns. A word that is longer than a line is broken too.
func wrap(text string, room int) (lines []string) {
	room = max(room, 1)
	var line []string
	used := 0
	for _, word := range strings.FieldsFunc(text, func(r rune) bool { return r == ' ' }) {
		if used += 1 + width(word); len(line) > 0 && used <= room {
			line = append(line, word)
			continue
		}
		if len(line) > 0 {
			lines = append(lines, strings.Join(line, " "))
		}
		head, tail := split(word, room)
		for tail != "" {
			lines = append(lines, head)
			head, tail = split(tail, room)
		}
		line, used = []string{head}, width(head)
	}
	return append(lines, strings.Join(line, " "))
}

// style is the look of a line, as parameters of ECMA-48's SGR.
type style string

const (
	plain  style = ""
	strong style = "1"
	dim    style = "2"
	urgent style = "1;31" // bold red
	notice style = "33"   // yellow
	good   style = "1;32" // bold green
)

// page is a text that is built line by line.
type page struct {
	text  strings.Builder
	width int // columns
	color bool
}

// newPage returns an empty page with these options.
func newPage(o Options) page {
	if o.Width <= 0 {
		o.Width = math.MaxInt32
	}
	return page{width: max(o.Width, minWidth), color: o.Color}
}

// paint returns a text in a style.
func (p *page) paint(s style, text string) string {
	if !p.color || s == plain || text == "" {
		return text
	}
	return "\x1b[" + string(s) + "m" + text + "\x1b[0m"
}

// line adds a line, without trailing blanks.
func (p *page) line(s style, text string) {
	text = strings.ReplaceAll(text, string(joint), " ")
	p.text.WriteString(p.paint(s, strings.TrimRight(text, " ")))
	p.text.WriteByte('\n')
}

// heading adds the line above a section.
func (p *page) heading(text string) {
	p.line(plain, "")
	p.line(strong, text)
}

// row is a line of a list: cells that stand in columns, and a text behind them.
type row struct {
	style style
	cells []string
	text  string
}

// list adds rows, indented. The alignment has a character for each column of cells: '>' aligns the column on the right.
func (p *page) list(indent, alignment string, rows []row) {
	widths := make([]int, len(alignment))
	for _, r := range rows {
		for i, cell := range r.cells {
			widths[i] = max(widths[i], width(cell))
		}
	}
	for _, r := range rows {
		label := indent
		for i, cell := range r.cells {
			label += pad(cell, widths[i], alignment[i] == '>') + between
		}
		p.item(r.style, label, r.text)
	}
}

// item adds a text behind a label. Further lines of the text are indented by the width of the label.
func (p *page) item(s style, label, text string) {
	indent := width(label)
	for _, line := range wrap(clean(text), p.width-indent) {
		p.line(s, label+line)
		label = strings.Repeat(" ", indent)
	}
}

// between is between two columns.
const between = "  "

// ago returns how long ago something was.
func ago(ms float64) string {
	text := span(ms)
	if text == "unknown" {
		return text
	}
	return text + joined(" ago")
}

// span returns a length of time in the one or two units that matter. It is never broken.
func span(ms float64) string { return joined(duration(ms)) }

func duration(ms float64) string {
	const (
		second = 1000
		minute = 60 * second
		hour   = 60 * minute
		day    = 24 * hour
	)
	two := func(unit, part float64, unitName, partName string) string {
		n := math.Floor(ms / unit)
		if rest := math.Floor((ms - n*unit) / part); rest > 0 {
			return fmt.Sprintf("%.0f %s %.0f %s", n, unitName, rest, partName)
		}
		return fmt.Sprintf("%.0f %s", n, unitName)
	}
	switch {
	case math.IsNaN(ms) || ms < 0 || ms > 1000*365*day:
		return "unknown"
	case ms < 10:
		return decimal(ms) + " ms"
	case ms < 999.5:
		return fmt.Sprintf("%.0f ms", ms)
	case ms < 10*second:
		return decimal(ms/second) + " s"
	case ms < minute:
		return fmt.Sprintf("%.0f s", math.Floor(ms/second))
	case ms < hour:
		return two(minute, second, "min", "s")
	case ms < day:
		return two(hour, minute, "h", "min")
	default:
		return two(day, hour, "d", "h")
	}
}

// percent returns a percentage. Only exactly zero becomes "0 %".
func percent(p float64) string {
	switch {
	case math.IsNaN(p) || p < 0 || p > 100:
		return "unknown"
	case p > 0 && p < 0.05:
		return joined("less than 0.1 %")
	default:
		return decimal(p) + joined(" %")
	}
}

// decimal returns a number with one decimal place, or without any if that is 0.
func decimal(x float64) string {
	return strconv.FormatFloat(math.Round(x*10)/10, 'f', -1, 64)
}

// milliseconds returns a length of time in milliseconds, to the microsecond.
func milliseconds(ns int64) string {
	return strconv.FormatFloat(float64(ns)/1e6, 'f', 3, 64)
}

// apart returns a short length of time with its unit.
func apart(ns int64) string { return joined(milliseconds(ns) + " ms") }
