package bench

import (
	"testing"
	"time"

	"topdog/internal/lab/assert"
	"topdog/internal/lab/observe"
)

func TestSteady(t *testing.T) {
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
		assert.Is(t, test.want, soleHolder(observe.Timeline{From: at(0), To: at(100), Spans: test.spans}, test.calm), "%s: the board", test.name)
	}
}
