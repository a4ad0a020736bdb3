package hooks

import (
	"context"
	"fmt"
	"os/exec"
	"strings"
	"time"

	"github.com/sirupsen/logrus"

	"topdog/internal/console"
)

// TargetOptions are those of `topdog target`.
type TargetOptions struct {
	Unit string
	Log  *logrus.Entry
}

const (
	// systemctlWithin bounds one call of systemctl, which only leaves a job with systemd.
	systemctlWithin = 10 * time.Second
	// systemctlAgain is when it is tried again.
	systemctlAgain = time.Second
)

// Target has a unit of systemd run while this board leads and has the address, until ctx ends. Then it is stopped.
func Target(ctx context.Context, c *console.Client, o TargetOptions) error {
	t := target{TargetOptions: o, states: newNewest()}
	ended := make(chan struct{})
	following, stopFollowing := context.WithCancel(ctx)
	defer stopFollowing()
	go func() {
		t.run(following)
		close(ended)
	}()
	err := follow(following, c, console.WatchOptions{ForHooks: true}, t.Log, t.states.put)
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

// target is a unit of systemd that runs while this board leads.
type target struct {
	TargetOptions
	states *newest
	done   string // what systemd was asked last; "" if nothing, or if it refused
}

// run asks systemd for what the newest state wants, until ctx ends.
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

// systemctl leaves a job with systemd, which replaces an opposite one that is not done yet.
func (t *target) systemctl(ctx context.Context, verb string) error {
	ctx, cancel := context.WithTimeout(ctx, systemctlWithin)
	defer cancel()
	out, err := exec.CommandContext(ctx, "systemctl", "--no-block", verb, t.Unit).CombinedOutput()
	if err != nil {
		return fmt.Errorf("systemctl %s %s: %w: %s", verb, t.Unit, err, strings.TrimSpace(string(out)))
	}
	return nil
}
