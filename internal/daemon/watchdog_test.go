package daemon

import (
	"slices"
	"strings"
	"testing"
	"time"

	"topdog/internal/config"
	"topdog/internal/lab/assert"
)

// TestWatchdogIsFedBeforeLongWaits: a holder that is slow has the loop wait for the sockets, and for the addresses in the same turn. Together that
// may take longer than the watchdog waits, so it is fed before each.
func TestWatchdogIsFedBeforeLongWaits(t *testing.T) {
	heard := fakeSystemd(t)
	var got []string
	hear := func() {
		for _, message := range heard() {
			if strings.Contains(message, "WATCHDOG=1") {
				got = append(got, "fed")
			}
		}
	}
	inBubble(t, func(t *testing.T, l *fakeLAN) {
		l.board(1, func(_ *config.Config, b *fakeBoard) {
			b.onOpen = func(what string) {
				hear()
				got = append(got, what)
				<-time.After(3 * time.Second)
			}
		})
		pass(10 * time.Second)
		if i := slices.Index(got, "the addresses"); i >= 0 {
			got = got[:i+1]
		}
	})
	assert.Equal(t, []string{"fed", "the sockets", "fed", "the addresses"}, got, "what has happened")
}
