package daemon

import (
	"context"
	"errors"
	"testing"
	"time"

	"topdog/internal/console"
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
		if h, err := three.Resign(t.Context()); err != nil || h == (console.Handover{}) {
			t.Errorf("the next Resign ended with %+v, %v", h, err)
		}
	})
}
