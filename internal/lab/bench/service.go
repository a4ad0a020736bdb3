package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

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
	path    string // of its program, which no other board runs: all boards share their process ids
	process *netns.Process
	changed func(lives bool) error // tells the system what its own means would; nil if they do
}

// newService gives a board a service, which does not run yet.
func newService(b *board, sys system) (*service, error) {
	program, err := os.ReadFile(pathOf("dnsmasq"))
	if err != nil {
		return nil, err
	}
	s := &service{board: b, path: servicePath(b)}
	if k, ok := sys.(*keepalived); ok && k.track == trackProcess {
		s.changed = func(lives bool) error { return k.tellService(b, lives) }
	}
	return s, os.WriteFile(s.path, program, 0o755)
}

// servicePath is the program of a board's service.
func servicePath(b *board) string { return filepath.Join(b.Dir, "dnsmasq") }

// start starts the service as its recipe does (docs/recipes/dnsmasq.md): it listens on all addresses.
func (s *service) start() (err error) {
	s.process, err = s.board.Host.Start(context.Background(), s.path, []string{
		"--keep-in-foreground", "--conf-file=/dev/null", "--no-resolv", "--no-hosts", "--user=root", "--pid-file=",
		fmt.Sprintf("--address=/%s/192.0.2.%d", serviceZone, s.board.Number),
	}, netns.Stdout(s.board.Log), netns.Stderr(s.board.Log))
	if err != nil {
		return err
	}
	s.board.Log.Note("the service starts")
	return s.tell(true)
}

// kill kills it.
func (s *service) kill() error {
	err := s.process.Kill()
	if err == nil {
		err = s.tell(false)
	}
	s.board.Log.Note("the service was killed")
	return err
}

// restore starts it unless it runs, and lets it go on.
func (s *service) restore() error {
	select {
	case <-s.process.Exited():
		return s.start()
	default:
		return s.process.Signal(unix.SIGCONT)
	}
}

// restoreServices has the services of all boards run again.
func (r *rig) restoreServices() error {
	for _, b := range r.boards {
		if b.service == nil {
			return nil
		}
		if err := b.service.restore(); err != nil {
			return err
		}
	}
	return nil
}

// stop ends it as a service manager does.
func (s *service) stop() error {
	if err := errors.Join(s.process.Signal(unix.SIGTERM), s.tell(false)); err != nil {
		return err
	}
	_ = s.process.Wait() // however it ends
	return nil
}

func (s *service) tell(lives bool) error {
	if s.changed == nil {
		return nil
	}
	return s.changed(lives)
}

// startServices starts those of all boards, and waits until they answer.
func (r *rig) startServices(ctx context.Context) error {
	for _, b := range r.boards {
		if b.service == nil {
			return nil
		}
		if err := b.service.start(); err != nil {
			return err
		}
	}
	for _, b := range r.boards {
		if err := cluster.Until("the service of "+b.Name, func() string {
			if ctx.Err() != nil {
				return ""
			}
			if err := b.Do(func() error { return askOnce("127.0.0.1") }); err != nil {
				return err.Error()
			}
			return ""
		}); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// reboot ends the daemon and the service of a board as a shutdown does, and starts both again. The service
// is late.
func (t *trial) reboot(ctx context.Context, b *board) error {
	if err := t.leave(ctx, b); err != nil {
		return err
	}
	if !b.Ended(exitTimeout) {
		return fmt.Errorf("%s: the daemon does not end", b.Name)
	}
	if err := b.service.stop(); err != nil {
		return err
	}
	if err := t.keepWatching(ctx, bootTime); err != nil {
		return err
	}
	if err := errors.Join(b.cleanUp(), b.start()); err != nil {
		return err
	}
	if err := wait(ctx, serviceLate); err != nil {
		return err
	}
	// Now it may take the address back.
	if err := t.acquireSlot(ctx); err != nil {
		return err
	}
	if err := b.service.start(); err != nil {
		return err
	}
	if b == t.leader && t.variant.preempt {
		if err := t.atMost(ctx, t.maxOutage(), func(ctx context.Context) error { return t.awaitAnswerOf(ctx, b) }); err != nil {
			return err
		}
	}
	return wait(ctx, t.watchAfter())
}

// leave has a board go before its service is stopped: topdog-leave.service does it by `topdog leave`. The others have
// nothing but the end of their service.
func (t *trial) leave(ctx context.Context, b *board) error {
	if s, ok := t.sys.(*topdog); ok {
		return b.command(ctx, s.path, "leave", "--config", s.config(b))
	}
	return b.Signal(unix.SIGTERM)
}

// startHooks starts what runs the scripts of all boards: topdog has a program for that, keepalived runs them itself.
func (r *rig) startHooks() error {
	s, ok := r.sys.(*topdog)
	if !ok || !r.variant.hooked {
		return nil
	}
	for _, b := range r.boards {
		hooks, err := r.NewDaemon(b.Number)
		if err != nil {
			return err
		}
		if err := hooks.Launch(s.path, []string{"hooks", "--dir", filepath.Dir(b.hookPath()), "--config", s.config(b)}); err != nil {
			return err
		}
	}
	return nil
}
