package pilab

import (
	"testing"
	"time"

	"topdog/internal/lab/observe"
)

func TestHandoverFrom(t *testing.T) {
	began := time.Now()
	answer := func(board, asked, heard int) observe.Reply {
		at := func(ms int) time.Time { return began.Add(time.Duration(ms) * time.Millisecond) }
		return observe.Reply{Board: board, Asked: at(asked), Heard: at(heard)}
	}
	const ms = time.Millisecond
	for _, test := range []struct {
		name        string
		answers     []observe.Reply
		least, most time.Duration
		ok          bool
	}{
		{"one after the other", []observe.Reply{answer(3, 0, 5), answer(3, 20, 25), answer(2, 60, 70), answer(2, 80, 81)}, 35 * ms, 50 * ms, true},
		{"a late reply of the first", []observe.Reply{answer(3, 20, 25), answer(2, 60, 70), answer(3, 40, 90)}, -30 * ms, 30 * ms, true},
		{"two at a time", []observe.Reply{answer(3, 20, 25), answer(2, 20, 30), answer(3, 40, 41), answer(2, 60, 61)}, -21 * ms, -10 * ms, true},
		{"and a third one later", []observe.Reply{answer(3, 20, 25), answer(2, 60, 70), answer(1, 100, 110)}, 35 * ms, 50 * ms, true},
		{"nobody takes over", []observe.Reply{answer(3, 20, 25)}, 0, 0, false},
		{"nobody had it", []observe.Reply{answer(2, 20, 25)}, 0, 0, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, ok := handoverFrom(3, test.answers)
			if want := (handover{3, 2, test.least, test.most}); ok != test.ok || ok && got != want {
				t.Errorf("%+v, %t; want %+v, %t", got, ok, want, test.ok)
			}
		})
	}
}
