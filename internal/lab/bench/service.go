package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"topdog/internal/lab/cluster"
)

// serviceName is the name for which the service of every board has an address, and serviceZone what all
// names end in for which it has one.
const (
	serviceZone = "home.arpa"
	serviceName = "dns." + serviceZone
)

// addService gives a board a service, which does not run yet: a real name server, dnsmasq, which says in each answer whose it
// is. No other board runs its program: all boards share their process ids.
func (g *Group) addService(b *board) error {
	program, err := os.ReadFile(pathOf("dnsmasq"))
	if err != nil {
		return err
	}
	if b.service, err = g.NewDaemon(b.Number); err != nil {
		return err
	}
	b.service.Log = b.Log
	return os.WriteFile(b.file("dnsmasq"), program, 0o755)
}

// startService starts the service as its recipe does (docs/recipes/dnsmasq.md): it listens on all addresses.
func (b *board) startService() error {
	err := b.service.Launch(b.file("dnsmasq"), []string{
		"--keep-in-foreground", "--conf-file=/dev/null", "--no-resolv", "--no-hosts", "--user=root", "--pid-file=",
		fmt.Sprintf("--address=/%s/192.0.2.%d", serviceZone, b.Number),
	})
	b.Log.Note("the service starts")
	return errors.Join(err, b.tell("0"))
}

func (b *board) killService() error {
	b.Log.Note("the service is killed")
	return errors.Join(b.service.Signal(unix.SIGKILL), b.tell("1"))
}

func (b *board) freezeService() error {
	b.Log.Note("the service is frozen")
	return b.service.Signal(unix.SIGSTOP)
}

// stopService ends it as a service manager does.
func (b *board) stopService() error {
	err := errors.Join(b.service.Signal(unix.SIGTERM), b.tell("1"))
	_ = b.service.Wait() // however it ends
	return err
}

// tell tells keepalived whether the service is lost, if it is to know as if it looked at processes.
func (b *board) tell(lost string) error {
	if b.setup.Track != trackProcess {
		return nil
	}
	return os.WriteFile(b.file("lost"), []byte(lost+"\n"), 0o600)
}

// restoreServices has the services of all boards run again.
func (g *Group) restoreServices() error {
	return each(g.boards, func(b *board) error {
		switch {
		case b.service == nil:
			return nil
		case b.service.Running():
			return b.service.Signal(unix.SIGCONT)
		}
		return b.startService()
	})
}

// startServices starts those of all boards, and waits until they answer.
func (g *Group) startServices(ctx context.Context) error {
	if !g.sys.served() {
		return nil
	}
	if err := each(g.boards, (*board).startService); err != nil {
		return err
	}
	return each(g.boards, func(b *board) error {
		return cluster.Until("the service of "+b.Name, func() string {
			if err := b.Do(askOnce); err != nil && ctx.Err() == nil {
				return err.Error()
			}
			return ""
		})
	})
}

// withoutService are those of a board's processes that are not its service.
func (b *board) withoutService(all []int) []int {
	return without(all, func(pid int) bool { return b.service != nil && b.service.Running() && pid == b.service.PID() })
}

// writeHook installs a script that writes down when it was run, and what has become of the board. Both programs
// give it the same arguments.
func (b *board) writeHook() error {
	path := b.file("hooks.d/notify")
	text := fmt.Sprintf("#!/bin/bash\necho \"$EPOCHREALTIME $3\" >>%s\n", b.file("hook.log"))
	return errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o755))
}

// awaitHook waits until the script was run for a leader since a moment, and returns when that was.
func (b *board) awaitHook(ctx context.Context, since time.Time) (at time.Time, err error) {
	deadline := time.Now().Add(exitTimeout)
	for time.Now().Before(deadline) {
		text, err := os.ReadFile(b.file("hook.log"))
		if err != nil && !os.IsNotExist(err) {
			return at, err
		}
		for line := range strings.Lines(string(text)) {
			when, word, _ := strings.Cut(strings.TrimSpace(line), " ")
			micros, err := strconv.ParseInt(strings.Replace(when, ".", "", 1), 10, 64)
			if at = time.UnixMicro(micros); err == nil && word == "MASTER" && at.After(since) {
				return at, nil
			}
		}
		if err := wait(ctx, pollInterval); err != nil {
			return at, err
		}
	}
	return at, fmt.Errorf("%s has the address, and its hook was not run; it says\n%s", b.Name, b.Log.Last(lastLines))
}
