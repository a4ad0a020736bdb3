package main

import (
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"
	"testing"
)

// The README, the page that says where its table comes from, and the changelog have figures of
// docs/benchmarks.md. The bench writes that page and people write the others, so a new measurement
// makes them stale.
func TestTheFiguresOfTheReadmeAndTheComparisonAreThoseOfTheBenchmarks(t *testing.T) {
	cable := readTable(t, "### the leader's cable is pulled", "system")
	killed := readTable(t, "### SIGKILL of the leader's daemon", "system")
	frozen := readTable(t, "### SIGSTOP of the leader's daemon for 10 s, then SIGCONT", "system")
	loss := readTable(t, "## Loss", "loss", "system")

	median := func(of publishedTable, system string) float64 { return of.number(t, system, "outage median") }
	worst := func(of publishedTable, system string) float64 { return of.number(t, system, "outage max") }
	pair := func(system string) string {
		return fmt.Sprintf("%.0f / %.0f ms", median(cable, system), worst(cable, system))
	}
	both := func(system string) string {
		return fmt.Sprintf("%g and %g", median(cable, system), worst(cable, system))
	}
	inSeconds := func(system string) string {
		return fmt.Sprintf("%.1f / %.1f s", median(cable, system)/1000, worst(cable, system)/1000)
	}
	moves := func(system string) string {
		return fmt.Sprintf("%.0f", loss.number(t, "20 % "+system, "nobody fails moves"))
	}
	mark := func(good bool) string {
		if good {
			return "✓"
		}
		return "✗"
	}
	alone := func(system string) bool {
		return killed.number(t, system, "two holders max") == 0 && frozen.number(t, system, "two holders max") == 0
	}
	holders := func(system string) string {
		if alone(system) {
			return fmt.Sprintf("✓ (%.0f, %.0f ms)", median(killed, system), median(frozen, system))
		}
		return "✗ two"
	}
	lossMark := func(system string) string { return mark(moves(system) == "0") + " " + moves(system) }

	const topdog, keepalived, ucarp = "topdog default", "keepalived default", "ucarp default"
	claims := []struct{ file, figure string }{
		{"../../README.md", fmt.Sprintf("another board answers after %.0f ms (median of %.0f pulled cables, %.0f at worst)",
			median(cable, topdog), cable.number(t, topdog, "runs"), worst(cable, topdog))},
		{"../../README.md", fmt.Sprintf("(median / worst of %.0f) | ✓ **%s** | ✗ %s | ✗ %s |",
			cable.number(t, topdog, "runs"), pair(topdog), inSeconds(keepalived), inSeconds(ucarp))},
		{"../../README.md", fmt.Sprintf("| the same, ten heartbeats a second | ✓ %s | ✓ %s, %s at its fastest |",
			pair(topdog), pair("keepalived 100 ms"), strings.TrimSuffix(pair("keepalived 100 ms, one missed advert"), " ms"))},
		{"../../README.md", fmt.Sprintf("killed or frozen: one holder | %s | %s | %s |", holders(topdog), holders(keepalived), holders(ucarp))},
		{"../../README.md", fmt.Sprintf("| 20 %% loss for ten minutes, nobody failed: moves | %s | %s | %s |",
			lossMark(topdog), lossMark(keepalived), lossMark(ucarp))},
		{"../../docs/CHANGELOG.md", fmt.Sprintf("is replaced in %.0f ms (median of %.0f runs, %.0f at most",
			median(cable, topdog), cable.number(t, topdog, "runs"), worst(cable, topdog))},
		{"../../docs/compare.md", fmt.Sprintf("topdog %s ms; keepalived %s ms; UCarp %s ms.", both(topdog), both(keepalived), both(ucarp))},
		{"../../docs/compare.md", fmt.Sprintf("keepalived with `advert_int 0.1`: %s ms; with `vrrp_down_timer_adverts 1` as well, %s ms, and then it moves %s times",
			both("keepalived 100 ms"), both("keepalived 100 ms, one missed advert"), moves("keepalived 100 ms, one missed advert"))},
		{"../../docs/compare.md", fmt.Sprintf("With 10 ms it takes %.1f ms, and topdog %.1f.", median(cable, "keepalived 10 ms"), median(cable, "topdog 10 ms"))},
		{"../../docs/compare.md", fmt.Sprintf("and %.1f and %.1f ms without an answer (medians)", median(killed, topdog), median(frozen, topdog))},
		{"../../docs/compare.md", fmt.Sprintf("topdog %s, keepalived %s, UCarp %s. At 5 %%", moves(topdog), moves(keepalived), moves(ucarp))},
	}
	for _, c := range claims {
		text, err := os.ReadFile(c.file)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(strings.Join(strings.Fields(string(text)), " "), c.figure) {
			t.Errorf("%s does not have what docs/benchmarks.md bears:\n\t%s", strings.TrimPrefix(c.file, "../../"), c.figure)
		}
	}
}

// publishedTable is a table of docs/benchmarks.md: its rows by the cells that name them, and their cells by column.
type publishedTable struct {
	heading string
	rows    map[string]map[string]string
}

// readTable reads the table below a heading. The columns of names identify its rows.
func readTable(t *testing.T, heading string, names ...string) publishedTable {
	t.Helper()
	text, err := os.ReadFile("../../docs/benchmarks.md")
	if err != nil {
		t.Fatal(err)
	}
	_, below, found := strings.Cut(string(text), "\n"+heading+"\n")
	if !found {
		t.Fatalf("docs/benchmarks.md has no heading %q", heading)
	}
	if _, table, found := strings.Cut(below, "\n|"); found {
		below = "|" + table
	}
	table, _, _ := strings.Cut(below, "\n\n")
	read := publishedTable{heading, map[string]map[string]string{}}
	var columns []string
	for i, line := range strings.Split(table, "\n") {
		cells := strings.Split(strings.Trim(line, "| "), " | ")
		switch {
		case i == 0:
			columns = cells
		case i == 1: // the line below the head
		case len(cells) != len(columns):
			t.Fatalf("docs/benchmarks.md, %q: %d cells below %d columns in\n\t%s", heading, len(cells), len(columns), line)
		default:
			row := map[string]string{}
			for j, column := range columns {
				row[column] = cells[j]
			}
			var name []string
			for _, column := range names {
				name = append(name, row[column])
			}
			read.rows[strings.Join(name, " ")] = row
		}
	}
	return read
}

// number is a figure of a table. One that only has a lower bound, such as ">2.3 s", is infinite.
func (f publishedTable) number(t *testing.T, row, column string) float64 {
	t.Helper()
	cell, found := f.rows[row][column]
	if !found {
		t.Fatalf("docs/benchmarks.md, %q: no %q in the row %q", f.heading, column, row)
	}
	if strings.HasPrefix(cell, "&gt;") {
		return math.Inf(1)
	}
	number, err := strconv.ParseFloat(cell, 64)
	if err != nil {
		t.Fatalf("docs/benchmarks.md, %q, row %q: %s is not a number: %v", f.heading, row, column, err)
	}
	return number
}
