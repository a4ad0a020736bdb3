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
