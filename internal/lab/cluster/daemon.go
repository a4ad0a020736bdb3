package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"topdog/internal/lab/netns"
)

// Daemon is a program that runs in the foreground on a board.
type Daemon struct {
	*netns.Host
	Number int    // of the board
	Dir    string // for its files; the path is short enough for a socket in it (107 bytes)
	Log    *Log   // what it prints

	process *netns.Process // nil while it was never started
}

// NewDaemon makes a directory for a daemon on a board. Nothing runs yet.
func (c *Cluster) NewDaemon(board int) (*Daemon, error) {
	dir, err := os.MkdirTemp("", "topdog")
	if err != nil {
		return nil, err
	}
	d := &Daemon{Host: c.LAN.Board(board), Number: board, Dir: dir, Log: &Log{start: c.began}}
	c.daemons = append(c.daemons, d)
	return d, nil
}

// Launch starts the daemon.
func (d *Daemon) Launch(path string, args []string, opts ...netns.StartOption) (err error) {
	opts = append(opts, netns.Stdout(d.Log), netns.Stderr(d.Log))
	d.process, err = d.Start(context.Background(), path, args, opts...)
	return err
}

// Command gives the board a command, and waits for its end. If the command fails, the error is what it says of that.
func (d *Daemon) Command(path string, args []string, opts ...netns.StartOption) (said string, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), Timeout)
	defer cancel()
	var stdout, stderr strings.Builder
	process, err := d.Start(ctx, path, args, append(opts, netns.Stdout(&stdout), netns.Stderr(&stderr))...)
	if err != nil {
		return "", err
	}
	err = process.Wait()
	var ended *exec.ExitError
	if errors.As(err, &ended) {
		err = errors.New(stderr.String())
	}
	d.Log.Note("%s %s: %s%v", filepath.Base(path), strings.Join(args, " "), stdout.String(), err)
	return stdout.String(), err
}

// Running reports whether the daemon runs.
func (d *Daemon) Running() bool { return d.process != nil && !d.Ended(0) }

// Ended waits for the daemon to end, and reports whether it has. One that was never started has.
func (d *Daemon) Ended(within time.Duration) bool {
	if d.process == nil {
		return true
	}
	select {
	case <-d.process.Exited():
	case <-time.After(within):
	}
	select { // also if both were so
	case <-d.process.Exited():
		return true
	default:
		return false
	}
}

// PID is the process of the daemon that was started last.
func (d *Daemon) PID() int { return d.process.PID }

// Signal sends it a signal.
func (d *Daemon) Signal(sig os.Signal) error { return d.process.Signal(sig) }

// Wait waits for the daemon to end, and returns how it did, as exec.Cmd.Wait does: nil if it
// was never started.
func (d *Daemon) Wait() error {
	if d.process == nil {
		return nil
	}
	return d.process.Wait()
}

// maxLog bounds a log, in case a program goes mad.
const maxLog = 1 << 20

// Log keeps what a program prints, each line with the time at which it came.
type Log struct {
	start time.Time

	mu   sync.Mutex
	text []byte
	open bool // the last line has no end yet
}

// Write adds what was printed, and forgets the oldest lines when it is too much.
func (l *Log) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for line := range bytes.Lines(b) {
		if !l.open {
			l.text = fmt.Appendf(l.text, "%8.1f ms  ", float64(time.Since(l.start))/float64(time.Millisecond))
		}
		l.text = append(l.text, line...)
		l.open = !bytes.HasSuffix(line, []byte("\n"))
	}
	if len(l.text) > maxLog {
		half := l.text[len(l.text)-maxLog/2:]
		_, half, _ = bytes.Cut(half, []byte("\n"))
		l.text = bytes.Clone(half)
	}
	return len(b), nil
}

// Note adds a line that the program has not printed.
func (l *Log) Note(format string, args ...any) { fmt.Fprintf(l, "--- "+format+"\n", args...) }

func (l *Log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return string(l.text)
}

// Last returns the last lines.
func (l *Log) Last(lines int) string {
	list := strings.Split(strings.TrimSpace(l.String()), "\n")
	return strings.Join(list[max(0, len(list)-lines):], "\n")
}

// Logged reports whether there is a line with all of these words in it.
func (l *Log) Logged(words ...string) bool { return l.Count(words...) > 0 }

// Count returns in how many lines all of these words are.
func (l *Log) Count(words ...string) (n int) {
lines:
	for line := range strings.Lines(l.String()) {
		for _, w := range words {
			if !strings.Contains(line, w) {
				continue lines
			}
		}
		n++
	}
	return n
}
