package console

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"topdog/internal/lab/assert"
)

// impostor answers every connection with the same bytes and hangs up, or holds
// the line if there are none.
func impostor(t *testing.T, path, answer string) {
	t.Helper()
	l, err := net.Listen("unix", path)
	assert.NoError(t, err)
	done := make(chan struct{})
	go func() {
		defer close(done)
		var held []net.Conn
		for {
			conn, err := l.Accept()
			if err != nil {
				break
			}
			if held = append(held, conn); answer == "" {
				continue
			}
			buffer := make([]byte, 4096)
			_, _ = conn.Read(buffer) // a request of ours is short enough
			_, _ = io.WriteString(conn, strings.TrimPrefix(answer, "hang up"))
			conn.Close()
		}
		for _, conn := range held {
			conn.Close()
		}
	}()
	t.Cleanup(func() { l.Close(); <-done })
}

// answers makes an impostor that answers so.
func answers(answer string) func(*testing.T, string) {
	return func(t *testing.T, path string) { impostor(t, path, answer) }
}

func TestClientErrors(t *testing.T) {
	for _, test := range []struct {
		name string
		make func(t *testing.T, path string)
		kind error
		want string // PATH is the socket
	}{
		{"absent", func(*testing.T, string) {}, ErrNotRunning,
			"the topdog daemon does not run here (no PATH): systemctl start topdog (on a witness: topdog-witness)"},
		{"stale", leftover, ErrNotRunning,
			"the topdog daemon does not run any more (nobody answers on PATH): systemctl restart topdog"},
		{"a file", func(t *testing.T, path string) {
			assert.NoError(t, os.WriteFile(path, nil, 0o666))
		}, ErrNotRunning, "the topdog daemon does not run any more (nobody answers on PATH): systemctl restart topdog"},
		{"mute", answers(""), context.DeadlineExceeded,
			"the topdog daemon on PATH did not answer in time: journalctl -u topdog may tell why"},
		{"hangs up", answers("hang up"), ErrNotRunning,
			"the topdog daemon on PATH ended meanwhile: systemctl status topdog"},
		{"ends in the middle", answers("HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\n{"), ErrNotRunning, "the topdog daemon on PATH ended meanwhile: systemctl status topdog"},
		{"no JSON", answers("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"), nil, "what answers on PATH does not talk like topdog ("},
		{"other JSON", answers("HTTP/1.1 200 OK\r\nContent-Length: 12\r\n\r\n{\"boards\":1}"), nil, "does not talk like topdog ("},
		{"no HTTP", answers("SSH-2.0-OpenSSH_9.2\r\n\r\n"), nil,
			"asking the topdog daemon on PATH"},
		{"another server", answers("HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n"), nil, "does not talk like topdog (HTTP status 502)"},
		{"redirected", answers("HTTP/1.1 302 Found\r\nLocation: http://example.org/\r\nContent-Length: 0\r\n\r\n"), nil, "does not talk like topdog (HTTP status 302)"},
		{"endless header", answers("HTTP/1.1 200 OK\r\nServer: " + strings.Repeat("x", 2*maxHeader) + "\r\n\r\n"), nil, "does not talk like topdog (its header has more than 16384 bytes)"},
		{"endless", answers("HTTP/1.0 200 OK\r\n\r\n{" + strings.Repeat(" ", maxAnswer)), nil, "the answer has more than 1048576 bytes"},
	} {
		t.Run(test.name, func(t *testing.T) {
			path := socketPath(t)
			test.make(t, path)
			client := Dial(path)
			if test.name == "mute" {
				client.timeout = 20 * time.Millisecond
			}
			check := func(err error) {
				t.Helper()
				assert.ErrorContains(t, err, strings.ReplaceAll(test.want, "PATH", path), "")
				if test.kind != nil {
					assert.ErrorIs(t, err, test.kind, "")
				}
				if test.kind != ErrNotRunning && errors.Is(err, ErrNotRunning) {
					t.Errorf("%v is ErrNotRunning", err)
				}
			}
			_, err := client.Status(t.Context())
			check(err)
			if test.name != "other JSON" { // whoever reads a status finds that out
				_, err = client.Resign(t.Context())
				check(err)
				_, err = client.StatusText(t.Context())
				check(err)
			}
			if test.kind != nil { // the others differ in a stream
				check(client.Watch(t.Context(), WatchOptions{}, func(Transition) error { return nil }))
			}
		})
	}
}

// The text of a status is the daemon's, with what this version does not know.
func TestStatusText(t *testing.T) {
	const text = `{"role":"leader","something_new":[1, 2]}` + "\n"
	path := socketPath(t)
	impostor(t, path, fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(text), text))
	got, err := Dial(path).StatusText(t.Context())
	assert.NoError(t, err)
	assert.Is(t, text, string(got), "")
	path = socketPath(t)
	const half = `{"role":"leader"`
	impostor(t, path, fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(half), half))
	if got, err := Dial(path).StatusText(t.Context()); err == nil {
		t.Errorf("half a status is passed on: %q", got)
	}
}

// TestClientWithoutPermission becomes another user on one thread; connect(2) looks
// at the thread's own credentials.
func TestClientWithoutPermission(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root may become another user")
	}
	s := serving(t, fake{})
	var err error
	asUser(t, 65533, 65533, func() { err = connect(s.path) })
	assert.ErrorIs(t, err, unix.EACCES, "connecting as another user")
	assert.ErrorContains(t, Dial(s.path).explain(err), "no permission to talk to the topdog daemon on "+s.path+": use sudo", "told")
}
