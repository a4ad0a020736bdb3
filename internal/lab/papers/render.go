package papers

import (
	"encoding/csv"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// Text writes tables for people: each figure as measured, and beside it whether
// it is what the paper prints.
func Text(w io.Writer, tables []Table) error {
	var b strings.Builder
	for _, t := range tables {
		fmt.Fprintf(&b, "%s (%s)\n  counted: %s\n\n", t.Title, t.Source, t.Convention)
		lines := [][]string{append([]string{""}, t.Columns...)}
		for _, r := range t.Rows {
			line := []string{r.Name}
			for _, c := range r.Cells {
				line = append(line, c.Text())
			}
			lines = append(lines, line)
		}
		align(&b, lines)
		b.WriteByte('\n')
	}
	compared, different := Tally(tables)
	fmt.Fprintf(&b, "%d published figures were measured anew; %d differ.\n", compared, different)
	_, err := io.WriteString(w, b.String())
	return err
}

// Text is a cell for people.
func (c Cell) Text() string {
	switch {
	case !c.compared():
		return c.Measured
	case c.Corrected != "" && c.Equal():
		return fmt.Sprintf("%s = (misprinted as %s)", c.Measured, c.Published)
	case c.Equal():
		return c.Measured + " ="
	case c.Corrected != "":
		return fmt.Sprintf("%s ≠ %s (misprinted as %s)", c.Measured, c.Corrected, c.Published)
	default:
		return fmt.Sprintf("%s ≠ %s", c.Measured, c.Published)
	}
}

// align writes lines of cells as columns. The last one needs no padding.
func align(b *strings.Builder, lines [][]string) {
	var widths []int
	for _, line := range lines {
		for i, cell := range line {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	for _, line := range lines {
		text := ""
		for i, cell := range line {
			text += "  " + cell + strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell))
		}
		b.WriteString(strings.TrimRight(text, " "))
		b.WriteByte('\n')
	}
}

// CSV writes one line for each cell.
func CSV(w io.Writer, tables []Table) error {
	out := csv.NewWriter(w)
	if err := out.Write([]string{"source", "table", "row", "column", "published", "corrected", "measured", "equal"}); err != nil {
		return err
	}
	for _, t := range tables {
		for _, r := range t.Rows {
			for i, c := range r.Cells {
				equal := ""
				if c.compared() {
					equal = fmt.Sprint(c.Equal())
				}
				if err := out.Write([]string{t.Source, t.Title, r.Name, t.Columns[i], c.Published, c.Corrected, c.Measured, equal}); err != nil {
					return err
				}
			}
		}
	}
	out.Flush()
	return out.Error()
}
