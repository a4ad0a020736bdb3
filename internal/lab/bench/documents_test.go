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
// topdog have the figures of the report in docs/benchmarks.md.
func TestFiguresOfDocuments(t *testing.T) {
	report := readDocument(t, "docs/benchmarks.md")
	const (
		pulled = "the leader's cable is pulled"
		killed = "SIGKILL of the leader's daemon"
		frozen = "SIGSTOP of the leader's daemon for 10 s, then SIGCONT"
		loss   = "Loss"

		dropped = "the switch drops the leader's frames, the carrier stays"
		passes  = "the frames pass again (two holders: from the first frame that does)"
		resigns = "hand-over by command"
		ended   = "SIGTERM (systemctl stop)"
		stuck   = "SIGSTOP of all processes of the leader's board for 5 s"
		returns = "a board of higher rank returns and preempts"

		ours, oursFast                 = "topdog default", "topdog 10 ms"
		theirs, theirsSame, theirsFast = "keepalived default", "keepalived 100 ms", "keepalived 100 ms, one missed advert"
		theirs10ms                     = "keepalived 10 ms"
		ucarp                          = "ucarp default"

		median, most = "outage median", "outage max"
	)
	took := func(event, system string, unit unit) []claimed {
		return []claimed{{event, system, median, unit}, {event, system, most, unit}}
	}
	outage := func(event string) []claimed {
		return []claimed{{event, ours, median, asIs}, {event, ours, "outage p95", asIs}, {event, ours, most, asIs}, {event, ours, "two holders max", asIs}}
	}
	runs := func(event string) claimed { return claimed{event, ours, "runs", asIs} }
	moves := func(system string) claimed { return claimed{loss, "20 % | " + system, "nobody fails moves", asIs} }
	for _, claim := range []struct {
		document, text string // each %s is the figure of a cell
		cells          []claimed
	}{
		{"README.md", "another board answers after %s ms (median of %s pulled cables, %s at worst)",
			[]claimed{{pulled, ours, median, whole}, runs(pulled), {pulled, ours, most, whole}}},
		{"README.md", "no answer for (median / worst of %s) | ✓ **%s / %s ms** | ✗ %s / %s s | ✗ %s / %s s |",
			slices.Concat([]claimed{runs(pulled)}, took(pulled, ours, whole), took(pulled, theirs, seconds), took(pulled, ucarp, seconds))},
		{"README.md", "| leader's daemon killed / frozen: one holder, and no answer for (median) | ✓ %s / %s ms | ✗ two | ✗ two |",
			[]claimed{{killed, ours, median, whole}, {frozen, ours, median, whole}}},
		{"README.md", "| 20 %% loss for ten minutes, nobody failed: moves | ✓ %s | ✗ %s | ✗ %s |",
			[]claimed{moves(ours), moves(theirs), moves(ucarp)}},
		{"docs/CHANGELOG.md", "is replaced in %s ms (median of %s runs, %s at most,",
			[]claimed{{pulled, ours, median, whole}, runs(pulled), {pulled, ours, most, whole}}},
		{"docs/compare.md", "topdog %s and %s ms; keepalived %s and %s ms; UCarp %s and %s ms.",
			slices.Concat(took(pulled, ours, asIs), took(pulled, theirs, asIs), took(pulled, ucarp, asIs))},
		{"docs/compare.md", "keepalived with `advert_int 0.1`: %s and %s ms; with `vrrp_down_timer_adverts 1` as well, %s and %s ms, and then it moves %s times",
			slices.Concat(took(pulled, theirsSame, asIs), took(pulled, theirsFast, asIs), []claimed{moves(theirsFast)})},
		{"docs/compare.md", "With 10 ms it takes %s ms, and topdog %s.",
			[]claimed{{pulled, theirs10ms, median, asIs}, {pulled, oursFast, median, asIs}}},
		{"docs/compare.md", "topdog: no two holders in %s runs of each, and %s and %s ms without an answer",
			[]claimed{runs(killed), {killed, ours, median, asIs}, {frozen, ours, median, asIs}}},
		{"docs/compare.md", "the defaults. topdog %s, keepalived %s, UCarp %s.",
			[]claimed{moves(ours), moves(theirs), moves(ucarp)}},
		{"docs/figures.md", "| its cable is pulled | %s | %s | %s | %s |", outage(pulled)},
		{"docs/figures.md", "| the switch drops its frames, the carrier stays | %s | %s | %s | %s ¹ |", outage(dropped)},
		{"docs/figures.md", "| … and then the frames pass again | %s | %s | %s | %s ¹ |", outage(passes)},
		{"docs/figures.md", "| `topdog resign` | %s | %s | %s | %s |", outage(resigns)},
		{"docs/figures.md", "| SIGTERM (`systemctl stop`) | %s | %s | %s | %s |", outage(ended)},
		{"docs/figures.md", "| SIGKILL (a crash, the OOM killer) | %s | %s | %s | %s |", outage(killed)},
		{"docs/figures.md", "| SIGSTOP for 10 s, then SIGCONT (a frozen daemon) | %s | %s | %s | %s |", outage(frozen)},
		{"docs/figures.md", "| all processes of the board frozen for 5 s | %s | %s | %s | %s ² |", outage(stuck)},
		{"docs/figures.md", "| a board of higher rank returns, `preempt = true` | %s | %s | %s | %s |", outage(returns)},
		{"docs/operations.md", "asks whether it lives, and takes over | %s, %s |", took(pulled, ours, whole)},
		{"docs/operations.md", "but the old holder is off | %s, %s |", took(dropped, ours, whole)},
		{"docs/operations.md", "takes over on the other side | %s, %s |", took(dropped, ours, whole)},
		{"docs/operations.md", "then names its successor | %s, %s |", took(resigns, ours, asIs)},
		{"docs/operations.md", "before its services stop ([hooks.md](hooks.md#reboot-and-shutdown)) | %s, %s |", took(ended, ours, asIs)},
		{"docs/operations.md", "systemd cleans up and starts the daemon again | %s, %s |", took(killed, ours, asIs)},
		{"docs/operations.md", "restarts the daemon after 5 s | %s, %s (the client",
			[]claimed{{frozen, ours, median, asIs}, {frozen, ours, most, whole}}},
		{"docs/operations.md", "removes the address within about a second | %s, %s |", took(stuck, ours, asIs)},
		{"docs/operations.md", "the board asks, and the leader hands over | %s, %s (the client", took(returns, ours, asIs)},
	} {
		var figures []any
		for _, c := range claim.cells {
			figures = append(figures, c.in(t, report))
		}
		if want := fmt.Sprintf(claim.text, figures...); !strings.Contains(oneLine(readDocument(t, claim.document)), want) {
			t.Errorf("%s lacks what docs/benchmarks.md has:\n\t%s", claim.document, want)
		}
	}
}

// TestOneHolderInTheReadme holds that the report bears what the README says of a daemon that was killed
// or frozen: one holder with topdog, and two with the others.
func TestOneHolderInTheReadme(t *testing.T) {
	report := readDocument(t, "docs/benchmarks.md")
	for _, event := range []string{"SIGKILL of the leader's daemon", "SIGSTOP of the leader's daemon for 10 s, then SIGCONT"} {
		for system, one := range map[string]bool{"topdog default": true, "keepalived default": false, "ucarp default": false} {
			if got := (claimed{event, system, "two holders median", asIs}).in(t, report); (got == "0") != one {
				t.Errorf("%s, %s: docs/benchmarks.md has two holders for %s ms (median), and the README says otherwise", event, system, got)
			}
		}
		if got := (claimed{event, "topdog default", "two holders max", asIs}).in(t, report); got != "0" {
			t.Errorf("%s: docs/benchmarks.md has two holders for %s ms at most, and the README says one", event, got)
		}
	}
}

// unit is how a document writes a figure of the report.
type unit int

const (
	asIs    unit = iota
	whole        // milliseconds without a fraction
	seconds      // with a tenth
)

// claimed is one figure of the report: of which table, row and column. A row is named by how it begins.
type claimed struct {
	heading, row, column string
	unit                 unit
}

// in finds the cell in the text of the report.
func (c claimed) in(t *testing.T, report string) string {
	t.Helper()
	_, table, _ := strings.Cut(report, "# "+c.heading+"\n")
	table, _, _ = strings.Cut(table, "\n#")
	column := -1
	for line := range strings.Lines(table) {
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
	t.Fatalf("docs/benchmarks.md has no figure %q of %q under %q", c.column, c.row, c.heading)
	return ""
}

// write writes what the report has in milliseconds.
func (u unit) write(t *testing.T, figure string) string {
	t.Helper()
	if u == asIs {
		return figure
	}
	ms, err := strconv.ParseFloat(figure, 64)
	if err != nil {
		t.Fatalf("a figure of docs/benchmarks.md: %v", err)
	}
	if u == whole {
		return strconv.FormatFloat(ms, 'f', 0, 64)
	}
	return strconv.FormatFloat(ms/1000, 'f', 1, 64)
}

// oneLine is a text with all white space made single, since documents are wrapped anywhere.
func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

func readDocument(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile("../../../" + name)
	assert.NoError(t, err)
	return string(text)
}
