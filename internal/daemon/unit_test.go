package daemon

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"topdog/internal/lab/assert"
)

// fakeSystemd hears what this process tells systemd, whose watchdog waits for five seconds.
func fakeSystemd(t *testing.T) (hear func() []string) {
	path := filepath.Join(t.TempDir(), "notify")
	socket, err := unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	assert.NoError(t, err)
	t.Cleanup(func() { unix.Close(socket) })
	assert.NoError(t, unix.Bind(socket, &unix.SockaddrUnix{Name: path}))
	t.Setenv("NOTIFY_SOCKET", path)
	t.Setenv("WATCHDOG_USEC", "5000000")
	t.Setenv("WATCHDOG_PID", "")
	return func() (heard []string) {
		for buffer := make([]byte, 1<<10); ; {
			n, _, err := unix.Recvfrom(socket, buffer, unix.MSG_DONTWAIT)
			if err != nil {
				return heard
			}
			heard = append(heard, string(buffer[:n]))
		}
	}
}

// TestUnitOfTwoGroups: systemd is told that the board is ready when both are, how both are, and that it stops once. Its watchdog
// is not fed when the loop of one stands still.
func TestUnitOfTwoGroups(t *testing.T) {
	hear := fakeSystemd(t)
	u := newUnit()
	one, two := u.add("dns1"), u.add("dns2")
	for _, step := range []struct {
		what string
		do   func() error
		want string
	}{
		{"the first begins", one.begins, ""},
		{"the second begins", two.begins, "READY=1"},
		{"the first tells", func() error { return one.tell("Leads") }, "STATUS=dns1: Leads"},
		{"the second tells", func() error { return two.tell("Follows pi2") }, "STATUS=dns1: Leads; dns2: Follows pi2"},
		{"the first turns", func() error { return one.feed(10 * time.Second) }, ""},
		{"the second turns", func() error { return two.feed(11 * time.Second) }, "WATCHDOG=1"},
		{"the first turns again", func() error { return one.feed(12 * time.Second) }, "WATCHDOG=1"},
		{"the first turns alone", func() error { return one.feed(14 * time.Second) }, ""},
		{"the first ends", one.ends, "STOPPING=1"},
		{"the second ends", two.ends, ""},
	} {
		assert.NoError(t, step.do())
		assert.Is(t, step.want, strings.Join(hear(), " "), "%s", step.what)
	}
}
