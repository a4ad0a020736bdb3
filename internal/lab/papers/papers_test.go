package papers_test

import (
	"io"
	"path/filepath"
	"strings"
	"testing"

	"topdog/internal/lab/assert"
	"topdog/internal/lab/golden"
	"topdog/internal/lab/papers"
	"topdog/internal/lab/sim"
)

// TestAll measures everything that the papers print. What they misprint must come
// out as they mean it.
func TestAll(t *testing.T) {
	tables, err := papers.All()
	assert.NoError(t, err)
	for _, table := range tables {
		for _, row := range table.Rows {
			if len(row.Cells) != len(table.Columns) {
				t.Errorf("%s, %s has %d cells in %d columns", table.Title, row.Name, len(row.Cells), len(table.Columns))
				continue
			}
			for i, cell := range row.Cells {
				if !cell.Equal() {
					t.Errorf("%s (%s), %s, %s: measured %s, published %s %s",
						table.Title, table.Source, row.Name, table.Columns[i], cell.Measured, cell.Published, cell.Corrected)
				}
			}
		}
	}
	if compared, different := papers.Tally(tables); compared < 60 || different != 0 {
		t.Errorf("%d figures were compared, of which %d differ", compared, different)
	}
}

// TestFigures holds that each single figure is one that a table has too.
func TestFigures(t *testing.T) {
	tables, err := papers.All()
	assert.NoError(t, err)
	printed := map[string]bool{}
	for _, table := range tables {
		for _, row := range table.Rows {
			for _, cell := range row.Cells {
				printed[cell.Published+"/"+cell.Corrected] = true
			}
		}
	}
	figures := papers.Figures()
	if len(figures) < 40 {
		t.Errorf("there are only %d figures", len(figures))
	}
	for _, f := range figures {
		if c := f.Cell(&sim.Counts{}); !printed[c.Published+"/"+c.Corrected] {
			t.Errorf("%s: %s for %d processes is in no table", f.Source, c.Published, f.Processes)
		}
		if other := f.Run; !f.Equal(&f.Run) || f.Equal(&papers.Run{}) {
			t.Errorf("%s is about %+v and is not", f.Source, f.Run)
		} else if other.Joins++; f.Equal(&other) {
			t.Errorf("%s is about %+v, and about %+v too", f.Source, f.Run, other)
		}
	}
}

// sample has a cell of each sort.
var sample = []papers.Table{{
	Source: "001", Title: "A table", Convention: "everything", Columns: []string{"one", "two", "three"},
	Rows: []papers.Row{
		{Name: "N = 4", Cells: []papers.Cell{{Published: "11", Measured: "11"}, {Published: "8", Measured: "9"}, {Measured: "3"}}},
		{Name: "N = 28", Cells: []papers.Cell{
			{Published: "775", Corrected: "755", Measured: "755"},
			{Published: "775", Corrected: "755", Measured: "775"},
			{Measured: "27"},
		}},
	},
}}

// What is printed of the sample is in testdata, as text and as CSV.
func TestWritten(t *testing.T) {
	for file, write := range map[string]func(io.Writer, []papers.Table) error{"sample.txt": papers.Text, "sample.csv": papers.CSV} {
		var b strings.Builder
		assert.NoError(t, write(&b, sample))
		golden.Compare(t, filepath.Join("testdata", file), b.String())
	}
}
