package daemon

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"topdog/internal/config"
	"topdog/internal/lab/assert"
)

// TestWatchdogIsFedBeforeLongWaits: a holder that is slow has the loop wait for the sockets, and for the addresses in the same turn. Together that
// may take longer than the watchdog waits, so it is fed before each.
func TestWatchdogIsFedBeforeLongWaits(t *testing.T) {
	path := filepath.Join(t.TempDir(), "notify")
	systemd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	assert.NoError(t, err)
	defer unix.Close(systemd)
	assert.NoError(t, unix.Bind(systemd, &unix.SockaddrUnix{Name: path}))
	t.Setenv("NOTIFY_SOCKET", path)
	t.Setenv("WATCHDOG_USEC", "5000000")
	t.Setenv("WATCHDOG_PID", "")
	var got []string
	hear := func() {
		for buffer := make([]byte, 1<<10); ; {
			n, _, err := unix.Recvfrom(systemd, buffer, unix.MSG_DONTWAIT)
			if err != nil {
				return
			}
			if strings.Contains(string(buffer[:n]), "WATCHDOG=1") {
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
