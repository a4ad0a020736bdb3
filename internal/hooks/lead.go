package hooks

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"time"

	"github.com/sirupsen/logrus"
	"golang.org/x/sys/unix"

	"topdog/internal/console"
)

// LeadOptions are those of `topdog lead`.
type LeadOptions struct {
	Command   []string
	KillAfter time.Duration // from SIGTERM to SIGKILL
	Log       *logrus.Entry
}

// Lead runs a command while this board leads and has the address. It returns when the command has
// ended by itself, with its exit status, or when ctx has ended and the command as well.
func Lead(ctx context.Context, c *console.Client, o LeadOptions) (status int, err error) {
	path, err := exec.LookPath(o.Command[0])
	if err != nil {
		return 0, fmt.Errorf("topdog lead has no command that it could run: %w", err)
	}
	runtime.LockOSThread() // see start
	defer runtime.UnlockOSThread()
	following, stopFollowing := context.WithCancel(ctx)
	defer stopFollowing()
	leads := make(chan bool)
	go func() {
		_ = follow(following, c, console.WatchOptions{}, o.Log, func(s state) {
			select {
			case leads <- s.word == master:
			case <-following.Done():
			}
		})
	}()
	l := lead{LeadOptions: o, path: path, end: ctx.Done()}
	return l.run(leads)
}

// lead is a command that runs while this board leads.
type lead struct {
	LeadOptions
	path    string
	process *process // nil while it does not run
	told    bool     // it was told to end
	wanted  bool     // this board leads
	end     <-chan struct{}
	ending  bool
}

// run goes on until the command has ended by itself, or end is closed.
func (l *lead) run(leads <-chan bool) (status int, err error) {
	kill := time.NewTimer(0)
	kill.Stop()
	defer kill.Stop()
	for {
		if err := l.settle(kill); err != nil {
			return 0, err
		}
		if l.ending && l.process == nil {
			return 0, nil
		}
		var ended <-chan error
		if l.process != nil {
			ended = l.process.ended
		}
		select {
		case l.wanted = <-leads:
		case <-l.end:
			l.ending, l.end = true, nil
		case <-kill.C:
			l.Log.Warnf("%s has not ended %v after SIGTERM: killed, with all that it had started", l.path, l.KillAfter)
			l.process.signal(unix.SIGKILL)
		case err := <-ended:
			if !l.told {
				return exitStatus(err)
			}
			l.process.signal(unix.SIGKILL) // what it has left behind
			l.process, l.told = nil, false
			kill.Stop()
			l.Log.Infof("%s has ended", l.path)
		}
	}
}

// settle starts the command, or tells it to end, if that is due.
func (l *lead) settle(kill *time.Timer) (err error) {
	runs := l.wanted && !l.ending
	switch {
	case runs && l.process == nil:
		l.Log.Infof("this board leads: starts %s", l.path)
		l.process, err = start(l.path, l.Command[1:], os.Environ())
		if err != nil {
			err = fmt.Errorf("topdog lead cannot start its command: %w", err)
		}
	case !runs && l.process != nil && !l.told:
		l.Log.Infof("this board does not lead any more, or is told to stop: ends %s", l.path)
		l.told = true
		l.process.signal(unix.SIGTERM)
		kill.Reset(l.KillAfter)
	}
	return err
}

// exitStatus is how a command ended, as a shell says it: 128 and the signal's number if it was killed.
func exitStatus(err error) (int, error) {
	exit, ended := errors.AsType[*exec.ExitError](err)
	switch {
	case err == nil:
		return 0, nil
	case !ended:
		return 0, err
	}
	if s, ok := exit.Sys().(syscall.WaitStatus); ok && s.Signaled() {
		return 128 + int(s.Signal()), nil
	}
	return exit.ExitCode(), nil
}
