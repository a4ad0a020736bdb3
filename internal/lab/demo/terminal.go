package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
	"golang.org/x/term"
)

const (
	// The private modes of xterm that every terminal of today understands:
	// the alternate screen, and the cursor hidden.
	enterScreen = "\x1b[?1049h\x1b[?25l\x1b[2J"
	leaveScreen = "\x1b[0m\x1b[?25h\x1b[?1049l"
	// Control sequences of ECMA-48: clear the rest of the line, or everything.
	clearRest = "\x1b[K"
	clearAll  = "\x1b[2J"

	// fallbackWidth and fallbackHeight are for a terminal that tells no size.
	fallbackWidth, fallbackHeight = 80, 24

	// pollEvery is how often the reader of the keys looks whether it should end.
	pollEvery = 100 * time.Millisecond
)

// terminal is a screen in raw mode. Whoever opens it must close it, whatever happens.
type terminal struct {
	in, out *os.File
	palette palette
	saved   *term.State
	close1  sync.Once

	width, height int
	shown         []string // what is on the screen, line by line
}

// openTerminal takes the screen over.
func openTerminal(in, out *os.File) (*terminal, error) {
	t := &terminal{in: in, out: out, palette: colours}
	if os.Getenv("NO_COLOR") != "" { // no-color.org
		t.palette = mono
	}
	var err error
	if t.saved, err = term.MakeRaw(int(in.Fd())); err != nil {
		return nil, fmt.Errorf("set the terminal to raw mode: %w", err)
	}
	if _, err := io.WriteString(out, enterScreen); err != nil {
		return nil, errors.Join(fmt.Errorf("write to the terminal: %w", err), t.close())
	}
	return t, nil
}

// close gives the screen back as it was. It may be called more than once.
func (t *terminal) close() (err error) {
	t.close1.Do(func() {
		_, writeErr := io.WriteString(t.out, leaveScreen)
		err = errors.Join(writeErr, term.Restore(int(t.in.Fd()), t.saved))
	})
	return err
}

// size returns how large the screen is now, in characters.
func (t *terminal) size() (width, height int) {
	width, height, err := term.GetSize(int(t.out.Fd()))
	if err != nil || width <= 0 || height <= 0 {
		return fallbackWidth, fallbackHeight
	}
	return width, height
}

// show draws the view, and writes only the lines that have changed.
func (t *terminal) show(v view) error {
	width, height := t.size()
	var b strings.Builder
	if width != t.width || height != t.height {
		t.width, t.height, t.shown = width, height, nil
		b.WriteString(clearAll)
	}
	lines := make([]string, 0, height)
	for i, r := range paint(v, width, height) {
		lines = append(lines, r.render(t.palette))
		if i >= len(t.shown) || t.shown[i] != lines[i] {
			fmt.Fprintf(&b, "\x1b[%d;1H%s%s", i+1, lines[i], clearRest)
		}
	}
	t.shown = lines
	if b.Len() == 0 {
		return nil
	}
	_, err := io.WriteString(t.out, b.String())
	return err
}

// read hands over what is typed until ctx ends or the terminal goes away. It
// polls, since nothing else ends a read from a terminal.
func (t *terminal) read(ctx context.Context, typed chan<- []byte) error {
	fds := []unix.PollFd{{Fd: int32(t.in.Fd()), Events: unix.POLLIN}}
	for ctx.Err() == nil {
		n, err := unix.Poll(fds, int(pollEvery.Milliseconds()))
		switch {
		case errors.Is(err, unix.EINTR), err == nil && n == 0:
			continue
		case err != nil:
			return fmt.Errorf("wait for a key: %w", err)
		}
		buf := make([]byte, 64)
		if n, err = t.in.Read(buf); err != nil {
			return fmt.Errorf("read a key: %w", err)
		}
		select {
		case typed <- buf[:n]:
		case <-ctx.Done():
		}
	}
	return nil
}

// verb is what a key asks for.
type verb int

const (
	doNothing verb = iota
	doPower        // cut the power of a board, or switch it on
	doCable        // pull the cable of a board, or put it back
	doResign
	doStop // stop the leader's daemon, or start the one that was stopped
	doQuit
)

// command is a verb, and the board that it is about.
type command struct {
	verb  verb
	board int
}

// shifted are the digits 1 to 9 and 0 with shift on a US keyboard.
const shifted = "!@#$%^&*()"

// keys turns what a terminal sends into commands. Its zero value is ready. It keeps
// what a sequence needs between two reads.
type keys struct {
	which  bool // a cable was asked for, and the board is awaited
	escape escape
}

// escape is how far an escape sequence has come (ECMA-48, section 5.4). Arrow
// and function keys send them, and no letter in one is a command.
type escape int

const (
	outside escape = iota
	begun          // ESC has come
	inside         // ESC [ has, or ESC O
)

// parse takes in what was read, and returns the commands in it.
func (k *keys) parse(input []byte) (commands []command) {
	for _, b := range input {
		if c := k.key(b); c.verb != doNothing {
			commands = append(commands, c)
		}
	}
	return commands
}

func (k *keys) key(b byte) command {
	switch k.escape {
	case begun:
		k.escape = outside
		if b == '[' || b == 'O' {
			k.escape = inside
			return command{}
		}
	case inside:
		if b >= 0x40 && b <= 0x7e { // the final byte
			k.escape = outside
		}
		return command{}
	}
	which := k.which
	k.which = false
	switch {
	case b == 0x1b:
		k.escape = begun
	case b >= '0' && b <= '9' && which:
		return command{doCable, digit(b)}
	case b >= '0' && b <= '9':
		return command{doPower, digit(b)}
	case b == 'c' || b == 'C':
		k.which = true
	case b == 'r' || b == 'R':
		return command{verb: doResign}
	case b == 's' || b == 'S':
		return command{verb: doStop}
	case b == 'q' || b == 'Q', b == 0x03, b == 0x04: // Ctrl-C and Ctrl-D, which raw mode hands to us
		return command{verb: doQuit}
	default:
		for i := range len(shifted) {
			if b == shifted[i] {
				return command{doCable, i + 1}
			}
		}
	}
	return command{}
}

// digit is the board that a digit means; 0 is the tenth.
func digit(b byte) int {
	if b == '0' {
		return 10
	}
	return int(b - '0')
}
