package pilab

import (
	"fmt"
	"testing"
	"time"

	"topdog/internal/lab/assert"
	"topdog/internal/lab/observe"
	"topdog/internal/lab/scene"
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

// cuts is a stage of the drift that notes what the switch loses.
type cuts struct {
	well
	filters []string
}

func (*cuts) Named(name string) (boards []int, known bool)   { return []int{2}, name == "leader" }
func (*cuts) Line(words, _ []string) (known bool, err error) { return words[0] == "slow", nil }
func (*cuts) Do(_ []int, _ time.Duration, words, _ []string) (known bool, err error) {
	return words[0] == "replaced", nil
}

func (c *cuts) Filter(filters []scene.Filter) error {
	c.filters = append(c.filters, fmt.Sprint(filters))
	return nil
}

// The leader is cut off as often as wanted, and the LAN is one again after each time.
func TestDriftScene(t *testing.T) {
	s, err := driftScene(2)
	assert.NoError(t, err)
	var c cuts
	assert.NoError(t, s.Play(&c, 0))
	const cut = "[{[2] [] false false 0} {[] [2] false false 0}]"
	assert.Equal(t, []string{cut, "[]", cut, "[]"}, c.filters, "what the switch loses")
}
