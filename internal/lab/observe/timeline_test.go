package observe

import (
	"testing"
	"time"

	"topdog/internal/lab/assert"
)

// zero is the origin of time in the tests of pure functions.
var zero = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

// at returns the point in time a number of milliseconds after zero.
func at(ms int) time.Time { return zero.Add(time.Duration(ms) * time.Millisecond) }

// held is the time from one millisecond to another during which a board had the address.
func held(board, from, to int) Span {
	return Span{Board: board, From: at(from), To: at(to)}
}

func TestTimelineArithmetic(t *testing.T) {
	type figures struct {
		overlap, vacant int // ms
		moves           int
	}
	const ms = time.Millisecond
	for _, test := range []struct {
		name   string
		before int
		spans  []Span
		want   figures
	}{
		{"nobody ever", 0, nil, figures{0, 100, 0}},
		{"one all the time", 0, []Span{held(1, 0, 100)}, figures{0, 0, 0}},
		{"one all the time, and before", 1, []Span{held(1, 0, 100)}, figures{0, 0, 0}},
		{"the first holder is no move", 0, []Span{held(1, 10, 100)}, figures{0, 10, 0}},
		{"gaps at both ends", 0, []Span{held(1, 10, 90)}, figures{0, 20, 0}},
		{"a handover", 0, []Span{held(1, 0, 40), held(2, 40, 100)}, figures{0, 0, 1}},
		{"a handover of one that had it before", 1, []Span{held(1, 0, 40), held(2, 40, 100)}, figures{0, 0, 1}},
		{"with a gap", 1, []Span{held(1, 0, 40), held(2, 45, 100)}, figures{0, 5, 1}},
		{"with an overlap", 1, []Span{held(1, 0, 40), held(2, 33, 100)}, figures{7, 0, 1}},
		{"lost and regained", 1, []Span{held(1, 0, 40), held(1, 50, 100)}, figures{0, 10, 0}},
		{"there and back", 1, []Span{held(1, 0, 40), held(2, 40, 60), held(1, 60, 100)}, figures{0, 0, 2}},
		{"two overlaps of three boards count once", 0, []Span{held(1, 0, 50), held(2, 20, 60), held(3, 30, 100)}, figures{40, 0, 2}},
		{"a split", 1, []Span{held(1, 0, 100), held(2, 50, 100)}, figures{50, 0, 1}},
		{"it heals in favour of the new leader", 2, []Span{held(1, 0, 50), held(2, 0, 100)}, figures{50, 0, 0}},
		{"it heals in favour of the old leader", 2, []Span{held(1, 0, 100), held(2, 0, 50)}, figures{50, 0, 1}},
		{"after such a heal, a handover", 2, []Span{held(1, 0, 50), held(3, 50, 100)}, figures{0, 0, 1}},
		{"after such a heal, nothing", 2, []Span{held(1, 0, 100)}, figures{0, 0, 0}},
		{"two take over and the later one stays", 1, []Span{held(1, 0, 10), held(2, 20, 40), held(3, 30, 100)}, figures{10, 10, 2}},
		{"two take over and the earlier one stays", 1, []Span{held(1, 0, 10), held(2, 20, 100), held(3, 30, 40)}, figures{10, 10, 3}},
		{"lost before, taken by another", 3, []Span{held(1, 10, 100)}, figures{0, 10, 1}},
		{"lost before, taken by the same", 1, []Span{held(1, 10, 100)}, figures{0, 10, 0}},
	} {
		tl := Timeline{From: at(0), To: at(100), Before: test.before, Spans: test.spans}
		assert.Is(t, test.want, figures{int(tl.Overlap() / ms), int(tl.Vacant() / ms), tl.Moves()}, "%s", test.name)
	}
}

func TestTimelineHeld(t *testing.T) {
	tl := Timeline{From: at(0), To: at(100), Spans: []Span{held(1, 0, 40), held(2, 40, 60), held(1, 60, 70)}}
	assert.Is(t, 50*time.Millisecond, tl.Held(1), "held by board 1")
}

func TestHoldersBetween(t *testing.T) {
	h := holdersSince(at(0), 1)
	h.Set(at(10), 1, false)
	h.Set(at(20), 2, true)
	h.Set(at(30), 3, true)
	h.Set(at(35), 2, false)
	h.Set(at(50), 3, false)
	for _, test := range []struct {
		name     string
		from, to int
		want     Timeline
	}{
		{"all", 0, 60, Timeline{at(0), at(60), 1, []Span{held(1, 0, 10), held(2, 20, 35), held(3, 30, 50)}}},
		{"from before the start", -5, 5, Timeline{at(0), at(5), 1, []Span{held(1, 0, 5)}}},
		{"begins while held", 25, 60, Timeline{at(25), at(60), 2, []Span{held(2, 25, 35), held(3, 30, 50)}}},
		{"begins vacant", 15, 60, Timeline{at(15), at(60), 1, []Span{held(2, 20, 35), held(3, 30, 50)}}},
		{"begins at a change", 20, 60, Timeline{at(20), at(60), 1, []Span{held(2, 20, 35), held(3, 30, 50)}}},
		{"ends while held", 20, 32, Timeline{at(20), at(32), 1, []Span{held(2, 20, 32), held(3, 30, 32)}}},
		{"after everything", 55, 60, Timeline{at(55), at(60), 3, nil}},
		{"in the future", 60, 55, Timeline{at(60), at(60), 3, nil}},
	} {
		assert.Equal(t, test.want, h.Between(at(test.from), at(test.to)), "%s", test.name)
	}
}
