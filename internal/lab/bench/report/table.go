package report

import (
	"fmt"
	"html"
	"strings"
	"unicode/utf8"
)

// width is of a terminal, in characters.
const width = 100

// section is a part of the report as people read it: of the same content, Text makes
// what fits a terminal and Markdown what fits a page.
type section struct {
	title  string
	level  int    // 1 for what has a heading of its own, 2 for what belongs to it
	intro  string // one paragraph, or none
	table  *table
	plain  *table // what a terminal shows instead, if set
	notes  []string
	config []System // shown whole, on pages only
}

// table is rows of cells below a head. A cell of the head may have two lines, and
// columns whose first line is the same have it in common.
type table struct {
	head []string
	text map[int]bool // columns of words, which stand at the left; figures stand at the right
	wrap int          // the column that is made narrower if the table is too wide
	cap  int          // what no column of words is wider than, if it is not 0
	rows [][]string   // one cell alone is a line for itself
}

func newTable(wrap int, text []int, head ...string) *table {
	t := &table{head: head, text: make(map[int]bool), wrap: wrap}
	for _, i := range text {
		t.text[i] = true
	}
	return t
}

func (t *table) add(cells ...string) { t.rows = append(t.rows, cells) }

// heads splits a cell of the head into its two lines.
func heads(cell string) (group, own string) {
	if group, own, ok := strings.Cut(cell, "\n"); ok {
		return group, own
	}
	return "", cell
}

// gap is the number of blanks before a column: columns of a group stand closer.
func (t *table) gap(column int) int {
	if column == 0 {
		return 0
	}
	before, _ := heads(t.head[column-1])
	group, _ := heads(t.head[column])
	if group != "" && group == before {
		return 1
	}
	return 2
}

// widths measures the columns, and narrows the one that may be broken.
func (t *table) widths() []int {
	list := make([]int, len(t.head))
	for i, h := range t.head {
		_, own := heads(h)
		list[i] = letters(own)
	}
	for _, row := range t.rows {
		if len(row) == 1 {
			continue
		}
		for i, cell := range row {
			list[i] = max(list[i], letters(cell))
		}
	}
	for i := range list {
		if t.text[i] && t.cap > 0 && i != t.wrap {
			list[i] = min(list[i], t.cap)
		}
	}
	for from := 0; from < len(t.head); {
		group, until, has := t.span(from, list)
		list[until-1] += max(0, letters(group)-has)
		from = until
	}
	all := 0
	for i, w := range list {
		all += w + t.gap(i)
	}
	list[t.wrap] = max(10, min(list[t.wrap], list[t.wrap]+width-all))
	return list
}

// span is the columns from one to another that have a group in common, and what
// room they take.
func (t *table) span(from int, widths []int) (group string, until, room int) {
	group, _ = heads(t.head[from])
	until, room = from+1, widths[from]
	for group != "" && until < len(t.head) {
		if g, _ := heads(t.head[until]); g != group {
			break
		}
		room += t.gap(until) + widths[until]
		until++
	}
	return group, until, room
}

// write writes the table for a terminal.
func (t *table) write(b *strings.Builder) {
	widths := t.widths()
	var groups, own, rule strings.Builder
	for from := 0; from < len(t.head); {
		group, until, room := t.span(from, widths)
		left := (room - letters(group)) / 2
		line := blanks(t.gap(from)) + blanks(left) + group
		if group != "" && until > from+1 {
			// Strokes say how far the group reaches.
			line = blanks(t.gap(from)) + strokes(left) + group + strokes(room-left-letters(group))
		}
		groups.WriteString(line + blanks(t.gap(from)+room-letters(line)))
		from = until
	}
	for i, h := range t.head {
		_, h = heads(h)
		own.WriteString(blanks(t.gap(i)) + t.pad(i, h, widths[i]))
		rule.WriteString(blanks(t.gap(i)) + strings.Repeat("-", widths[i]))
	}
	for _, line := range []string{groups.String(), own.String(), rule.String()} {
		if line = strings.TrimRight(line, " "); line != "" {
			b.WriteString(line + "\n")
		}
	}
	for _, row := range t.rows {
		t.row(b, row, widths)
	}
}

// row writes a row, in as many lines as its longest words need.
func (t *table) row(b *strings.Builder, row []string, widths []int) {
	if len(row) == 1 {
		b.WriteString(row[0] + "\n")
		return
	}
	cells, height := make([][]string, len(row)), 1
	for i, cell := range row {
		cells[i] = []string{cell}
		if t.text[i] {
			cells[i] = fold(cell, widths[i])
		}
		height = max(height, len(cells[i]))
	}
	for n := range height {
		var line strings.Builder
		for i := range row {
			cell := ""
			if n < len(cells[i]) {
				cell = cells[i][n]
			}
			line.WriteString(blanks(t.gap(i)) + t.pad(i, cell, widths[i]))
		}
		b.WriteString(strings.TrimRight(line.String(), " ") + "\n")
	}
}

func (t *table) pad(column int, cell string, width int) string {
	if t.text[column] {
		return cell + blanks(width-letters(cell))
	}
	return blanks(width-letters(cell)) + cell
}

func (t *table) markdown(b *strings.Builder) {
	b.WriteString("|")
	for _, h := range t.head {
		b.WriteString(" " + mark(strings.TrimSpace(strings.ReplaceAll(h, "\n", " "))) + " |")
	}
	b.WriteString("\n|")
	for i := range t.head {
		if t.text[i] {
			b.WriteString(" --- |")
		} else {
			b.WriteString(" ---: |")
		}
	}
	b.WriteString("\n")
	for _, row := range t.rows {
		b.WriteString("|")
		for _, cell := range row {
			b.WriteString(" " + mark(cell) + " |")
		}
		b.WriteString("\n")
	}
}

func letters(s string) int     { return utf8.RuneCountInString(s) }
func blanks(n int) string      { return strings.Repeat(" ", max(0, n)) }
func strokes(n int) string     { return strings.Repeat("-", max(0, n)) }
func percent(p float64) string { return fmt.Sprintf("%.3g %%", 100*p) }

// fold breaks words into lines that are not longer than width, if the words are not.
// All lines but the first begin with two blanks. There is at least one line.
func fold(s string, width int) []string {
	var lines []string
	line := ""
	for _, word := range strings.Fields(s) {
		switch {
		case strings.TrimSpace(line) == "":
			line += word
		case letters(line)+1+letters(word) > width:
			lines = append(lines, line)
			line = "  " + word
		default:
			line += " " + word
		}
	}
	return append(lines, line)
}

// clean makes a name from outside fit for a line of a terminal or of an XML file: what
// steers a terminal, and what is no character, becomes a question mark.
func clean(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t' || r == '\r':
			return ' '
		case r < ' ' || r >= 0x7f && r < 0xa0 || r == utf8.RuneError || r == 0xfffe || r == 0xffff:
			return '?'
		}
		return r
	}, s)
}

// mark writes words for markdown, so that nothing in them is taken for more than words.
func mark(s string) string {
	return markdownWords.Replace(html.EscapeString(s))
}

var markdownWords = strings.NewReplacer(
	"&#34;", `"`, "&#39;", "'", // html writes them as numbers, which need not be
	"|", `\|`, "*", `\*`, "_", `\_`, "`", "\\`", "[", `\[`, "]", `\]`, `\`, `\\`,
)
