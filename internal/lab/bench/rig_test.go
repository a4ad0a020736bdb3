package bench

import (
	"testing"
	"time"

	"topdog/internal/lab/assert"
	"topdog/internal/lab/observe"
)

func TestSteady(t *testing.T) {
	// zero is the origin of time.
	zero := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)
	at := func(ms int) time.Time { return zero.Add(time.Duration(ms) * time.Millisecond) }
	// held is the time from one millisecond to another during which a board had the address.
	held := func(board, from, to int) observe.Span {
		return observe.Span{Board: board, From: at(from), To: at(to)}
	}
	const long = 100 * time.Millisecond
	for _, test := range []struct {
		name  string
		spans []observe.Span
		calm  time.Duration
		want  int
	}{
		{"one all the time", []observe.Span{held(2, 0, 100)}, long, 2},
		{"not for long enough yet", []observe.Span{held(2, 0, 100)}, long + 1, 0},
		{"nobody", nil, long, 0},
		{"not from the start", []observe.Span{held(2, 1, 100)}, long, 0},
		{"not any more", []observe.Span{held(2, 0, 99)}, long, 0},
		{"two", []observe.Span{held(1, 0, 100), held(2, 0, 100)}, long, 0},
		{"one after the other", []observe.Span{held(1, 0, 50), held(2, 50, 100)}, long, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			assert.Is(t, test.want, soleHolder(observe.Timeline{From: at(0), To: at(100), Spans: test.spans}, test.calm), "the board")
		})
	}
}
