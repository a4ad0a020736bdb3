package bench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

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
	// maxLog bounds what is kept of a daemon's output.
	maxLog = 16 << 10
)

// rig is a LAN whose boards run one system.
type rig struct {
	sys     system
	variant variant
	lan     *netns.LAN
	holders *observe.Holders
	boards  []*board
}

// board is one of its machines.
type board struct {
	*netns.Host
	number  int // from 1; the last has the highest rank
	of      int
	dir     string
	process *netns.Process // nil while it was never started
	argv    []string
	log     *tail
}

// newRig builds the LAN and writes the configurations. Nothing runs yet.
func newRig(sys system, boards int, v variant, dir string) (r *rig, err error) {
	r = &rig{sys: sys, variant: v}
	if r.lan, err = netns.New(netns.Options{Boards: boards}); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, r.close())
		}
	}()
	if r.holders, err = r.lan.WatchHolders(vip); err != nil {
		return nil, err
	}
	// Short, since the path of a socket has to fit in 107 bytes.
	if dir, err = os.MkdirTemp(dir, "lan"); err != nil {
		return nil, err
	}
	for n := 1; n <= boards; n++ {
		b := &board{Host: r.lan.Board(n), number: n, of: boards, dir: filepath.Join(dir, fmt.Sprint(n)), log: &tail{}}
		if err := os.Mkdir(b.dir, 0o755); err != nil {
			return nil, err
		}
		if b.argv, err = sys.configure(b, v); err != nil {
			return nil, err
		}
		r.boards = append(r.boards, b)
	}
	return r, nil
}

// close ends the daemons, kindly first, and takes the LAN apart.
func (r *rig) close() error {
	for _, b := range r.boards {
		if b.running() {
			_ = b.process.Signal(syscall.SIGCONT)
			_ = b.process.Signal(syscall.SIGTERM)
		}
	}
	for _, b := range r.boards {
		b.ended(exitTimeout / 2)
	}
	return r.lan.Close()
}

// start runs the daemon of a board.
func (b *board) start() (err error) {
	b.process, err = b.Start(context.Background(), b.argv[0], b.argv[1:], netns.Stdout(b.log), netns.Stderr(b.log))
	return err
}

func (b *board) running() bool {
	if b.process == nil {
		return false
	}
	select {
	case <-b.process.Exited():
		return false
	default:
		return true
	}
}

// ended waits for the daemon to end.
func (b *board) ended(within time.Duration) bool {
	if b.process == nil {
		return true
	}
	select {
	case <-b.process.Exited():
		return true
	case <-time.After(within):
		return false
	}
}

// command runs a program on the board to its end.
func (b *board) command(ctx context.Context, path string, args ...string) error {
	var out tail
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
	if b.process != nil {
		<-b.process.Exited()
	}
	err := b.DeleteAddress(netip.PrefixFrom(vip, 32))
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

// startInTurn starts the board of the highest rank, and when it has the address all
// the others, as an administrator would set up a group.
func (r *rig) startInTurn(ctx context.Context) error {
	first := r.boards[len(r.boards)-1]
	if err := first.start(); err != nil {
		return err
	}
	wait, cancel := context.WithTimeout(ctx, stableTimeout)
	defer cancel()
	if err := r.holders.WaitFor(wait, func(h []int) bool { return len(h) == 1 }); err != nil {
		return fmt.Errorf("%s alone does not take the address: %w\n%s", first.Name, err, first.log)
	}
	for _, b := range r.boards[:len(r.boards)-1] {
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
	for _, b := range r.boards {
		if err := errors.Join(b.Plug(), b.Unmute(), b.cleanUp()); err != nil {
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
		number := soleHolder(r.holders.Since(later(began, time.Now().Add(-wanted))), wanted)
		switch {
		case number == 0:
			lack = fmt.Errorf("the address is on %v: %w", r.holders.Current(), errNotStable)
		case r.variant.preempt && number != len(r.boards):
			lack = fmt.Errorf("board %d leads, not the highest: %w", number, errNotStable)
		default:
			leader, lack = r.boards[number-1], r.sys.ready(ctx, r)
		}
		for _, b := range r.boards {
			if !b.running() {
				lack = fmt.Errorf("the daemon of %s has ended (%w)", b.Name, b.process.Wait())
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
		fmt.Fprintf(&t, "%s:\n%s\n", b.Name, b.log)
	}
	return t.String()
}

// tail keeps the end of what is written to it.
type tail struct {
	mu   sync.Mutex
	text []byte
}

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, p...)
	if over := len(t.text) - maxLog; over > 0 {
		if end := bytes.IndexByte(t.text[over:], '\n'); end >= 0 {
			over += end + 1
		}
		t.text = slices.Delete(t.text, 0, over)
	}
	return len(p), nil
}

// String returns the last lines.
func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	const lines = 6
	list := strings.Split(strings.TrimSpace(string(t.text)), "\n")
	return strings.Join(list[max(0, len(list)-lines):], "\n")
}
