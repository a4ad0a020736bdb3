package election

import (
	"testing"
	"time"

	"topdog/wire"
)

// TestPauseWhereNumbersDiffer: others know of more pauses than this board, and not all of the same number.
func TestPauseWhereNumbersDiffer(t *testing.T) {
	b := newBoard(t)
	b.lead()
	if _, err := b.Pause(b.clock, time.Hour); err != nil {
		t.Fatal(err)
	}
	over := func(number uint32) func(*wire.Message) {
		return func(m *wire.Message) { m.Pause.Number = number }
	}
	b.hear(1, wire.TypePause, over(5))
	b.hear(3, wire.TypePause, over(7))
	if !b.paused() {
		t.Errorf("somebody has paused the group on this board a moment ago, and it is not paused: number %d", b.pause.number)
	}
}

// TestPauseIsCorrectedSeldom: where two halves of a group meet, all boards of the one hear all of the other.
func TestPauseIsCorrectedSeldom(t *testing.T) {
	b := newBoard(t)
	b.lead()
	if _, err := b.Pause(b.clock, time.Hour); err != nil {
		t.Fatal(err)
	}
	b.sleep(2 * insistFor)
	b.hear(1, wire.TypePause, func(m *wire.Message) { m.Pause.Number = 1 << 31 })
	older := func(from wire.ID) int {
		return sent(b.hear(from, wire.TypePause, func(m *wire.Message) { m.Pause.Number = 5 }), wire.TypePause)
	}
	told := 0
	for from := wire.ID(10); from < 60; from++ {
		told += older(from)
	}
	b.sleep(roundTripMin)
	if later := older(10); told != 1 || later != 1 {
		t.Errorf("of fifty boards at once %d were told, and later %d; want 1 and 1", told, later)
	}
}
