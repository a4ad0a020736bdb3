package animation

import (
	"fmt"
	"slices"
	"time"

	"topdog/internal/lab/demo"
)

// caption is what is said below the boards for a while.
type caption struct {
	span
	words string
	alarm bool // nobody answers meanwhile
}

// captions say what is done, and what follows from it. Times are of the recording.
func captions(r *demo.Recording) []caption {
	first := ""
	if len(r.Holders) > 0 {
		first = r.Holders[0].Board
	}
	list := []caption{{words: first + " leads: it has the address, and its light is on"}}
	add := func(at time.Duration, alarm bool, words string) {
		list[len(list)-1].to = at
		list = append(list, caption{span{from: at}, words, alarm})
	}
	gaps := outages(r)
	for _, a := range r.Acts {
		add(a.At, a.Moves, a.Text)
		next := slices.IndexFunc(gaps, func(g demo.RecordedGap) bool { return g.To > a.At })
		switch {
		case a.Moves && next >= 0:
			add(gaps[next].To, false, fmt.Sprintf("%s has the address: no answer for %s", gaps[next].After, milliseconds(gaps[next])))
		case !a.Moves:
			list[len(list)-1].words += ": nothing moves"
		}
	}
	list[len(list)-1].to = r.Length
	return list
}

// milliseconds is how long a gap is, in words.
func milliseconds(g demo.RecordedGap) string {
	ms := float64(g.To-g.From) / float64(time.Millisecond)
	if ms < 9.95 {
		return fmt.Sprintf("%.1f ms", ms)
	}
	return fmt.Sprintf("%.0f ms", ms)
}
