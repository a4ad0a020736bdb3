package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"topdog/internal/lab/cluster"
	"topdog/internal/lab/netns"
)

// serviceName is the name for which the service of every board has an address, and serviceZone what all
// names end in for which it has one.
const (
	serviceZone = "home.arpa"
	serviceName = "dns." + serviceZone
)

// service is the name server of a board: a real dnsmasq, which says in each answer whose it is.
type service struct {
	board   *board
	process *netns.Process
}

// newService gives a board a service, which does not run yet. No other board runs its program: all boards share their
// process ids.
func newService(b *board) (*service, error) {
	program, err := os.ReadFile(pathOf("dnsmasq"))
	if err != nil {
		return nil, err
	}
	return &service{board: b}, os.WriteFile(b.file("dnsmasq"), program, 0o755)
}

// start starts the service as its recipe does (docs/recipes/dnsmasq.md): it listens on all addresses.
func (s *service) start() (err error) {
	s.process, err = s.board.Host.Start(context.Background(), s.board.file("dnsmasq"), []string{
		"--keep-in-foreground", "--conf-file=/dev/null", "--no-resolv", "--no-hosts", "--user=root", "--pid-file=",
		fmt.Sprintf("--address=/%s/192.0.2.%d", serviceZone, s.board.Number),
	}, netns.Stdout(s.board.Log), netns.Stderr(s.board.Log))
	if err != nil {
		return err
	}
	s.board.Log.Note("the service starts")
	return s.tell("0")
}

// kill kills it.
func (s *service) kill() error {
	err := s.process.Kill()
	if err == nil {
		err = s.tell("1")
	}
	s.board.Log.Note("the service was killed")
	return err
}

func (s *service) freeze() error {
	s.board.Log.Note("the service is frozen")
	return s.process.Signal(unix.SIGSTOP)
}

// stop ends it as a service manager does.
func (s *service) stop() error {
	if err := errors.Join(s.process.Signal(unix.SIGTERM), s.tell("1")); err != nil {
		return err
	}
	_ = s.process.Wait() // however it ends
	return nil
}

// tell tells keepalived whether the service is lost, if it is to know as if it looked at processes.
func (s *service) tell(lost string) error {
	if s.board.setup.Track != trackProcess {
		return nil
	}
	return os.WriteFile(s.board.file("lost"), []byte(lost+"\n"), 0o600)
}

// restoreServices has the services of all boards run again.
func (g *Group) restoreServices() error {
	return each(g.boards, func(b *board) error {
		if b.service == nil {
			return nil
		}
		select {
		case <-b.service.process.Exited():
			return b.service.start()
		default:
			return b.service.process.Signal(unix.SIGCONT)
		}
	})
}

// startServices starts those of all boards, and waits until they answer.
func (g *Group) startServices(ctx context.Context) error {
	if !g.sys.served() {
		return nil
	}
	if err := each(g.boards, func(b *board) error { return b.service.start() }); err != nil {
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
	if b.service == nil || b.service.process == nil {
		return all
	}
	return slices.DeleteFunc(slices.Clone(all), func(pid int) bool { return pid == b.service.process.PID })
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
