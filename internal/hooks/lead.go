package hooks

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
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

// Lead runs a command while this board leads and has the address. If the command ends by itself, Lead returns its exit
// status. When ctx ends, Lead ends the command and returns 0.
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
	process *process // nil while the command doesn't run
	told    bool     // the command was told to end
	wanted  bool     // this board leads
	end     <-chan struct{}
	ending  bool
}

// run returns when the command has ended by itself, or after end was closed.
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
			l.process.signal(unix.SIGKILL) // whatever it has left behind
			l.process, l.told = nil, false
			kill.Stop()
			l.Log.Infof("%s has ended", l.path)
		}
	}
}

// settle starts the command or tells it to end, if either is due.
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

// exitStatus returns a command's exit status as a shell has it: 128 plus the number of the signal that killed it.
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

// TargetOptions are those of `topdog target`.
type TargetOptions struct {
	Unit string
	Log  *logrus.Entry
}

const (
	// systemctlWithin bounds one call of systemctl, which only queues a job.
	systemctlWithin = 10 * time.Second
	// systemctlAgain is the pause after a call that failed.
	systemctlAgain = time.Second
)

// Target starts a systemd unit when this board begins to lead and has the address, and stops the unit when that ends or
// ctx does.
func Target(ctx context.Context, c *console.Client, o TargetOptions) error {
	t := target{TargetOptions: o, states: newNewest()}
	ended := make(chan struct{})
	following, stopFollowing := context.WithCancel(ctx)
	defer stopFollowing()
	go func() {
		t.run(following)
		close(ended)
	}()
	err := follow(following, c, console.WatchOptions{}, t.Log, t.states.put)
	stopFollowing()
	<-ended
	stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), systemctlWithin)
	defer cancel()
	if failed := t.systemctl(stopping, "stop"); failed != nil {
		return failed
	}
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// target is a systemd unit that runs while this board leads.
type target struct {
	TargetOptions
	states *newest
	done   string // the last verb that systemd has accepted; "" if the last one failed
}

// run has systemd start or stop the unit according to the newest state, until ctx ends.
func (t *target) run(ctx context.Context) {
	again := time.NewTimer(0)
	again.Stop()
	defer again.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.states.wake:
		case <-again.C:
		}
		s, _, _ := t.states.take()
		verb := "stop"
		if s.word == master {
			verb = "start"
		}
		if verb == t.done {
			continue
		}
		if err := t.systemctl(ctx, verb); err != nil {
			t.Log.Warn(err)
			t.done = ""
			again.Reset(systemctlAgain)
			continue
		}
		t.Log.Infof("this board is %s: systemctl %s %s", s.word, verb, t.Unit)
		t.done = verb
	}
}

// systemctl queues a job, which replaces an opposite one that isn't done yet.
func (t *target) systemctl(ctx context.Context, verb string) error {
	ctx, cancel := context.WithTimeout(ctx, systemctlWithin)
	defer cancel()
	out, err := exec.CommandContext(ctx, "systemctl", "--no-block", verb, t.Unit).CombinedOutput()
	if err != nil {
		return fmt.Errorf("systemctl %s %s: %w: %s", verb, t.Unit, err, strings.TrimSpace(string(out)))
	}
	return nil
}
