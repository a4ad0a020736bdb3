package soak

import (
	"time"

	"topdog/internal/lab/observe"
)

// overlap is a time in which two boards answered.
type overlap struct {
	boards   [2]int
	from, to time.Time
}

func (o overlap) duration() time.Duration { return o.to.Sub(o.from) }

// longestOverlap returns the longest time in which two boards answered; the zero value if there
// was none.
func longestOverlap(spans []observe.Span) (longest overlap) {
	for i, a := range spans {
		for _, b := range spans[:i] {
			o := overlap{[2]int{min(a.Board, b.Board), max(a.Board, b.Board)}, a.From, a.To}
			if b.From.After(o.from) {
				o.from = b.From
			}
			if b.To.Before(o.to) {
				o.to = b.To
			}
			if a.Board != b.Board && o.duration() > longest.duration() {
				longest = o
			}
		}
	}
	return longest
}
