package pi

import (
	"context"
	"testing"
	"time"

	"topdog/internal/lab/assert"
	"topdog/internal/lab/netns"
)

// This machine answers at its own address on the segment, and nobody at the boards' floating one.
func TestPing(t *testing.T) {
	netns.Reserve(t)
	machine, err := FindMachine("raspi3b")
	assert.NoError(t, err)
	l, err := Temporary(t.TempDir(), machine, 1, 0, "")
	assert.NoError(t, err)
	defer l.Close()
	answered, err := l.Ping(address(hostNumber).Addr())
	assert.NoError(t, err)
	defer answered.Close()
	silent, err := l.Ping(Floating)
	assert.NoError(t, err)
	defer silent.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	for range 3 {
		_, err := answered.WaitAnswer(ctx, func(int) bool { return true })
		assert.NoError(t, err)
	}
	assert.Is(t, 0, silent.Report(time.Time{}).First.Board, "who has answered at %v", Floating)
}
