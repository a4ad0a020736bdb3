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

// Mermaid writes a sequence diagram in Mermaid's language, which many places that show
// Markdown draw. A message has an arrow for each board that it concerns, with a
// cross if it did not arrive; the bar of a board is the address.
func (r *Recording) Mermaid(w io.Writer) error {
	m := &mermaid{out: bufio.NewWriter(w), boards: r.lan.Boards(), holding: make(map[*sim.Board]bool)}
	fmt.Fprintln(m.out, "sequenceDiagram")
	for i, b := range m.boards {
		fmt.Fprintf(m.out, "    participant B%d as %s\n", i, plain("board "+b.Label))
	}
	for _, b := range m.boards {
		m.hold(b, r.initial[b].Holding)
	}
	for _, e := range r.finished() {
		m.entry(&e)
	}
	for _, b := range m.boards {
		m.hold(b, false) // Mermaid does not draw a bar that does not end
	}
	if note := r.missedNote(); note != "" {
		m.across(note)
	}
	return m.out.Flush()
}

type mermaid struct {
	out     *bufio.Writer
	boards  []*sim.Board
	holding map[*sim.Board]bool
}

// name is how the source calls a board: a label may be anything.
func (m *mermaid) name(b *sim.Board) string { return fmt.Sprintf("B%d", slices.Index(m.boards, b)) }

func (m *mermaid) entry(e *entry) {
	switch {
	case e.fold.total() > 0:
		m.across(e.fold.String())
	case e.Board == nil:
		m.across(at(e.At) + " " + e.What)
	case e.Message != nil:
		m.message(e)
	default:
		fmt.Fprintf(m.out, "    Note over %s: %s %s\n", m.name(e.Board), at(e.At), plain(e.brief()))
		m.hold(e.Board, e.State.Holding)
	}
}

func (m *mermaid) message(e *entry) {
	for _, to := range m.boards {
		if !e.concerns(to) {
			continue
		}
		arrow := "->>"
		if !e.reached(to) {
			arrow = "-x"
		}
		fmt.Fprintf(m.out, "    %s%s%s: %s %s\n", m.name(e.Board), arrow, m.name(to), at(e.At), plain(caption(e.Message)))
	}
}

func (m *mermaid) hold(b *sim.Board, on bool) {
	if m.holding[b] == on {
		return
	}
	m.holding[b] = on
	fmt.Fprintf(m.out, "    %s %s\n", map[bool]string{true: "activate", false: "deactivate"}[on], m.name(b))
}

// across writes a note over all columns.
func (m *mermaid) across(text string) {
	if len(m.boards) > 0 {
		fmt.Fprintf(m.out, "    Note over %s,%s: %s\n", m.name(m.boards[0]), m.name(m.boards[len(m.boards)-1]), plain(text))
	}
}

// plain escapes what has a meaning in Mermaid's language.
func plain(s string) string {
	return strings.NewReplacer("#", "#35;", ";", "#59;", "<", "#lt;", ">", "#gt;", "\n", " ").Replace(s)
}

// at writes a time for a picture.
func at(t election.Instant) string { return fmt.Sprintf("%.1f ms", float64(t)/1e6) }
