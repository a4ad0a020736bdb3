package animation

import (
	"testing"
	"time"

	"topdog/internal/lab/assert"
	"topdog/internal/lab/demo"
)

const ms = time.Millisecond

// The tests in this file hold what the recording of the README has nothing of. What it has is in the pictures, see TestPictures.

// takeover is a recording with one outage.
func takeover() *demo.Recording {
	return &demo.Recording{
		Length: 2000 * ms,
		Acts:   []demo.RecordedAct{{At: 900 * ms, Act: "cut-power", Board: "pi2", Text: "pi2 loses its power", Moves: true}},
		States: []demo.RecordedState{
			{At: 0, Board: "pi2", Role: "leader", Plugged: true, Running: true},
			{At: 900 * ms, Board: "pi2", Role: "no power", Plugged: true},
		},
		Lights:  []demo.RecordedEdge{{Board: "pi2", On: true}, {At: 930 * ms, Board: "pi2"}},
		Holders: []demo.RecordedSpan{{Board: "pi2", To: 900 * ms}, {Board: "pi1", From: 970 * ms, To: 2000 * ms}},
		Gaps: []demo.RecordedGap{
			{From: 100 * ms, To: 107 * ms, Before: "pi2", After: "pi2"},
			{From: 900 * ms, To: 972 * ms, Before: "pi2", After: "pi1"},
		},
	}
}

// TestClockMerges holds that two outages that are near to each other are slow once.
func TestClockMerges(t *testing.T) {
	r := takeover()
	r.Gaps = append(r.Gaps, demo.RecordedGap{From: 980 * ms, To: 990 * ms, Before: "pi1", After: "pi2"})
	assert.Equal(t, []span{{900*ms - slowBefore, 990*ms + slowAfter}}, newTimeline(r).slow, "what is slow")
}

func TestCaptions(t *testing.T) {
	want := []caption{
		{span{0, 900 * ms}, "pi2 leads: it has the address, and its light is on", false},
		{span{900 * ms, 972 * ms}, "pi2 loses its power", true},
		{span{972 * ms, 1500 * ms}, "pi1 has the address: no answer for 72 ms", false},
		{span{1500 * ms, 2000 * ms}, "pi2 has power again: nothing moves", false},
	}
	r := takeover()
	r.Acts = append(r.Acts, demo.RecordedAct{At: 1500 * ms, Act: "switch-on", Board: "pi2", Text: "pi2 has power again"})
	assert.Equal(t, want, newTimeline(r).captions(), "")
}

// TestLit: a light that was on when the power went off is off.
func TestLit(t *testing.T) {
	assert.Equal(t, []span{{0, 900 * ms}}, newTimeline(takeover()).lit("pi2"), "the light of pi2")
}
