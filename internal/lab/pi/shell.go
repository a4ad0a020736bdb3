package pi

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"os"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// maxLine is what a terminal's line holds (N_TTY_BUF_SIZE is 4096; termios(3)).
const maxLine = 4000

// ExitError says that a command on a board failed.
type ExitError struct {
	Board   string
	Command string
	Status  int
	Output  string
}

func (e *ExitError) Error() string {
	return fmt.Sprintf("%s: %s: exit status %d\n%s", e.Board, e.Command, e.Status, e.Output)
}

// Shell connects to the root shell that the board has on a serial port. It has neither echo nor prompt.
func (b *Board) Shell(ctx context.Context) (net.Conn, error) {
	conn, err := b.dial(ctx, "shell")
	if err != nil {
		err = fmt.Errorf("%s: connect to its serial port (is it on?): %w", b.Name(), err)
	}
	return conn, err
}

// dial connects to a unix socket in the board's directory, whose path may be too long for
// a socket's address (108 bytes, unix(7)): through /proc it is always short.
func (b *Board) dial(ctx context.Context, socket string) (net.Conn, error) {
	d, err := os.Open(b.dir)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	var dialer net.Dialer
	return dialer.DialContext(ctx, "unix", fmt.Sprintf("/proc/self/fd/%d/%s", d.Fd(), socket))
}

// Run runs a command in the root shell that the board has on a serial port, as a
// person with a serial cable would, and returns its output. A command that fails
// gives an *ExitError.
func (b *Board) Run(ctx context.Context, command string) (output string, err error) {
	conn, err := b.Shell(ctx)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	output, status, err := runInShell(ctx, conn, command)
	if err != nil {
		return output, fmt.Errorf("%s: %s: %w", b.Name(), command, err)
	}
	if status != 0 {
		return output, &ExitError{b.Name(), command, status, output}
	}
	return output, nil
}

// runInShell types a command into a shell that does not echo and has no prompt.
// Marks that no program prints show where the output begins and ends.
func runInShell(ctx context.Context, conn net.Conn, command string) (output string, status int, err error) {
	random := make([]byte, 6)
	if _, err := rand.Read(random); err != nil {
		return "", 0, err
	}
	tag := hex.EncodeToString(random)
	line := fmt.Sprintf("printf '\\001S%s\\001'; eval %s; printf '\\001E%[1]s:%%d\\001' $?\n", tag, quote(command))
	if len(line) > maxLine {
		return "", 0, fmt.Errorf("%d bytes are too long for a terminal's line", len(line))
	}
	marks := regexp.MustCompile("(?s)\x01S" + tag + "\x01(.*)\x01E" + tag + ":([0-9]+)\x01")

	// A deadline in the past ends a read that blocks when ctx ends.
	stop := context.AfterFunc(ctx, func() { _ = conn.SetReadDeadline(time.Unix(1, 0)) })
	defer stop()
	if _, err := conn.Write([]byte(line)); err != nil {
		return "", 0, err
	}
	var seen []byte
	chunk := make([]byte, 64<<10)
	for {
		n, err := conn.Read(chunk)
		seen = append(seen, chunk[:n]...)
		if m := marks.FindSubmatch(seen); m != nil {
			status, err := strconv.Atoi(string(m[2]))
			return string(bytes.ReplaceAll(m[1], []byte("\r\n"), []byte("\n"))), status, err
		}
		switch {
		case errors.Is(err, os.ErrDeadlineExceeded) && ctx.Err() != nil:
			// Ctrl-C leaves the shell usable.
			_, _ = conn.Write([]byte{3})
			return "", 0, fmt.Errorf("no end of it (%w); so far it said %q", ctx.Err(), seen)
		case err != nil:
			return "", 0, fmt.Errorf("the serial port went away: %w", err)
		}
	}
}

// quote makes one word of the shell of any text.
func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// heartbeat is what the boards are configured with. Emulated processors pause for
// up to 0.6 s, and for longer if the machine has something else to do; a leader
// that paused is no dead one.
const heartbeat = 2 * time.Second

// unitOverride is added to topdog's unit, as `systemctl edit` would. A board that is
// emulated by a busy machine may stand still for longer than a real one ever does.
const unitOverride = `[Service]
TimeoutStartSec=2min
TimeoutStopSec=1min
WatchdogSec=1min
`

// Configure sets the cluster up: `topdog init` on the first board, its two files
// to all others, and the unit enabled and started everywhere. The natives get its key
// and start when the boards have.
func (l *Lab) Configure(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, CommandTime)
	defer cancel()
	first := l.Boards[0]
	config, err := first.Run(ctx, "{ [ -e /etc/topdog/topdog.toml ] || topdog init --address "+Floating.String()+" >/dev/null; } && cat /etc/topdog/topdog.toml")
	if err != nil {
		return err
	}
	key, err := first.Run(ctx, "cat /etc/topdog/key")
	if err != nil {
		return err
	}
	err = l.Each(func(b *Board) error {
		for _, command := range []string{ // each of which fits into a line
			writes("/etc/topdog/topdog.toml", b.configuration(config), "0644", "root"),
			writes("/etc/topdog/key", key, "0600", "topdog"),
			writes("/etc/systemd/system/topdog.service.d/lab.conf", unitOverride, "0644", "root"),
			"systemctl daemon-reload && systemctl enable --now topdog 2>&1",
		} {
			if _, err := b.Run(ctx, command); err != nil {
				return err
			}
		}
		return nil
	})
	for n := 1; n <= l.Natives() && err == nil; n++ {
		if err = os.WriteFile(l.Native(n).KeyFile(), []byte(key), 0o600); err == nil {
			err = l.natives.Start(n, nil)
		}
	}
	return err
}

// writes is a command that writes a short text file.
func writes(path, text, mode, owner string) string {
	return fmt.Sprintf("printf %%s %s | install -D -m %s -o %s -g %s /dev/stdin %s", quote(text), mode, owner, owner, path)
}

// configuration is what `topdog init` wrote, with what is special about the lab.
func (b *Board) configuration(common string) string {
	const mark = "# The lab of emulated boards.\n"
	common, _, _ = strings.Cut(common, mark)
	text := common + mark + fmt.Sprintf("heartbeat = %q\n", heartbeat)
	if b.Light() == GPIO17 {
		text += "led = \"GPIO17\"\n"
	}
	return text
}
