package animation

import (
	"testing"
	"time"

	"topdog/internal/lab/assert"
	"topdog/internal/lab/demo"
)

const ms = time.Millisecond

// takeover is a recording with one outage.
func takeover() *demo.Recording {
	return &demo.Recording{
		Length: 2000 * ms,
		Boards: []string{"pi1", "pi2"},
		Acts:   []demo.RecordedAct{{At: 900 * ms, Act: "cut-power", Board: "pi2", Text: "pi2 loses its power", Moves: true}},
		States: []demo.RecordedState{
			{At: 0, Board: "pi1", Role: "heir", Plugged: true, Running: true},
			{At: 0, Board: "pi2", Role: "leader", Plugged: true, Running: true},
			{At: 900 * ms, Board: "pi2", Role: "no power", Plugged: true},
			{At: 970 * ms, Board: "pi1", Role: "leader", Plugged: true, Running: true},
		},
		Lights:  []demo.RecordedEdge{{Board: "pi2", On: true}, {At: 930 * ms, Board: "pi2"}, {At: 971 * ms, Board: "pi1", On: true}},
		Holders: []demo.RecordedSpan{{Board: "pi2", To: 900 * ms}, {Board: "pi1", From: 970 * ms, To: 2000 * ms}},
		Gaps: []demo.RecordedGap{
			{From: 100 * ms, To: 107 * ms, Before: "pi2", After: "pi2"},
			{From: 900 * ms, To: 972 * ms, Before: "pi2", After: "pi1"},
		},
	}
}

// TestClock holds that the picture is slower around an outage, by the factor that stands in it,
// and goes at the speed of life elsewhere.
func TestClock(t *testing.T) {
	c := newClock(takeover())
	from, to := 900*ms-slowBefore, 972*ms+slowAfter
	assert.Equal(t, []span{{from, to}}, c.slow, "what is slow")
	for at, want := range map[time.Duration]time.Duration{
		0:         0,
		500 * ms:  500 * ms,
		from:      from,
		from + ms: from + slowdown*ms,
		to:        from + slowdown*(to-from),
		to + ms:   from + slowdown*(to-from) + ms,
		2000 * ms: 2000*ms + (slowdown-1)*(to-from),
	} {
		assert.Is(t, want, c.at(at), "%v in the picture", at)
	}
	assert.Is(t, c.at(2000*ms), c.total(), "the length of the picture")
}

// TestClockMerges holds that two outages that are near to each other are slow once.
func TestClockMerges(t *testing.T) {
	r := takeover()
	r.Gaps = append(r.Gaps, demo.RecordedGap{From: 980 * ms, To: 990 * ms, Before: "pi1", After: "pi2"})
	c := newClock(r)
	if want := (span{900*ms - slowBefore, 990*ms + slowAfter}); len(c.slow) != 1 || c.slow[0] != want {
		t.Errorf("slow is %v, want %v", c.slow, want)
	}
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
	assert.Equal(t, want, captions(r), "")
}

// TestStates holds when the boards of a recording are what.
func TestStates(t *testing.T) {
	f := &film{r: takeover()}
	f.clock = newClock(f.r)
	leads := func(s demo.RecordedState) bool { return s.Role == "leader" }
	held, vacant := f.held()
	for _, c := range []struct {
		name      string
		got, want []span
	}{
		{"pi1 leads", f.when("pi1", leads), []span{{970 * ms, 2000 * ms}}},
		{"pi2 leads", f.when("pi2", leads), []span{{0, 900 * ms}}},
		{"nobody leads pi3", f.when("pi3", leads), nil},
		{"the light of pi1", f.lit("pi1"), []span{{971 * ms, 2000 * ms}}},
		{"the light of pi2 ends with its power", f.lit("pi2"), []span{{0, 900 * ms}}},
		{"held", held, []span{{0, 900 * ms}, {970 * ms, 2000 * ms}}},
		{"vacant", vacant, []span{{900 * ms, 970 * ms}}},
	} {
		assert.Equal(t, c.want, c.got, "%s", c.name)
	}
}
