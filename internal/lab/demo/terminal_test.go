package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"golang.org/x/term"

	"topdog/internal/lab/assert"
	judged "topdog/internal/lab/judge"
	"topdog/wire"
)

// pty is a terminal with a keyboard that the test types on.
type pty struct {
	keyboard, terminal *os.File

	mu   sync.Mutex
	text strings.Builder // what was written to the screen
	wg   sync.WaitGroup
	more chan struct{} // holds a token when there is more text
}

func newPTY(t testing.TB, width, height uint16) *pty {
	t.Helper()
	keyboard, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("no pseudo-terminals here: %v", err)
	}
	// Not by Fd, which would make reads block beyond the reach of Close.
	raw, err := keyboard.SyscallConn()
	assert.NoError(t, err)
	var number int
	ctlErr := raw.Control(func(fd uintptr) {
		if number, err = unix.IoctlGetInt(int(fd), unix.TIOCGPTN); err == nil {
			err = unix.IoctlSetPointerInt(int(fd), unix.TIOCSPTLCK, 0)
		}
		if err == nil {
			err = unix.IoctlSetWinsize(int(fd), unix.TIOCSWINSZ, &unix.Winsize{Row: height, Col: width})
		}
	})
	if err = errors.Join(err, ctlErr); err != nil {
		t.Skipf("no pseudo-terminals here: %v", err)
	}
	terminal, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("no pseudo-terminals here: %v", err)
	}
	p := &pty{keyboard: keyboard, terminal: terminal, more: make(chan struct{}, 1)}
	p.wg.Go(p.read)
	t.Cleanup(func() {
		terminal.Close()
		keyboard.Close()
		p.wg.Wait()
	})
	return p
}

func (p *pty) read() {
	buf := make([]byte, 4096)
	for {
		n, err := p.keyboard.Read(buf)
		p.mu.Lock()
		p.text.Write(buf[:n])
		p.mu.Unlock()
		select {
		case p.more <- struct{}{}:
		default:
		}
		if err != nil {
			return
		}
	}
}

func (p *pty) screen() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.text.String()
}

// await waits until a text was written to the screen.
func (p *pty) await(t testing.TB, text string) {
	t.Helper()
	deadline := time.After(20 * time.Second)
	for !strings.Contains(p.screen(), text) {
		select {
		case <-p.more:
		case <-deadline:
			t.Fatalf("there is no %q on the screen:\n%q", text, p.screen())
		}
	}
}

func (p *pty) press(t testing.TB, keys string) {
	t.Helper()
	if _, err := io.WriteString(p.keyboard, keys); err != nil {
		t.Fatal(err)
	}
}

// restored checks that the terminal is as it was before.
func (p *pty) restored(t testing.TB, before *term.State) {
	t.Helper()
	after := p.state(t)
	assert.Equal(t, fmt.Sprint(before), fmt.Sprint(after), "the terminal's state")
	p.await(t, leaveScreen)
}

func (p *pty) state(t testing.TB) *term.State {
	t.Helper()
	s, err := term.GetState(int(p.terminal.Fd()))
	assert.NoError(t, err)
	return s
}

// TestLive plays the demo as a person does: waits for a leader, cuts its power,
// and leaves with each of the ways to leave. The terminal is always restored.
func TestLive(t *testing.T) {
	for _, test := range []struct {
		name  string
		leave func(t testing.TB, p *pty, cancel func())
	}{
		{"q", func(t testing.TB, p *pty, _ func()) { p.press(t, "q") }},
		{"Ctrl-C", func(t testing.TB, p *pty, _ func()) { p.press(t, "\x03") }},
		{"SIGTERM", func(_ testing.TB, _ *pty, cancel func()) { cancel() }},
	} {
		t.Run(test.name, func(t *testing.T) {
			judged.RunOnLoopback(t, func(t *judged.T) {
				p := newPTY(t, 80, 24)
				before := p.state(t)
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				done := make(chan error, 1)
				go func() {
					done <- Live(ctx, Options{Boards: 3, Heartbeat: 20 * time.Millisecond, Algorithm: wire.AlgorithmBully}, p.terminal, p.terminal)
				}()
				p.await(t, "pi3 answers")
				if now := p.state(t); fmt.Sprint(now) == fmt.Sprint(before) {
					t.Error("the terminal is not in raw mode")
				}
				p.press(t, "3")
				p.await(t, "cut the power of pi3")
				p.press(t, "9")
				p.await(t, "there is no board 9")
				test.leave(t, p, cancel)
				select {
				case err := <-done:
					assert.ErrorIs(t, err, nil, "")
				case <-time.After(20 * time.Second):
					t.Fatal("it has not ended")
				}
				p.restored(t, before)
			})
		})
	}
}

// TestTerminalAfterPanic: whatever happens while the picture is shown, the
// person gets the terminal back.
func TestTerminalAfterPanic(t *testing.T) {
	p := newPTY(t, 80, 24)
	before := p.state(t)
	func() {
		defer func() {
			if recover() == nil {
				t.Error("there was no panic")
			}
		}()
		terminal, err := openTerminal(p.terminal, p.terminal)
		assert.NoError(t, err)
		defer terminal.close()
		panic("on purpose")
	}()
	p.restored(t, before)
}

// TestDaemonPanic: a mistake in a daemon ends the show with an error that tells where
// it is, and leaves nothing behind.
func TestDaemonPanic(t *testing.T) {
	c := offGroup(t, heirs(2))
	b := c.boards[0]
	b.stop, b.done = func() {}, make(chan struct{})
	c.run(t.Context(), b) // a daemon that is nil
	assert.ErrorContains(t, <-c.failed, "pi1: panic", "")
}

// TestShowWritesOnlyWhatChanged keeps the picture usable over a slow line.
func TestShowWritesOnlyWhatChanged(t *testing.T) {
	p := newPTY(t, 80, 24)
	terminal, err := openTerminal(p.terminal, p.terminal)
	assert.NoError(t, err)
	defer terminal.close()
	v := peace()
	assert.NoError(t, terminal.show(v))
	p.await(t, " quit") // the last of the picture
	size := len(p.screen())
	assert.NoError(t, terminal.show(v))
	v.Answers = "pi1"
	assert.NoError(t, terminal.show(v))
	p.await(t, "pi1 answers")
	if more := p.screen()[size:]; strings.Contains(more, "LEADER") || strings.Count(more, clearRest) != 1 {
		t.Errorf("for one changed line this was written: %q", more)
	}
	assert.NoError(t, unix.IoctlSetWinsize(int(p.terminal.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 10, Col: 40}))
	assert.NoError(t, terminal.show(v))
	p.await(t, clearAll)
	if terminal.width != 40 || terminal.height != 10 || len(terminal.shown) != 10 {
		t.Errorf("after a change of size the picture is %dx%d, %d lines", terminal.width, terminal.height, len(terminal.shown))
	}
}

// TestHangUp: a terminal that goes away ends the demo.
func TestHangUp(t *testing.T) {
	p := newPTY(t, 80, 24)
	terminal, err := openTerminal(p.terminal, p.terminal)
	assert.NoError(t, err)
	done := make(chan error, 1)
	typed := make(chan []byte, 1)
	go func() { done <- terminal.read(t.Context(), typed) }()
	p.press(t, "x")
	assert.Is(t, "x", string(<-typed), "read")
	p.keyboard.Close()
	if err := <-done; err == nil || errors.Is(err, context.Canceled) {
		t.Errorf("the reader ended with %v", err)
	}
}
