package daemon

import (
	"context"
	"errors"
	"testing"
	"time"

	"topdog/internal/console"
	"topdog/internal/lab/assert"
)

// TestCallerGivesUp: what the loop has not begun when its caller gives up is not done.
// A handover would else begin for which nobody waits, and the answer would be written
// while the caller reads it.
func TestCallerGivesUp(t *testing.T) {
	inBubble(t, func(t *testing.T, l *fakeLAN) {
		_, _, three := l.three()
		busy := make(chan struct{})
		three.tasks.post(func() { <-busy })
		ctx, giveUp := context.WithTimeout(t.Context(), time.Millisecond)
		defer giveUp()
		if _, err := three.Resign(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Resign ended with %v", err)
		}
		if s, err := three.Status(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Status ended with %+v, %v", s, err)
		}
		close(busy)
		pass(time.Second)
		l.wantHolders(3)
		h, err := three.Resign(t.Context())
		assert.NoError(t, err)
		assert.Equal(t, console.Handover{Leader: "10.0.0.2", LeaderName: "pi2", Text: "handed over to pi2 (10.0.0.2)"}, h, "the next Resign")
	})
}
