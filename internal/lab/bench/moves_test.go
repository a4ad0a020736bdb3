package bench

import (
	"testing"
	"time"

	"topdog/internal/lab/netns"
)

// zero is the origin of time in the tests of pure functions.
var zero = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

func at(ms int) time.Time { return zero.Add(time.Duration(ms) * time.Millisecond) }

// held is the time from one millisecond to another during which a board had the address.
func held(board, from, to int) netns.Span {
	return netns.Span{Board: board, From: at(from), To: at(to)}
}

func TestMoves(t *testing.T) {
	for _, test := range []struct {
		name   string
		before int
		spans  []netns.Span
		want   int
	}{
		{"nobody ever", 0, nil, 0},
		{"one all the time", 1, []netns.Span{held(1, 0, 100)}, 0},
		{"the first holder", 0, []netns.Span{held(1, 10, 100)}, 0},
		{"a handover", 1, []netns.Span{held(1, 0, 40), held(2, 40, 100)}, 1},
		{"with a gap", 1, []netns.Span{held(1, 0, 40), held(2, 50, 100)}, 1},
		{"with an overlap", 1, []netns.Span{held(1, 0, 40), held(2, 30, 100)}, 1},
		{"lost and regained", 1, []netns.Span{held(1, 0, 40), held(1, 50, 100)}, 0},
		{"there and back", 1, []netns.Span{held(1, 0, 40), held(2, 40, 60), held(1, 60, 100)}, 2},
		{"a split", 1, []netns.Span{held(1, 0, 100), held(2, 50, 100)}, 1},
		{"it heals in favour of the new leader", 2, []netns.Span{held(1, 0, 50), held(2, 0, 100)}, 0},
		{"it heals in favour of the old leader", 2, []netns.Span{held(1, 0, 100), held(2, 0, 50)}, 1},
		{"after such a heal, a handover", 2, []netns.Span{held(1, 0, 50), held(3, 50, 100)}, 1},
		{"after such a heal, nothing", 2, []netns.Span{held(1, 0, 100)}, 0},
		{"two take over and the later one stays", 1, []netns.Span{held(1, 0, 10), held(2, 20, 40), held(3, 30, 100)}, 2},
		{"two take over and the earlier one stays", 1, []netns.Span{held(1, 0, 10), held(2, 20, 100), held(3, 30, 40)}, 3},
		{"lost before, taken by another", 3, []netns.Span{held(1, 10, 100)}, 1},
		{"lost before, taken by the same", 1, []netns.Span{held(1, 10, 100)}, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			tl := netns.Timeline{From: at(0), To: at(100), Before: test.before, Spans: test.spans}
			if got := moves(tl); got != test.want {
				t.Errorf("%d moves, want %d", got, test.want)
			}
		})
	}
}

func TestSteady(t *testing.T) {
	const long = 100 * time.Millisecond
	for _, test := range []struct {
		name  string
		spans []netns.Span
		calm  time.Duration
		want  int
	}{
		{"one all the time", []netns.Span{held(2, 0, 100)}, long, 2},
		{"not for long enough yet", []netns.Span{held(2, 0, 100)}, long + 1, 0},
		{"nobody", nil, long, 0},
		{"not from the start", []netns.Span{held(2, 1, 100)}, long, 0},
		{"not any more", []netns.Span{held(2, 0, 99)}, long, 0},
		{"two", []netns.Span{held(1, 0, 100), held(2, 0, 100)}, long, 0},
		{"one after the other", []netns.Span{held(1, 0, 50), held(2, 50, 100)}, long, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := steady(netns.Timeline{From: at(0), To: at(100), Spans: test.spans}, test.calm); got != test.want {
				t.Errorf("board %d, want %d", got, test.want)
			}
		})
	}
}
