package demo

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"topdog/internal/lab/assert"
)

// TestKeepalivedFigures holds that the page shows what docs/benchmarks.md says was measured.
func TestKeepalivedFigures(t *testing.T) {
	text, err := os.ReadFile("../../../docs/benchmarks.md")
	assert.NoError(t, err)
	for _, f := range keepalivedFigures {
		_, section, found := strings.Cut(string(text), "\n### "+f.Event+"\n")
		if !found {
			t.Errorf("docs/benchmarks.md has no event %q", f.Event)
			continue
		}
		section, _, _ = strings.Cut(section, "\n### ")
		peer, ours := cellsOf(t, section, "keepalived default"), cellsOf(t, section, "topdog default")
		got := []string{strconv.Itoa(f.Runs), inMs(f.MedianNs), inMs(f.MostNs), inMs(f.TopdogMedianNs)}
		if want := []string{peer[2], peer[3], peer[5], ours[3]}; fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s: the page has runs, median, most and topdog's median %q, docs/benchmarks.md %q", f.Event, got, want)
		}
		if alone := peer[6] == "0"; alone != (f.TwoHolders == "") {
			t.Errorf("%s: two holders for %q at most, and the page says %q", f.Event, peer[6], f.TwoHolders)
		}
		if !strings.Contains(string(text), f.TwoHolders+" |") {
			t.Errorf("%s: docs/benchmarks.md does not say %q", f.Event, f.TwoHolders)
		}
	}
}

// cellsOf returns the cells of a system's row; the first is empty.
func cellsOf(t *testing.T, table, system string) []string {
	t.Helper()
	for line := range strings.Lines(table) {
		if strings.HasPrefix(line, "| "+system+" |") {
			cells := strings.Split(line, "|")
			for i := range cells {
				cells[i] = strings.TrimSpace(cells[i])
			}
			return cells
		}
	}
	t.Fatalf("no row of %s", system)
	return nil
}

// inMs is as the tables have it.
func inMs(ns int64) string {
	ms := float64(ns) / float64(time.Millisecond)
	if ms < 10 {
		return strconv.FormatFloat(ms, 'f', 1, 64)
	}
	return strconv.FormatFloat(ms, 'f', -1, 64)
}
