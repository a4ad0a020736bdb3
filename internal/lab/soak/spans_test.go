package soak

import (
	"testing"
	"time"

	"topdog/internal/lab/assert"
	"topdog/internal/lab/observe"
)

// Two boards count as two holders only from when the later one had answered until the last
// question that the former one answered.
func TestTwoHolders(t *testing.T) {
	type answer struct{ board, asked, came int } // ms
	for _, test := range []struct {
		name     string
		answers  []answer
		from, to int // ms; equal if there is none
	}{
		{"nobody", nil, 0, 0},
		{"one", []answer{{1, 0, 1}, {1, 2, 3}}, 0, 0},
		{"a handover", []answer{{1, 0, 1}, {1, 2, 3}, {2, 4, 5}, {2, 6, 7}}, 0, 0},
		{"an answer that was long under way", []answer{{1, 0, 1}, {2, 2, 3}, {2, 4, 5}, {1, 2, 6}}, 0, 0},
		{"the former still answers", []answer{{1, 0, 1}, {2, 2, 3}, {1, 4, 5}, {2, 6, 7}}, 3, 4},
		{"for long", []answer{{1, 0, 1}, {2, 2, 3}, {1, 4, 5}, {2, 6, 7}, {1, 8, 9}, {2, 10, 11}}, 3, 8},
		{"it went and came back", []answer{{1, 0, 1}, {2, 5, 6}, {1, 20, 21}}, 0, 0},
		{"of three", []answer{{1, 0, 1}, {3, 2, 3}, {2, 2, 3}, {2, 6, 7}, {3, 5, 8}}, 3, 5},
	} {
		t.Run(test.name, func(t *testing.T) {
			began, replies := time.Now(), []observe.Reply{}
			at := func(ms int) time.Time { return began.Add(time.Duration(ms) * time.Millisecond) }
			for _, a := range test.answers {
				replies = append(replies, observe.Reply{Board: a.board, Asked: at(a.asked), Heard: at(a.came)})
			}
			o := longestOverlap(observe.SpansOf(replies))
			assert.Is(t, time.Duration(test.to-test.from)*time.Millisecond, o.duration(), "%+v", o)
			if o.duration() > 0 && !o.from.Equal(at(test.from)) {
				t.Errorf("it began at %v, want %d ms", o.from, test.from)
			}
		})
	}
}
