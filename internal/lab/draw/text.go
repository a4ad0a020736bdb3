package draw

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"strings"

	"topdog/election"
	"topdog/internal/lab/sim"
)

// Text writes one line for each event, as the simulator's transcripts do, and
// behind a message whom it did not reach.
func (r *Recording) Text(w io.Writer) error {
	out := bufio.NewWriter(w)
	for _, e := range r.finished() {
		if e.folded != nil {
			fmt.Fprintf(out, "%17s %s\n", "", e.foldedWords())
			continue
		}
		fmt.Fprintf(out, "%s%s\n", e.Text(), e.losses())
	}
	if note := r.missedNote(); note != "" {
		fmt.Fprintln(out, note)
	}
	return out.Flush()
}

// Mermaid writes a sequence diagram in Mermaid's language, which many places that show
// Markdown draw. A message has an arrow for each board that it concerns, with a
// cross if it did not arrive; the bar of a board is the address.
func (r *Recording) Mermaid(w io.Writer) error {
	out, boards := bufio.NewWriter(w), r.lan.Boards()
	// A label may be anything, so the source has another name for a board.
	name := func(b *sim.Board) string { return fmt.Sprintf("B%d", slices.Index(boards, b)) }
	write := func(format string, words ...any) { fmt.Fprintf(out, "    "+format+"\n", words...) }
	holding := make(map[*sim.Board]bool)
	hold := func(b *sim.Board, on bool) {
		if holding[b] != on {
			holding[b] = on
			write("%s %s", map[bool]string{true: "activate", false: "deactivate"}[on], name(b))
		}
	}
	across := func(text string) {
		if len(boards) > 0 {
			write("Note over %s,%s: %s", name(boards[0]), name(boards[len(boards)-1]), plain(text))
		}
	}
	fmt.Fprintln(out, "sequenceDiagram")
	for _, b := range boards {
		write("participant %s as %s", name(b), plain("board "+b.Label))
	}
	for _, b := range boards {
		hold(b, r.initial[b].Holding)
	}
	for _, e := range r.finished() {
		switch {
		case e.folded != nil:
			across(e.foldedWords())
		case e.Board == nil:
			across(at(e.At) + " " + e.What)
		case e.Message != nil:
			for _, to := range e.Concerned {
				arrow := map[bool]string{true: "->>", false: "-x"}[e.reached(to)]
				write("%s%s%s: %s %s", name(e.Board), arrow, name(to), at(e.At), plain(caption(e.Message)))
			}
		default:
			write("Note over %s: %s %s", name(e.Board), at(e.At), plain(e.brief()))
			hold(e.Board, e.State.Holding)
		}
	}
	for _, b := range boards {
		hold(b, false) // Mermaid does not draw a bar that does not end
	}
	if note := r.missedNote(); note != "" {
		across(note)
	}
	return out.Flush()
}

// plain escapes what has a meaning in Mermaid's language.
func plain(s string) string {
	return strings.NewReplacer("#", "#35;", ";", "#59;", "<", "#lt;", ">", "#gt;", "\n", " ").Replace(s)
}

// at writes a time for a picture.
func at(t election.Instant) string { return fmt.Sprintf("%.1f ms", float64(t)/1e6) }

// missedNote says that a recording was too long, or nothing.
func (r *Recording) missedNote() string {
	if r.missed == 0 {
		return ""
	}
	return fmt.Sprintf("… and %d more events: a recording keeps %d", r.missed, maxEntries)
}

// losses says whom a message did not reach, and why.
func (e *entry) losses() string {
	var parts []string
	for _, why := range []struct {
		fate sim.Fate
		text string
	}{
		{sim.FateLost, "lost on the way to"},
		{sim.FateDead, "nobody there at"},
		{sim.FateCut, "cut off from"},
		{sim.FateWaits, "waits at"},
		{sim.FateReplay, "came twice to"},
	} {
		var labels []string
		for _, c := range e.Copies {
			if c.Fate == why.fate && !slices.Contains(labels, c.To.Label) {
				labels = append(labels, c.To.Label)
			}
		}
		if len(labels) > 0 {
			parts = append(parts, why.text+" "+strings.Join(labels, ", "))
		}
	}
	if len(parts) == 0 {
		return ""
	}
	return "  (" + strings.Join(parts, "; ") + ")"
}
