package pi

import (
	"context"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"topdog/internal/lab/assert"
)

// localShell starts a shell of this machine as boards have one: no prompt, no echo.
func localShell(t *testing.T) net.Conn {
	t.Helper()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	assert.NoError(t, err)
	ours, theirs := os.NewFile(uintptr(fds[0]), "ours"), os.NewFile(uintptr(fds[1]), "theirs")
	conn, err := net.FileConn(ours)
	ours.Close()
	assert.NoError(t, err)
	shell := exec.Command("/bin/sh")
	shell.Stdin, shell.Stdout, shell.Stderr = theirs, theirs, theirs
	assert.NoError(t, shell.Start())
	theirs.Close()
	t.Cleanup(func() {
		conn.Close() // The shell ends with its input.
		_ = shell.Wait()
	})
	return conn
}

func TestRunInShell(t *testing.T) {
	conn := localShell(t)
	for _, tc := range []struct {
		command string
		output  string
		status  int
	}{
		{"echo hello", "hello\n", 0},
		{"printf 'no end of line'", "no end of line", 0},
		{"true", "", 0},
		{"echo to stderr >&2; (exit 7)", "to stderr\n", 7},
		{`echo "it's" '"quoted"' \$HOME`, "it's \"quoted\" $HOME\n", 0},
		{"printf 'a\nb\n'", "a\nb\n", 0},
		{"no-such-program-here 2>/dev/null", "", 127},
		{"printf '\\r\\n'", "\n", 0}, // as a terminal ends lines
	} {
		output, status, err := runInShell(t.Context(), conn, tc.command)
		if err != nil || output != tc.output || status != tc.status {
			t.Errorf("%s: %q, status %d, %v; want %q, %d", tc.command, output, status, err, tc.output, tc.status)
		}
	}
}

func TestRunInShellEndsWithItsContext(t *testing.T) {
	conn := localShell(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, _, err := runInShell(ctx, conn, "cat >/dev/null")
	assert.ErrorIs(t, err, context.Canceled, "")
}

func TestRunInShellRefusesLongLines(t *testing.T) {
	conn := localShell(t)
	if _, _, err := runInShell(t.Context(), conn, strings.Repeat("x", maxLine)); err == nil {
		t.Error("a line was sent that a terminal cuts off")
	}
	if out, _, err := runInShell(t.Context(), conn, "echo alive"); err != nil || out != "alive\n" {
		t.Errorf("afterwards: %q, %v", out, err)
	}
}

// A board that loses its power in the middle of a command says so at once.
func TestRunInShellNoticesTheEnd(t *testing.T) {
	_, _, err := runInShell(t.Context(), localShell(t), "exec true")
	assert.ErrorContains(t, err, "went away", "")
}
