package bench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"topdog/internal/lab/cluster"
	"topdog/internal/lab/netns"
	"topdog/internal/lab/observe"
)

const (
	// pollInterval is how often the bench looks at what it has no notice of.
	pollInterval = 20 * time.Millisecond
	// stableTimeout bounds how long a group may take to become stable, beyond the time
	// for which it must have been so.
	stableTimeout = 20 * time.Second
	// stableAttempts is how often a group is started that does not become stable.
	stableAttempts = 3
	// exitTimeout is how long a daemon gets to end after SIGTERM.
	exitTimeout = 8 * time.Second
	// lastLines is how many lines of a daemon's output an error shows.
	lastLines = 6
)

// rig is a LAN whose boards run one system.
type rig struct {
	*cluster.Cluster
	sys      system
	variant  variant
	boards   []*board
	browsers *browsers // nil unless the variant wants them
}

// board is one of its machines, and the system's daemon on it. The last has the highest rank.
type board struct {
	*cluster.Daemon
	of   int // boards
	argv []string

	service *service // nil if the system does not look at one
}

// newRig builds the LAN and writes the configurations. Nothing runs yet.
func newRig(sys system, boards int, v variant) (r *rig, err error) {
	r = &rig{sys: sys, variant: v}
	if r.Cluster, err = cluster.New(boards + v.strangers); err != nil {
		return nil, err
	}
	for n := 1; n <= boards; n++ {
		if err := r.addBoard(n, boards); err != nil {
			return nil, errors.Join(err, r.close())
		}
	}
	return r, nil
}

func (r *rig) addBoard(number, of int) (err error) {
	b := &board{of: of}
	if b.Daemon, err = r.NewDaemon(number); err != nil {
		return err
	}
	r.boards = append(r.boards, b)
	if served(r.sys) {
		if b.service, err = newService(b, r.sys); err != nil {
			return err
		}
	}
	if r.variant.hooked {
		if err := b.writeHook(); err != nil {
			return err
		}
	}
	b.argv, err = r.sys.configure(b, r.variant)
	return err
}

// close ends the daemons in good order, and takes the LAN apart. Lost notifications matter to
// those runs that count holders, which look for themselves.
func (r *rig) close() error {
	if r.browsers != nil {
		r.browsers.close()
	}
	r.Stop(exitTimeout / 2)
	if err := r.Close(); !errors.Is(err, cluster.ErrLost) {
		return err
	}
	return nil
}

// addressOf is the own address of any board of the LAN.
func (b *board) addressOf(number int) netip.Addr {
	a := b.Addr.Addr()
	for n := b.Number; n < number; n++ {
		a = a.Next()
	}
	for n := b.Number; n > number; n-- {
		a = a.Prev()
	}
	return a
}

// start runs the daemon of a board.
func (b *board) start() error { return b.Launch(b.argv[0], b.argv[1:]) }

// command runs a program on the board to its end.
func (b *board) command(ctx context.Context, path string, args ...string) error {
	var out bytes.Buffer
	p, err := b.Start(ctx, path, args, netns.Stdout(&out), netns.Stderr(&out))
	if err != nil {
		return err
	}
	if err := p.Wait(); err != nil {
		return fmt.Errorf("%s %s: %w: %s", path, strings.Join(args, " "), err, out.String())
	}
	return nil
}

// repair brings a board back after whatever was done to it: all of its processes
// are ended, an address that was left is taken away, and the daemon starts anew.
func (b *board) repair() error {
	if err := b.cleanUp(); err != nil {
		return err
	}
	return b.start()
}

// cleanUp ends all of a board's processes and takes away an address that was left.
func (b *board) cleanUp() error {
	deadline := time.Now().Add(exitTimeout)
	for {
		pids, err := b.Processes()
		if err != nil {
			return err
		}
		if len(pids) == 0 {
			break
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("%s: the processes %v do not end", b.Name, pids)
		}
		signalAll(pids, unix.SIGKILL)
		<-time.After(pollInterval / 4)
	}
	if !b.Ended(exitTimeout) {
		return fmt.Errorf("%s: the daemon has not ended, though the board has no processes", b.Name)
	}
	// keepalived does not start while its pid file names a process that nobody has reaped, as
	// may be in a container.
	left, err := filepath.Glob(filepath.Join(b.Dir, "*pid"))
	for _, file := range left {
		err = errors.Join(err, os.Remove(file))
	}
	if err != nil {
		return err
	}
	err = b.DeleteAddress(netip.PrefixFrom(vip, 32))
	if errors.Is(err, unix.EADDRNOTAVAIL) {
		return nil
	}
	return err
}

// signalAll sends a signal to processes one right after the other. Those that have
// ended meanwhile don't matter.
func signalAll(pids []int, sig syscall.Signal) {
	for _, pid := range pids {
		_ = unix.Kill(pid, sig)
	}
}

// startInTurn starts the board of the highest rank, with as many others as it needs to lead, and
// when it has the address all the rest, as an administrator would set up a group.
func (r *rig) startInTurn(ctx context.Context) error {
	if err := r.startServices(ctx); err != nil {
		return err
	}
	if err := errors.Join(r.startHooks(), r.startPages()); err != nil {
		return err
	}
	rest := len(r.boards) - r.sys.quorum(len(r.boards))
	for _, b := range r.boards[rest:] {
		if err := b.start(); err != nil {
			return err
		}
	}
	wait, cancel := context.WithTimeout(ctx, stableTimeout)
	defer cancel()
	if err := r.Holders.WaitFor(wait, func(h []int) bool { return len(h) == 1 }); err != nil {
		return fmt.Errorf("nobody takes the address in a new group: %w\n%s", err, r.logs())
	}
	for _, b := range r.boards[:rest] {
		if err := b.start(); err != nil {
			return err
		}
	}
	return nil
}

// stableLeader waits until the group has had one and the same holder for the time that
// its system wants, and returns that board. A group that does not get there is
// started anew, which is counted by nobody: it is no event that is measured.
func (r *rig) stableLeader(ctx context.Context) (*board, error) {
	for attempt := 1; ; attempt++ {
		leader, lack := r.awaitStable(ctx)
		if lack == nil || ctx.Err() != nil {
			return leader, errors.Join(lack, ctx.Err())
		}
		if attempt == stableAttempts {
			return nil, fmt.Errorf("the group does not become stable: %w; it says\n%s", lack, r.logs())
		}
		if err := r.restart(ctx); err != nil {
			return nil, err
		}
	}
}

// restart ends all daemons and starts them in turn.
func (r *rig) restart(ctx context.Context) error {
	if err := r.LAN.Filter(); err != nil {
		return err
	}
	for _, b := range r.boards {
		if err := errors.Join(b.Plug(), b.cleanUp()); err != nil {
			return err
		}
	}
	return r.startInTurn(ctx)
}

// awaitStable is one attempt of stableLeader.
func (r *rig) awaitStable(ctx context.Context) (leader *board, lack error) {
	wanted := r.sys.stableFor()
	within := time.NewTimer(wanted + stableTimeout)
	defer within.Stop()
	began := time.Now()
	for {
		// What was before the group was complete again does not count as stable.
		number := soleHolder(r.Holders.Since(later(began, time.Now().Add(-wanted))), wanted)
		switch {
		case number == 0:
			lack = fmt.Errorf("the address is on %v: %w", r.Holders.Current(), errNotStable)
		case r.variant.preempt && number != len(r.boards):
			lack = fmt.Errorf("board %d leads, not the highest: %w", number, errNotStable)
		default:
			leader, lack = r.boards[number-1], r.sys.ready(ctx, r)
		}
		for _, b := range r.boards {
			if !b.Running() {
				lack = fmt.Errorf("the daemon of %s has ended (%w)", b.Name, b.Wait())
			}
		}
		if lack == nil {
			return leader, nil
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-within.C:
			return nil, lack
		case <-time.After(pollInterval):
		}
	}
}

// soleHolder returns the board that alone had the address all the time, or 0. The
// timeline must be at least as long as wanted.
func soleHolder(tl observe.Timeline, wanted time.Duration) int {
	// Reading the clock twice makes a timeline longer than asked for, never shorter.
	if tl.To.Sub(tl.From) < wanted || len(tl.Spans) != 1 || tl.Vacant() > 0 {
		return 0
	}
	return tl.Spans[0].Board
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// logs returns the last of what each daemon said.
func (r *rig) logs() string {
	var t strings.Builder
	for _, b := range r.boards {
		fmt.Fprintf(&t, "%s:\n%s\n", b.Name, b.Log.Last(lastLines))
	}
	return t.String()
}
