package pi

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
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

// Run runs a command in the root shell that the board has on a serial port, as a
// person with a serial cable would, and returns its output. A command that fails
// gives an *ExitError.
func (b *Board) Run(ctx context.Context, command string) (output string, err error) {
	conn, err := dialIn(ctx, b.dir, "shell")
	if err != nil {
		return "", fmt.Errorf("%s: connect to its serial port (is it on?): %w", b.Name(), err)
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

// WriteFile writes a short text file on the board, with mode and owner.
func (b *Board) WriteFile(ctx context.Context, path, text, mode, owner string) error {
	file := quote(path)
	_, err := b.Run(ctx, strings.Join([]string{
		"umask 077",
		"mkdir -p -m 0755 \"$(dirname " + file + ")\"",
		"printf %s " + quote(text) + " > " + file,
		"chmod " + mode + " " + file,
		"chown " + owner + " " + file,
	}, " && "))
	var exit *ExitError
	if errors.As(err, &exit) {
		// Without the command, which may contain a key.
		return fmt.Errorf("%s: write %s: exit status %d", b.Name(), path, exit.Status)
	}
	return err
}

// detach is what ends Attach: Ctrl-], as in telnet(1).
const detach = 0x1d

// Attach connects a terminal in raw mode to the board's shell, until the user
// types Ctrl-] or ctx ends.
func (b *Board) Attach(ctx context.Context, in io.Reader, out io.Writer) error {
	conn, err := dialIn(ctx, b.dir, "shell")
	if err != nil {
		return fmt.Errorf("%s: connect to its serial port (is it on?): %w", b.Name(), err)
	}
	defer conn.Close()
	// Run wants a shell without echo and prompt, a person wants both.
	if _, err := fmt.Fprintf(conn, "stty echo onlcr; PS1='%s# '\n", b.Name()); err != nil {
		return err
	}
	ended := make(chan error, 2)
	go func() {
		_, err := io.Copy(out, conn)
		ended <- err
	}()
	go func() { ended <- typeInto(conn, in) }()
	select {
	case err = <-ended:
	case <-ctx.Done():
	}
	// Ctrl-U drops a line that was begun, Ctrl-C what is running.
	_, _ = fmt.Fprint(conn, "\x15\x03")
	_, _ = fmt.Fprint(conn, "stty -echo -onlcr; PS1=\n")
	return err
}

// typeInto copies what is typed until the key that ends it.
func typeInto(conn io.Writer, in io.Reader) error {
	buf := make([]byte, 256)
	for {
		n, err := in.Read(buf)
		typed, _, end := bytes.Cut(buf[:n], []byte{detach})
		if _, err := conn.Write(typed); err != nil {
			return err
		}
		switch {
		case end || errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
	}
}
