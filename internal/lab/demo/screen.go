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
