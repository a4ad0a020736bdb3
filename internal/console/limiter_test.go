package console

import (
	"slices"
	"testing"
	"time"

	"topdog/internal/lab/assert"
)

// when is so long after the beginning of a test of turns.
func when(ms int) time.Time { return time.Unix(1000, 0).Add(time.Duration(ms) * time.Millisecond) }

func TestPace(t *testing.T) {
	p := pace{burst: 3, every: 100 * time.Millisecond}
	for _, tt := range []struct {
		name     string
		come, at []int // in ms
	}{
		{"a few at once", []int{0, 0, 0}, []int{0, 0, 0}},
		{"more than that", []int{0, 0, 0, 0, 0}, []int{0, 0, 0, 100, 200}},
		{"one at a time", []int{0, 100, 200, 300, 400}, []int{0, 100, 200, 300, 400}},
		{"a little too fast", []int{0, 50, 100, 150, 200, 250}, []int{0, 50, 100, 150, 200, 300}},
		{"again after a pause", []int{0, 0, 0, 1000, 1000, 1000, 1000}, []int{0, 0, 0, 1000, 1000, 1000, 1100}},
	} {
		var full time.Time
		var got []int
		for _, ms := range tt.come {
			var at time.Time
			at, full = p.next(full, when(ms))
			got = append(got, int(at.Sub(when(0)).Milliseconds()))
		}
		assert.Equal(t, tt.at, got, "%s: the turns of those who come at %d", tt.name, tt.come)
	}
}

// One who asks too fast waits, and then is refused, and nobody else is.
func TestTurns(t *testing.T) {
	l := limiter{socketLimits: socketLimits{each: pace{2, 100 * time.Millisecond}, all: pace{10, 10 * time.Millisecond}, patience: 300 * time.Millisecond}}
	var waits []int
	refused := 0
	for range 100 {
		if at, ok := l.turn(4711, when(0)); ok {
			waits = append(waits, int(at.Sub(when(0)).Milliseconds()))
		} else {
			refused++
		}
	}
	if want := []int{0, 0, 100, 200, 300}; !slices.Equal(waits, want) || refused != 95 {
		t.Errorf("a hundred at once wait %d ms, and %d are refused, want %d", waits, refused, want)
	}
	if at, ok := l.turn(4712, when(0)); !ok || at != when(0) {
		t.Errorf("another user waits until %v: %v", at, ok)
	}
	if at, ok := l.turn(4711, when(350)); !ok || at != when(400) {
		t.Errorf("the first one later: %v, %v", at, ok)
	}
	// A crowd of users waits for its turns, and takes no more memory than those who are waiting.
	admitted := 0
	for user := range uint32(100_000) {
		if _, ok := l.turn(user, when(int(user))); ok {
			admitted++
		}
	}
	if admitted < 9_000 || admitted > 11_000 {
		t.Errorf("%d of all users in 100 s, want 100 a second", admitted)
	}
	if len(l.paces) > 2*maxPaces {
		t.Errorf("%d users are remembered", len(l.paces))
	}
}
