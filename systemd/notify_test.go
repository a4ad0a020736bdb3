package systemd

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"golang.org/x/sys/unix"

	"topdog/internal/lab/assert"
)

// manager is systemd's end of the socket.
type manager struct {
	t    *testing.T
	conn *net.UnixConn
}

func newManager(t *testing.T) *manager {
	t.Helper()
	return newManagerAt(t, filepath.Join(t.TempDir(), "notify"))
}

func newManagerAt(t *testing.T, name string) *manager {
	t.Helper()
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: name, Net: "unixgram"})
	assert.NoError(t, err)
	t.Cleanup(func() { conn.Close() })
	t.Setenv("NOTIFY_SOCKET", name)
	return &manager{t, conn}
}

// received gives the messages that have arrived. On a unix socket a message is
// there when its sender's write returns, so nothing has to be waited for.
func (m *manager) received() []string {
	m.t.Helper()
	var messages []string
	raw, err := m.conn.SyscallConn()
	assert.NoError(m.t, err)
	buffer := make([]byte, 8192)
	err = raw.Read(func(fd uintptr) bool {
		for {
			n, err := unix.Read(int(fd), buffer)
			if err != nil {
				return true // Nothing more now.
			}
			messages = append(messages, string(buffer[:n]))
		}
	})
	assert.NoError(m.t, err)
	return messages
}

func TestMessages(t *testing.T) {
	for _, socket := range []struct{ name, address string }{
		{"path", filepath.Join(t.TempDir(), "notify")},
		{"abstract", fmt.Sprintf("@topdog-test-%d", os.Getpid())},
	} {
		t.Run(socket.name, func(t *testing.T) {
			m := newManagerAt(t, socket.address)
			n := New()
			for _, step := range []struct {
				what string
				call func() error
				want string
			}{
				{"Ready", n.Ready, "READY=1"},
				{"Status", func() error { return n.Status("leader since 12:00") }, "STATUS=leader since 12:00"},
				{"Watchdog", n.Watchdog, "WATCHDOG=1"},
				{"Stopping", n.Stopping, "STOPPING=1"},
			} {
				assert.ErrorIs(t, step.call(), nil, "%s", step.what)
				assert.Equal(t, []string{step.want}, m.received(), "%s", step.what)
			}
		})
	}
}

func TestReloading(t *testing.T) {
	m := newManager(t)
	assert.NoError(t, New().Reloading())
	got := strings.Join(m.received(), "and another message")
	if !regexp.MustCompile(`^RELOADING=1\nMONOTONIC_USEC=[1-9][0-9]*\n?$`).MatchString(got) {
		t.Errorf("received %q, want RELOADING=1 and MONOTONIC_USEC=<a number>", got)
	}
}

func TestStatusIsSentOnlyWhenItChanges(t *testing.T) {
	m := newManager(t)
	n := New()
	for _, text := range []string{"follower", "follower", "leader", "leader", "follower"} {
		assert.NoError(t, n.Status(text))
	}
	want := []string{"STATUS=follower", "STATUS=leader", "STATUS=follower"}
	assert.Equal(t, want, m.received(), "")
}

// A line that did not arrive is not taken for sent.
func TestStatusIsRepeatedAfterAnError(t *testing.T) {
	nowhere := filepath.Join(t.TempDir(), "nowhere")
	t.Setenv("NOTIFY_SOCKET", nowhere)
	n := New()
	err := n.Status("leader")
	assert.ErrorContains(t, err, "set the status line", "what")
	assert.ErrorContains(t, err, nowhere, "where")
	m := newManager(t)
	assert.NoError(t, n.Status("leader"))
	assert.Equal(t, []string{"STATUS=leader"}, m.received(), "")
}

// Nothing that stands in a status line becomes a message of its own.
func TestStatusStaysOneLine(t *testing.T) {
	for name, tc := range map[string]struct{ text, want string }{
		"newline":       {"leader\nWATCHDOG=trigger", "STATUS=leader WATCHDOG=trigger"},
		"control":       {"a\x00b\x1b[31mc\u0085d", "STATUS=a b [31mc d"},
		"invalid UTF-8": {"gr\xfcn", "STATUS=gr\uFFFDn"},
		"long":          {strings.Repeat("x", 600), "STATUS=" + strings.Repeat("x", 509) + "…"},
		"long, cut inside a character": {
			strings.Repeat("x", 508) + strings.Repeat("ü", 50), "STATUS=" + strings.Repeat("x", 508) + "…"},
		"just short enough": {strings.Repeat("x", 512), "STATUS=" + strings.Repeat("x", 512)},
	} {
		t.Run(name, func(t *testing.T) {
			m := newManager(t)
			assert.NoError(t, New().Status(tc.text))
			assert.Equal(t, []string{tc.want}, m.received(), "")
		})
	}
}

func FuzzOneLine(f *testing.F) {
	f.Add("leader since 12:00")
	f.Add("a\nb\xff…")
	f.Fuzz(func(t *testing.T, text string) {
		line := oneLine(text)
		if len(line) > maxStatus || !utf8.ValidString(line) || strings.ContainsAny(line, "\n\r\x00") {
			t.Errorf("%q -> %q", text, line)
		}
	})
}

// A manager that no longer reads costs an error and not the election.
func TestManagerThatDoesNotRead(t *testing.T) {
	newManager(t)
	n := New()
	var err error
	const moreThanAnyQueue = 100_000
	for i := 0; err == nil && i < moreThanAnyQueue; i++ {
		err = n.Watchdog()
	}
	if !errors.Is(err, os.ErrDeadlineExceeded) || !strings.Contains(err.Error(), "feed the watchdog") {
		t.Errorf("with a full queue: %v, want os.ErrDeadlineExceeded and what was attempted", err)
	}
}

func TestSilentOutsideSystemd(t *testing.T) {
	t.Setenv("NOTIFY_SOCKET", "")
	t.Setenv("WATCHDOG_USEC", "")
	n := New()
	for what, call := range map[string]func() error{
		"Ready": n.Ready, "Watchdog": n.Watchdog, "Stopping": n.Stopping, "Reloading": n.Reloading,
		"Status": func() error { return n.Status("leader") },
	} {
		assert.ErrorIs(t, call(), nil, "%s", what)
	}
	assert.Is(t, 0, n.WatchdogInterval(), "WatchdogInterval")
}

func TestWatchdogInterval(t *testing.T) {
	t.Setenv("NOTIFY_SOCKET", "")
	me := strconv.Itoa(os.Getpid())
	for _, tc := range []struct {
		usec, pid string
		want      time.Duration
		invalid   bool
	}{
		{"5000000", me, 2500 * time.Millisecond, false},
		{"5000000", "", 2500 * time.Millisecond, false},
		{"5000000", "1", 0, false}, // someone else's
		{"", me, 0, false},
		{"soon", me, 0, true},
		{"-1", me, 0, true},
		{"5000000", "me", 0, true},
	} {
		t.Run(tc.usec+" for "+tc.pid, func(t *testing.T) {
			t.Setenv("WATCHDOG_USEC", tc.usec)
			t.Setenv("WATCHDOG_PID", tc.pid)
			n := New()
			assert.Is(t, tc.want, n.WatchdogInterval(), "WatchdogInterval")
			says := ""
			if tc.invalid {
				says = "WATCHDOG_USEC=" + strconv.Quote(tc.usec)
			}
			assert.ErrorContains(t, n.Ready(), says, "Ready")
		})
	}
}

// What one message costs; the loop sends a WATCHDOG=1 every few seconds.
func BenchmarkWatchdog(b *testing.B) {
	name := filepath.Join(b.TempDir(), "notify")
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: name, Net: "unixgram"})
	assert.NoError(b, err)
	defer conn.Close()
	b.Setenv("NOTIFY_SOCKET", name)
	n, buffer := New(), make([]byte, 64)
	b.ReportAllocs()
	for b.Loop() {
		assert.NoError(b, n.Watchdog())
		_, err := conn.Read(buffer)
		assert.NoError(b, err)
	}
}
