package installcluster

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
	"unicode"

	"golang.org/x/sys/unix"
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

// Whatever a board answers, the terminal of who installs is not steered by it.
func TestAnswersDoNotSteerTheTerminal(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name    string
		status  int
		prepare func(s *site)
		says    string
	}{
		{"architecture", 1, func(s *site) { s.board("b2", escapes+"riscv64") }, "[pi@b2] FAILED: there is no package for its architecture [2J]0;x31m31mriscv64"},
		{"version", 0, func(s *site) { s.write("boards/b2/version", "1.1.0"+escapes+"\n", 0o644) }, "[pi@b2] arm64, topdog 1.1.0[2J]0;x31m31m\n"},
		{"error", 1, func(s *site) { s.write("boards/b2/full", escapes+"café:\tno\n", 0o644) }, "    [2J]0;x31m31mcafé:\tno\n    E: You don't have"},
		{"each command", 0, func(s *site) {
			s.write("boards/b2/chatters", escapes, 0o644)
			s.write("boards/b2/version", "0.9\n", 0o644)
			s.write("boards/b2/runs", "", 0o644)
		}, "[pi@b2] installs topdog"},
		{"leader", 0, func(s *site) { s.write("boards/b2/name", "台"+escapes+"所\n", 0o644) }, "One leader: 台[2J]0;x31m31m所 (id-of-b2)."},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := newSite(t, "b1", "b2")
			tc.prepare(s)
			out := s.install(tc.status, "pi@b1", "pi@b2", "--address", first)
			s.says(out, tc.says)
			if found := steers(out); found != "" {
				t.Errorf("%+q reaches the terminal:\n%+q", found, out)
			}
		})
	}
}

// The dialog with the first board is shown as it comes, a question before its answer.
func TestDialogDoesNotSteerTheTerminal(t *testing.T) {
	s := newSite(t, "b1")
	s.write("boards/b1/asks", escapes+"address", 0o644)
	keyboard, terminal := openTerminal(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, s.script, "--timeout", "2", "pi@b1")
	cmd.Env, cmd.Stdin = s.env, terminal
	var errors bytes.Buffer
	cmd.Stderr = &errors
	stdout, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
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
	s.says(out.String(), "Which [2J]0;x31m31maddress? ", "wrote ", "One leader: b1")
	if found := steers(out.String()); found != "" {
		t.Errorf("%+q reaches the terminal:\n%+q", found, out.String())
	}
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
