package installcluster

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode"

	"golang.org/x/sys/unix"

	"topdog/internal/lab/assert"
)

// escapes steer a terminal: the screen is cleared, the window gets a name, C1 as UTF-8 and as a
// byte, marks that turn the line around.
const escapes = "\x1b[2J\x1b]0;x\x07\u009b31m\x9b31m\u202e\u2066\x7f"

// steers returns what of a text a terminal would not simply show.
func steers(text string) string {
	return strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' || unicode.IsPrint(r) && r != unicode.ReplacementChar {
			return -1
		}
		return r
	}, text)
}

// The dialog with the first board is shown as it comes, a question before its answer.
func TestDialogDoesNotSteerTheTerminal(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("-short: to install a cluster takes seconds")
	}
	program, err := topdog()
	assert.NoError(t, err)
	s := newSite(t, program)
	s.board("b1", "arm64")
	s.write("boards/b1/asks", escapes+"address", 0o644)
	keyboard, terminal := openTerminal(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, s.script, "--timeout", "2", "pi@b1")
	cmd.Env, cmd.Stdin = s.env, terminal
	var errors bytes.Buffer
	cmd.Stderr = &errors
	stdout, err := cmd.StdoutPipe()
	assert.NoError(t, err)
	assert.NoError(t, cmd.Start())
	var out strings.Builder
	buffer := make([]byte, 4096)
	for answered := false; ; {
		n, err := stdout.Read(buffer)
		out.Write(buffer[:n])
		if err != nil {
			break
		}
		if !answered && strings.HasSuffix(out.String(), "address? ") {
			fmt.Fprintln(keyboard, first)
			answered = true
		}
	}
	if err := cmd.Wait(); err != nil {
		t.Fatalf("%v\n%s%s", err, out.String(), errors.String())
	}
	inOrder := regexp.MustCompile(`(?s)Which \[2J\]0;x31m31maddress\? .*wrote .*One leader: b1`)
	assert.Is(t, true, inOrder.MatchString(out.String()), "all is said, in this order, in %q", out.String())
	assert.Is(t, "", steers(out.String()), "what reaches the terminal")
}

// openTerminal returns a pseudo-terminal and the keyboard of it.
func openTerminal(t *testing.T) (keyboard, terminal *os.File) {
	t.Helper()
	keyboard, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("no pseudo-terminals here: %v", err)
	}
	t.Cleanup(func() { keyboard.Close() })
	number, err := unix.IoctlGetInt(int(keyboard.Fd()), unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(int(keyboard.Fd()), unix.TIOCSPTLCK, 0)
	}
	if err == nil {
		terminal, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	}
	if err != nil {
		t.Skipf("no pseudo-terminals here: %v", err)
	}
	t.Cleanup(func() { terminal.Close() })
	return keyboard, terminal
}
