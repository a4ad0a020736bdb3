package draw

import (
	"bufio"
	"fmt"
	"io"
	"strings"

	"topdog/internal/lab/sim"
)

// Text writes one line for each event, as the simulator's transcripts do, and
// behind a message whom it did not reach.
func (r *Recording) Text(w io.Writer) error {
	out := bufio.NewWriter(w)
	for _, e := range r.finished() {
		if e.fold.total() > 0 {
			fmt.Fprintf(out, "%17s %v\n", "", &e.fold)
			continue
		}
		fmt.Fprintf(out, "%s%s\n", e.Text(), e.losses())
	}
	if note := r.missedNote(); note != "" {
		fmt.Fprintln(out, note)
	}
	return out.Flush()
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
		if labels := e.fates(why.fate); len(labels) > 0 {
			parts = append(parts, why.text+" "+strings.Join(labels, ", "))
		}
	}
	if len(parts) == 0 {
		return ""
	}
	return "  (" + strings.Join(parts, "; ") + ")"
}
