// Package papers holds the tables and examples of the literature that topdog began
// with, as printed there. It measures each figure again by running the cores in the
// simulator. No figure that is compared comes from a formula.
//
// The sources are
//
//	001  a report that compares the regular and a modified bully algorithm
//	004  Kabashi, Zeqiri and Zabeli, who restate Murshed and Allen's candidate
//	     sets and let the smallest id win
//
// The papers count messages from process to process, each by its own convention.
// Every table names the convention that it follows. Additions of topdog to an
// algorithm, and messages that a paper does not count, have columns of their own.
//
// What the papers print is in published.go; what is run to measure it, in run.go.
package papers

import (
	"encoding/csv"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"

	"topdog/internal/lab/sim"
)

// Table is one table or example of a paper.
type Table struct {
	Source     string   `json:"source"` // which paper, and where in it
	Title      string   `json:"title"`
	Convention string   `json:"convention"` // what is counted
	Columns    []string `json:"columns"`
	Rows       []Row    `json:"rows"`
}

// Row is one line of a table.
type Row struct {
	Name  string `json:"name"`
	Cells []Cell `json:"cells"`
}

// Cell is one figure, in print and as measured.
type Cell struct {
	// Published is what the paper prints; empty if it prints nothing and the
	// figure is only shown.
	Published string `json:"published,omitempty"`
	// Corrected is what the paper should have printed, where it is a misprint.
	Corrected string `json:"corrected,omitempty"`
	Measured  string `json:"measured"`
}

// All measures everything. The error says which run did not end as its
// paper says it must, with a new leader on which all agree.
func All() ([]Table, error) {
	var all []Table
	for i := range tables {
		t, err := tables[i].measure()
		if err != nil {
			return nil, err
		}
		all = append(all, t)
	}
	return all, nil
}

func (p *published) measure() (Table, error) {
	t := Table{Source: p.source, Title: p.title, Convention: p.convention}
	for _, c := range p.columns {
		t.Columns = append(t.Columns, c.title())
	}
	for _, r := range p.rows {
		var counts []sim.Counts
		for i := range r.runs {
			c, err := r.runs[i].Counts()
			if err != nil {
				return t, err
			}
			counts = append(counts, c)
		}
		measured := Row{Name: r.name}
		for i, c := range p.columns {
			cell := r.cell(i)
			if c.of != nil {
				cell.Measured = c.of(counts)
			} else {
				cell.Measured = strconv.Itoa(c.count.of(&counts[c.run]))
			}
			measured.Cells = append(measured.Cells, cell)
		}
		t.Rows = append(t.Rows, measured)
	}
	return t, nil
}

// cell is what the row prints in a column.
func (r *row) cell(column int) Cell {
	if column >= len(r.figures) {
		return Cell{}
	}
	published, corrected, _ := strings.Cut(r.figures[column], " meant ")
	return Cell{Published: published, Corrected: corrected}
}

// Figure is one that a paper prints for a run.
type Figure struct {
	Run
	Source     string // which paper, and where in it
	Counted    string // what the paper counts here, such as all messages
	Convention string
	Count      func(*sim.Counts) int

	printed Cell
}

// Cell is the figure in print, and as counted in a run.
func (f *Figure) Cell(c *sim.Counts) Cell {
	return Cell{f.printed.Published, f.printed.Corrected, strconv.Itoa(f.Count(c))}
}

// Figures returns those that are about a group which lacks nobody but who crashes or joins, and has a new leader then.
func Figures() (all []Figure) {
	for _, t := range tables {
		for _, r := range t.rows {
			for i, c := range t.columns {
				run, cell := r.runs[c.run], r.cell(i)
				if c.of != nil || !cell.compared() || len(run.Absent) > 0 || run.Noticer == 0 && run.Joins == 0 {
					continue
				}
				source := t.source
				if figure, _, ok := strings.Cut(r.name, ","); ok && strings.HasPrefix(figure, "figure ") {
					source = "001, " + figure
				}
				all = append(all, Figure{run, source, c.count.name, t.convention, c.count.of, cell})
			}
		}
	}
	return all
}

// compared reports whether there is a published figure.
func (c Cell) compared() bool { return c.Published != "" }

// Equal reports whether the measurement is what the paper says, or means.
func (c Cell) Equal() bool {
	if c.Corrected != "" {
		return c.Measured == c.Corrected
	}
	return !c.compared() || c.Measured == c.Published
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

// Tally counts the cells of tables that were compared, and those that differ.
func Tally(tables []Table) (compared, different int) {
	for _, t := range tables {
		for _, r := range t.Rows {
			for _, c := range r.Cells {
				if c.compared() {
					compared++
				}
				if !c.Equal() {
					different++
				}
			}
		}
	}
	return compared, different
}

// Text writes tables for people: each figure as measured, and beside it whether
// it is what the paper prints.
func Text(w io.Writer, tables []Table) error {
	out := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, t := range tables {
		fmt.Fprintf(out, "%s (%s)\n  counted: %s\n\n  \t%s\n", t.Title, t.Source, t.Convention, strings.Join(t.Columns, "\t"))
		for _, r := range t.Rows {
			fmt.Fprint(out, "  ", r.Name)
			for _, c := range r.Cells {
				fmt.Fprint(out, "\t", c.Text())
			}
			fmt.Fprintln(out)
		}
		fmt.Fprintln(out)
	}
	compared, different := Tally(tables)
	fmt.Fprintf(out, "%d published figures were measured anew; %d differ.\n", compared, different)
	return out.Flush()
}

// CSV writes one line for each cell.
func CSV(w io.Writer, tables []Table) error {
	lines := [][]string{{"source", "table", "row", "column", "published", "corrected", "measured", "equal"}}
	for _, t := range tables {
		for _, r := range t.Rows {
			for i, c := range r.Cells {
				equal := ""
				if c.compared() {
					equal = strconv.FormatBool(c.Equal())
				}
				lines = append(lines, []string{t.Source, t.Title, r.Name, t.Columns[i], c.Published, c.Corrected, c.Measured, equal})
			}
		}
	}
	return csv.NewWriter(w).WriteAll(lines)
}
