package pi

import (
	"testing"
	"time"
)

func TestHandoverFrom(t *testing.T) {
	began := time.Now()
	answer := func(board, asked, heard int) Answer {
		at := func(ms int) time.Time { return began.Add(time.Duration(ms) * time.Millisecond) }
		return Answer{board, at(asked), at(heard)}
	}
	const ms = time.Millisecond
	for _, test := range []struct {
		name        string
		answers     []Answer
		least, most time.Duration
		ok          bool
	}{
		{"one after the other", []Answer{answer(3, 0, 5), answer(3, 20, 25), answer(2, 60, 70), answer(2, 80, 81)}, 35 * ms, 50 * ms, true},
		{"a late reply of the first", []Answer{answer(3, 20, 25), answer(2, 60, 70), answer(3, 40, 90)}, -30 * ms, 30 * ms, true},
		{"two at a time", []Answer{answer(3, 20, 25), answer(2, 20, 30), answer(3, 40, 41), answer(2, 60, 61)}, -21 * ms, -10 * ms, true},
		{"and a third one later", []Answer{answer(3, 20, 25), answer(2, 60, 70), answer(1, 100, 110)}, 35 * ms, 50 * ms, true},
		{"nobody takes over", []Answer{answer(3, 20, 25)}, 0, 0, false},
		{"nobody had it", []Answer{answer(2, 20, 25)}, 0, 0, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, ok := HandoverFrom(3, test.answers)
			if want := (Handover{3, 2, test.least, test.most}); ok != test.ok || ok && got != want {
				t.Errorf("%+v, %t; want %+v, %t", got, ok, want, test.ok)
			}
		})
	}
}
