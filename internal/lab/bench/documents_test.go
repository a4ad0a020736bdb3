package bench

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"topdog/internal/lab/assert"
)

// TestFiguresOfDocuments holds that the README, what stands behind its table, and the pages for who runs
// topdog have the figures of the pages with measurements.
func TestFiguresOfDocuments(t *testing.T) {
	const (
		killed = "SIGKILL of the leader's daemon"
		frozen = "SIGSTOP of the leader's daemon for 10 s, then SIGCONT"
		loss   = "Loss"

		ours, theirs, ucarp = "topdog default", "keepalived default", "ucarp default"
		theirsSame          = "keepalived 100 ms"
		theirs254           = "keepalived 100 ms, one missed advert, priorities 254, 253, 252"
		theirsFast          = "keepalived 10 ms, one missed advert"

		median = "outage median"
	)
	// What topdog alone was measured for last is in docs/figures.md.
	took := func(event string, most unit) []claimed {
		return []claimed{{event, "outage: median", most, outages}, {event, "max", most, outages}}
	}
	moves := func(system string) claimed {
		return claimed{"20 % | " + system, "nobody fails moves", asIs, benchmark(loss)}
	}
	point := func(system, column string, unit unit) claimed { return claimed{system, column, unit, points} }
	pulled := func(system string, unit unit) claimed { return point(system, "peace: outage", unit) }
	for _, claim := range []struct {
		document, text string // each %s is the figure of a cell
		cells          []claimed
	}{
		{"README.md", "another board answers after %s ms (median of 21 pulled cables, %s at worst)", took("its cable is pulled", whole)},
		{"README.md", "no answer for %s ms with topdog's default, %s s with keepalived's, %s s with UCarp's. keepalived can be faster, %s ms with one missed advert of 10 ms, and then moves the address %s times a minute in bursts, %s times with loss; topdog does not move.",
			[]claimed{pulled(ours, whole), pulled(theirs, firstSeconds), pulled(ucarp, firstSeconds), pulled(theirsFast, whole),
				point(theirsFast, "bursts: moves", asIs), point(theirsFast, "loss: moves", asIs)}},
		{"README.md", "| leader's daemon killed / frozen: one holder, and no answer for (median) | ✓ %s / %s ms | ✗ two | ✗ two |",
			[]claimed{{ours, median, whole, benchmark(killed)}, {ours, median, whole, benchmark(frozen)}}},
		{"README.md", "| 20 %% loss for ten minutes, nobody failed: moves | ✓ %s | ✗ %s | ✗ %s |",
			[]claimed{moves(ours), moves(theirs), moves(ucarp)}},
		{"docs/CHANGELOG.md", "is replaced in %s ms (median of 21 runs, %s at most,", took("its cable is pulled", whole)},
		{"docs/compare.md", "costs %s ms with topdog, %s with keepalived and %s with UCarp (median of 20 in one session; %s, %s and %s in the slowest but one)",
			[]claimed{pulled(ours, first), pulled(theirs, first), pulled(ucarp, first), pulled(ours, second), pulled(theirs, second), pulled(ucarp, second)}},
		{"docs/compare.md", "keepalived with `advert_int 0.1`: %s ms, and %s moves with loss; with `vrrp_down_timer_adverts 1` and priorities of 254, 253 and 252 as well, %s ms, %s moves in bursts and %s with loss.",
			[]claimed{pulled(theirsSame, first), point(theirsSame, "loss: moves", asIs), pulled(theirs254, first),
				point(theirs254, "bursts: moves", asIs), point(theirs254, "loss: moves", asIs)}},
		{"docs/compare.md", "With 10 ms and one missed advert it takes %s ms, [less than topdog](curve.md#where-a-rival-is-ahead), and moves %s and %s times.",
			[]claimed{pulled(theirsFast, first), point(theirsFast, "bursts: moves", asIs), point(theirsFast, "loss: moves", asIs)}},
		{"docs/compare.md", "topdog: no two holders in %s runs of each, and %s and %s ms without an answer",
			[]claimed{{ours, "runs", asIs, benchmark(killed)}, {ours, median, asIs, benchmark(killed)}, {ours, median, asIs, benchmark(frozen)}}},
		{"docs/compare.md", "the defaults. topdog %s, keepalived %s, UCarp %s.",
			[]claimed{moves(ours), moves(theirs), moves(ucarp)}},
		{"docs/operations.md", "asks whether it lives, and takes over | %s, %s |", took("its cable is pulled", whole)},
		{"docs/operations.md", "but the old holder is off | %s, %s |", took("the switch drops its frames, the carrier stays", whole)},
		{"docs/operations.md", "takes over on the other side | %s, %s |", took("the switch drops its frames, the carrier stays", whole)},
		{"docs/operations.md", "then names its successor | %s, %s |", took("`topdog resign`", asIs)},
		{"docs/operations.md", "before its services stop ([hooks.md](hooks.md#reboot-and-shutdown)) | %s, %s |", took("SIGTERM (`systemctl stop`)", asIs)},
		{"docs/operations.md", "systemd cleans up and starts the daemon again | %s, %s |", took("SIGKILL (a crash, the OOM killer)", asIs)},
		{"docs/operations.md", "restarts the daemon after 5 s | %s, %s |", took("SIGSTOP for 10 s, then SIGCONT (a frozen daemon)", asIs)},
		{"docs/operations.md", "removes the address within about a second | %s, %s |", took("all processes of the board frozen for 5 s", asIs)},
		{"docs/operations.md", "the board asks, and the leader hands over | %s, %s |", took("a board of higher rank returns, `preempt = true`", asIs)},
	} {
		var figures []any
		for _, c := range claim.cells {
			figures = append(figures, c.in(t))
		}
		if want := fmt.Sprintf(claim.text, figures...); !strings.Contains(oneLine(readDocument(t, claim.document)), want) {
			t.Errorf("%s lacks what was measured:\n\t%s", claim.document, want)
		}
	}
}

// TestOneHolderInTheReadme holds that the report bears what the README says of a daemon that was killed
// or frozen: one holder with topdog, and two with the others.
func TestOneHolderInTheReadme(t *testing.T) {
	for _, event := range []string{"SIGKILL of the leader's daemon", "SIGSTOP of the leader's daemon for 10 s, then SIGCONT"} {
		for system, one := range map[string]bool{"topdog default": true, "keepalived default": false, "ucarp default": false} {
			if got := (claimed{system, "two holders median", asIs, benchmark(event)}).in(t); (got == "0") != one {
				t.Errorf("%s, %s: docs/benchmarks.md has two holders for %s ms (median), and the README says otherwise", event, system, got)
			}
		}
		if got := (claimed{"topdog default", "two holders max", asIs, benchmark(event)}).in(t); got != "0" {
			t.Errorf("%s: docs/benchmarks.md has two holders for %s ms at most, and the README says one", event, got)
		}
	}
}

// unit is how a document writes a figure. Some cells have a median and a 95th percentile.
type unit int

const (
	asIs         unit = iota
	whole             // the first of two, or all, without a fraction
	first             // of two
	firstSeconds      // likewise, with a tenth
	second            // of two
)

// source is a table of a page.
type source struct{ page, heading string }

// outages are those of topdog alone, and points those of the curve, beside its peers.
var (
	outages = source{"docs/figures.md", "Outage"}
	points  = source{"docs/curve.md", "The curve"}
)

// benchmark is a table of the long session, beside topdog's peers.
func benchmark(heading string) source { return source{"docs/benchmarks.md", heading} }

// claimed is one figure of a table: of which row and column. A row is named by how it begins.
type claimed struct {
	row, column string
	unit        unit
	of          source
}

// in finds the cell.
func (c claimed) in(t *testing.T) string {
	t.Helper()
	_, text, _ := strings.Cut(readDocument(t, c.of.page), "# "+c.of.heading+"\n")
	text, _, _ = strings.Cut(text, "\n#")
	column := -1
	for line := range strings.Lines(text) {
		fields := strings.Split(line, " | ")
		for i := range fields {
			fields[i] = strings.Trim(fields[i], "| \n")
		}
		switch {
		case column < 0:
			column = slices.Index(fields, c.column)
		case strings.HasPrefix(line, "| "+c.row+" |"):
			return c.unit.write(t, fields[column])
		}
	}
	t.Fatalf("%s has no figure %q of %q under %q", c.of.page, c.column, c.row, c.of.heading)
	return ""
}

// write writes what a page has in milliseconds.
func (u unit) write(t *testing.T, figure string) string {
	t.Helper()
	one, other, _ := strings.Cut(figure, " / ")
	switch u {
	case first:
		return one
	case second:
		return other
	case asIs:
		return figure
	}
	ms, err := strconv.ParseFloat(one, 64)
	if err != nil {
		t.Fatalf("a figure of a page: %v", err)
	}
	if u == firstSeconds {
		return strconv.FormatFloat(ms/1000, 'f', 1, 64)
	}
	return strconv.FormatFloat(ms, 'f', 0, 64)
}

// oneLine is a text with all white space made single, since documents are wrapped anywhere.
func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

func readDocument(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile("../../../" + name)
	assert.NoError(t, err)
	return string(text)
}
