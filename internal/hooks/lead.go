package hooks

import (
	"context"
	"errors"
	"fmt"
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
	runtime.LockOSThread() // see command
	defer runtime.UnlockOSThread()
	_ = follow(ctx, c, o.Log, func(ctx context.Context, states *newest) {
		status, err = (&lead{o, path, states}).run(ctx)
	})
	return status, err
}

// lead runs a command while this board leads.
type lead struct {
	LeadOptions
	path   string
	states *newest
}

// run returns when the command has ended by itself, or after ctx has ended.
func (l *lead) run(ctx context.Context) (status int, err error) {
	for l.await(ctx) {
		l.Log.Infof("this board leads: starts %s", l.path)
		c := command(context.Background(), l.path, l.Command[1:]...)
		if err := c.Start(); err != nil {
			return 0, fmt.Errorf("topdog lead cannot start its command: %w", err)
		}
		ended := make(chan error, 1)
		go func() { ended <- c.Wait() }()
		for l.leads() && ctx.Err() == nil {
			select {
			case err := <-ended:
				return exitStatus(err)
			case <-l.states.wake:
			case <-ctx.Done():
			}
		}
		l.stop(c, ended)
	}
	return 0, nil
}

// await waits until this board leads. It returns false when ctx ends.
func (l *lead) await(ctx context.Context) bool {
	for !l.leads() && ctx.Err() == nil {
		select {
		case <-l.states.wake:
		case <-ctx.Done():
		}
	}
	return ctx.Err() == nil
}

func (l *lead) leads() bool {
	s, _, _ := l.states.take()
	return s.word == master
}

// stop ends the command, with all that it has started.
func (l *lead) stop(c *exec.Cmd, ended <-chan error) {
	l.Log.Infof("this board does not lead any more, or is told to stop: ends %s", l.path)
	_ = signalGroup(c, unix.SIGTERM)
	select {
	case <-ended:
		_ = signalGroup(c, unix.SIGKILL) // whatever it has left behind
	case <-time.After(l.KillAfter):
		l.Log.Warnf("%s has not ended %v after SIGTERM: killed, with all that it had started", l.path, l.KillAfter)
		_ = signalGroup(c, unix.SIGKILL)
		<-ended
	}
	l.Log.Infof("%s has ended", l.path)
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

// Target starts a systemd unit when this board begins to lead and has the address. It stops the unit when that is no
// longer so, or when ctx ends.
func Target(ctx context.Context, c *console.Client, o TargetOptions) error {
	err := follow(ctx, c, o.Log, o.run)
	if failed := o.systemctl(context.WithoutCancel(ctx), "stop"); failed != nil {
		return failed
	}
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// run has systemd start or stop the unit according to the newest state, until ctx ends.
func (o *TargetOptions) run(ctx context.Context, states *newest) {
	done := "" // the last verb that systemd has accepted; "" if the last one failed
	var again <-chan time.Time
	for {
		select {
		case <-ctx.Done():
			return
		case <-states.wake:
		case <-again:
		}
		s, _, _ := states.take()
		verb := "stop"
		if s.word == master {
			verb = "start"
		}
		if verb == done {
			continue
		}
		if err := o.systemctl(ctx, verb); err != nil {
			o.Log.Warn(err)
			done, again = "", time.After(systemctlAgain)
			continue
		}
		o.Log.Infof("this board is %s: systemctl %s %s", s.word, verb, o.Unit)
		done = verb
	}
}

// systemctl has systemd queue a job. The job replaces an opposite one that isn't done yet.
func (o *TargetOptions) systemctl(ctx context.Context, verb string) error {
	ctx, cancel := context.WithTimeout(ctx, systemctlWithin)
	defer cancel()
	out, err := exec.CommandContext(ctx, "systemctl", "--no-block", verb, o.Unit).CombinedOutput()
	if err != nil {
		return fmt.Errorf("systemctl %s %s: %w: %s", verb, o.Unit, err, strings.TrimSpace(string(out)))
	}
	return nil
}
