package bench

import (
	"testing"
	"time"

	"topdog/internal/lab/assert"
	"topdog/internal/lab/observe"
)

// at is a moment of a test's own time.
func at(ms int) time.Time { return time.Unix(0, 0).Add(time.Duration(ms) * time.Millisecond) }

// had is the time from one millisecond to another during which a board had the address.
func had(board, from, to int) observe.Span {
	return observe.Span{Board: board, From: at(from), To: at(to)}
}

func TestUnexplained(t *testing.T) {
	silences := []observe.Span{{From: at(100), To: at(140)}, {From: at(400), To: at(450)}}
	gap := func(from, to, paused int) observe.Gap {
		return observe.Gap{From: at(from), To: at(to), Paused: time.Duration(paused) * time.Millisecond}
	}
	for _, c := range []struct {
		name string
		gaps []observe.Gap
		want int
	}{
		{"none", nil, 0},
		{"the silence alone, and the client's interval", []observe.Gap{gap(97, 144, 0), gap(396, 454, 0)}, 0},
		{"nobody answers for a while after it", []observe.Gap{gap(98, 200, 0)}, 62},
		{"the client did not ask", []observe.Gap{gap(98, 200, 58)}, 0},
		{"beside all silences", []observe.Gap{gap(200, 230, 0), gap(300, 310, 0)}, 30},
		{"over two silences", []observe.Gap{gap(100, 450, 0)}, 260},
	} {
		assert.Is(t, time.Duration(c.want)*time.Millisecond, unexplained(c.gaps, silences), "%s", c.name)
	}
}

func TestLastChange(t *testing.T) {
	for _, c := range []struct {
		name  string
		spans []observe.Span
		want  int
	}{
		{"one holder all the time", []observe.Span{had(1, 0, 1000)}, 0},
		{"two, and one lets go", []observe.Span{had(1, 0, 1000), had(2, 0, 40)}, 40},
		{"nobody, then one", []observe.Span{had(1, 300, 1000)}, 300},
		{"one after the other", []observe.Span{had(1, 0, 100), had(2, 160, 1000)}, 160},
	} {
		tl := observe.Timeline{From: at(0), To: at(1000), Spans: c.spans}
		assert.Is(t, time.Duration(c.want)*time.Millisecond, lastChange(tl), "%s", c.name)
	}
}

func TestSteady(t *testing.T) {
	const long = 100 * time.Millisecond
	for _, test := range []struct {
		name  string
		spans []observe.Span
		calm  time.Duration
		want  int
	}{
		{"one all the time", []observe.Span{had(2, 0, 100)}, long, 2},
		{"not for long enough yet", []observe.Span{had(2, 0, 100)}, long + 1, 0},
		{"nobody", nil, long, 0},
		{"not from the start", []observe.Span{had(2, 1, 100)}, long, 0},
		{"not any more", []observe.Span{had(2, 0, 99)}, long, 0},
		{"two", []observe.Span{had(1, 0, 100), had(2, 0, 100)}, long, 0},
		{"one after the other", []observe.Span{had(1, 0, 50), had(2, 50, 100)}, long, 0},
	} {
		assert.Is(t, test.want, soleHolder(observe.Timeline{From: at(0), To: at(100), Spans: test.spans}, test.calm), "%s: the board", test.name)
	}
}
