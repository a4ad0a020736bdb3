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

func TestTimelineArithmetic(t *testing.T) {
	type figures struct {
		Overlap, Vacant time.Duration
		Moves           int
	}
	ms := time.Millisecond
	for _, test := range []struct {
		name   string
		before int
		spans  []Span
		want   figures
	}{
		{"nobody ever", 0, nil, figures{0, 100 * ms, 0}},
		{"one all the time", 0, []Span{{1, at(0), at(100)}}, figures{0, 0, 0}},
		{"first holder is no move", 0, []Span{{1, at(10), at(100)}}, figures{0, 10 * ms, 0}},
		{"clean handover", 0, []Span{{1, at(0), at(40)}, {2, at(40), at(100)}}, figures{0, 0, 1}},
		{"handover with a gap", 0, []Span{{1, at(0), at(40)}, {2, at(45), at(100)}}, figures{0, 5 * ms, 1}},
		{"handover with an overlap", 0, []Span{{1, at(0), at(40)}, {2, at(33), at(100)}}, figures{7 * ms, 0, 1}},
		{"lost and regained", 0, []Span{{1, at(0), at(40)}, {1, at(50), at(100)}}, figures{0, 10 * ms, 0}},
		{"there and back", 0, []Span{{1, at(0), at(40)}, {2, at(40), at(60)}, {1, at(60), at(100)}}, figures{0, 0, 2}},
		{"two overlaps of three boards count once", 0,
			[]Span{{1, at(0), at(50)}, {2, at(20), at(60)}, {3, at(30), at(100)}}, figures{40 * ms, 0, 2}},
		{"gaps at both ends", 0, []Span{{1, at(10), at(90)}}, figures{0, 20 * ms, 0}},
		{"moved from one that lost it before the timeline", 3, []Span{{1, at(10), at(100)}}, figures{0, 10 * ms, 1}},
		{"came back to one that lost it before the timeline", 1, []Span{{1, at(10), at(100)}}, figures{0, 10 * ms, 0}},
	} {
		t.Run(test.name, func(t *testing.T) {
			tl := Timeline{From: at(0), To: at(100), Before: test.before, Spans: test.spans}
			got := figures{tl.Overlap(), tl.Vacant(), tl.Moves()}
			assert.Equal(t, test.want, got, "")
		})
	}
}

func TestTimelineHeld(t *testing.T) {
	tl := Timeline{From: at(0), To: at(100), Spans: []Span{{1, at(0), at(40)}, {2, at(40), at(60)}, {1, at(60), at(70)}}}
	if got := tl.Held(1); got != 50*time.Millisecond {
		t.Errorf("Held(1) = %s", got)
	}
}

func TestRecordToTimeline(t *testing.T) {
	r := record{holders: map[int]bool{1: true}, last: 1, start: at(0), changes: []change{
		{at(10), 1, false},
		{at(20), 2, true},
		{at(30), 3, true},
		{at(35), 2, false},
		{at(50), 3, false},
	}}
	for _, test := range []struct {
		name     string
		from, to int
		want     Timeline
	}{
		{"all", 0, 60, Timeline{at(0), at(60), 1, []Span{{1, at(0), at(10)}, {2, at(20), at(35)}, {3, at(30), at(50)}}}},
		{"from before the start", -5, 5, Timeline{at(0), at(5), 1, []Span{{1, at(0), at(5)}}}},
		{"begins while held", 25, 60, Timeline{at(25), at(60), 2, []Span{{2, at(25), at(35)}, {3, at(30), at(50)}}}},
		{"begins vacant", 15, 60, Timeline{at(15), at(60), 1, []Span{{2, at(20), at(35)}, {3, at(30), at(50)}}}},
		{"begins at a change", 20, 60, Timeline{at(20), at(60), 1, []Span{{2, at(20), at(35)}, {3, at(30), at(50)}}}},
		{"ends while held", 20, 32, Timeline{at(20), at(32), 1, []Span{{2, at(20), at(32)}, {3, at(30), at(32)}}}},
		{"after everything", 55, 60, Timeline{at(55), at(60), 3, nil}},
		{"in the future", 60, 55, Timeline{at(60), at(60), 1, nil}},
	} {
		t.Run(test.name, func(t *testing.T) {
			assert.Equal(t, test.want, r.timeline(at(test.from), at(test.to)), "")
		})
	}
}

// A record is bounded; what it forgets must not falsify what it keeps.
func TestRecordForgets(t *testing.T) {
	r := record{start: at(0), holders: map[int]bool{}}
	n := 3*maxChanges + 1
	for i := range n {
		r.add(change{at(i), 1 + i/2%2, i%2 == 0}) // board 1 on, off, board 2 on, off, ...
	}
	if len(r.changes) > maxChanges || r.total() != n {
		t.Errorf("%d changes kept, %d in total, want %d", len(r.changes), r.total(), n)
	}
	assert.Equal(t, []int{1 + (n-1)/2%2}, boardsOf(r.current()), "")
	tl := r.timeline(at(0), at(n))
	if tl.From != r.start || tl.Overlap() != 0 || tl.Vacant() != tl.Held(1)+tl.Held(2) {
		t.Errorf("from %s, overlap %s, vacant %s, held %s and %s", tl.From, tl.Overlap(), tl.Vacant(), tl.Held(1), tl.Held(2))
	}
}

// held is the time from one millisecond to another during which a board had the address.
func held(board, from, to int) Span {
	return Span{Board: board, From: at(from), To: at(to)}
}

func TestMoves(t *testing.T) {
	for _, test := range []struct {
		name   string
		before int
		spans  []Span
		want   int
	}{
		{"nobody ever", 0, nil, 0},
		{"one all the time", 1, []Span{held(1, 0, 100)}, 0},
		{"the first holder", 0, []Span{held(1, 10, 100)}, 0},
		{"a handover", 1, []Span{held(1, 0, 40), held(2, 40, 100)}, 1},
		{"with a gap", 1, []Span{held(1, 0, 40), held(2, 50, 100)}, 1},
		{"with an overlap", 1, []Span{held(1, 0, 40), held(2, 30, 100)}, 1},
		{"lost and regained", 1, []Span{held(1, 0, 40), held(1, 50, 100)}, 0},
		{"there and back", 1, []Span{held(1, 0, 40), held(2, 40, 60), held(1, 60, 100)}, 2},
		{"a split", 1, []Span{held(1, 0, 100), held(2, 50, 100)}, 1},
		{"it heals in favour of the new leader", 2, []Span{held(1, 0, 50), held(2, 0, 100)}, 0},
		{"it heals in favour of the old leader", 2, []Span{held(1, 0, 100), held(2, 0, 50)}, 1},
		{"after such a heal, a handover", 2, []Span{held(1, 0, 50), held(3, 50, 100)}, 1},
		{"after such a heal, nothing", 2, []Span{held(1, 0, 100)}, 0},
		{"two take over and the later one stays", 1, []Span{held(1, 0, 10), held(2, 20, 40), held(3, 30, 100)}, 2},
		{"two take over and the earlier one stays", 1, []Span{held(1, 0, 10), held(2, 20, 100), held(3, 30, 40)}, 3},
		{"lost before, taken by another", 3, []Span{held(1, 10, 100)}, 1},
		{"lost before, taken by the same", 1, []Span{held(1, 10, 100)}, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			tl := Timeline{From: at(0), To: at(100), Before: test.before, Spans: test.spans}
			if got := tl.Moves(); got != test.want {
				t.Errorf("%d moves, want %d", got, test.want)
			}
		})
	}
}
