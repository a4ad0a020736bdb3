package cluster

import (
	"context"
	"os"
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
	c.cleanup = append(c.cleanup, func() error { return os.RemoveAll(dir) })
	return d, nil
}

// Launch starts the daemon.
func (d *Daemon) Launch(path string, args []string, opts ...netns.StartOption) (err error) {
	opts = append(opts, netns.Stdout(d.Log), netns.Stderr(d.Log))
	d.process, err = d.Start(context.Background(), path, args, opts...)
	return err
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
		return true
	default:
	}
	select {
	case <-d.process.Exited():
		return true
	case <-time.After(within):
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
