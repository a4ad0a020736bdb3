package bench

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"topdog/internal/console"
	"topdog/internal/lab/cluster"
	"topdog/internal/lab/observe"
	"topdog/wire"
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

// errNotStable wraps what a group still lacks.
var errNotStable = errors.New("not stable")

// Group is a LAN whose boards run one system. The last board has the highest rank.
type Group struct {
	*cluster.Cluster
	sys      *system
	variant  variant
	boards   []*board
	browsers *browsers // nil unless the variant wants them
}

// board is one of its machines, and the system's daemon on it.
type board struct {
	*cluster.Daemon
	setup   setup
	service *cluster.Daemon // nil if the system does not look at one
	frozen  []int           // processes that were told to stand still
}

// NewGroup builds the LAN of a group of a peer of topdog, by its key as --systems has it, with machines on which nothing runs
// beside its boards, and starts them. It is for those who do to it what this bench does not.
func NewGroup(ctx context.Context, key string, boards, strangers int) (*Group, error) {
	chosen := named(allSystems(), key)
	if len(chosen) != 1 {
		return nil, fmt.Errorf("there is no system %q", key)
	}
	sys := chosen[0]
	if err := sys.prepare(); err != nil {
		return nil, err
	}
	return startedGroup(ctx, sys, variant{boards: boards, strangers: strangers})
}

// startedGroup builds a group and starts its boards. If they don't, there is a group all the same, to end.
func startedGroup(ctx context.Context, sys *system, v variant) (*Group, error) {
	g, err := newGroup(sys, v)
	if err == nil {
		err = g.startInTurn(ctx)
	}
	return g, err
}

// newGroup builds the LAN and writes the configurations. Nothing runs yet.
func newGroup(sys *system, v variant) (g *Group, err error) {
	g = &Group{sys: sys, variant: v}
	build := cluster.New
	if sys.IPv6 {
		build = cluster.NewWithIPv6
	}
	if g.Cluster, err = build(v.boards + v.strangers); err != nil {
		return nil, err
	}
	if sys.SecondPath {
		err = g.LAN.AddSecondPath(sys.InOneLAN)
	}
	for n := 1; n <= v.boards && err == nil; n++ {
		err = g.addBoard(n)
	}
	if err != nil {
		return nil, errors.Join(err, g.End())
	}
	return g, nil
}

func (g *Group) addBoard(number int) (err error) {
	b := &board{}
	if b.Daemon, err = g.NewDaemon(number); err != nil {
		return err
	}
	b.setup = newSetup(g.sys, g.variant, number, b.Dir)
	g.boards = append(g.boards, b)
	if g.sys.served() {
		err = g.addService(b)
	}
	if g.variant.Hooked {
		err = errors.Join(err, b.writeHook())
	}
	return errors.Join(err, b.setup.write())
}

// End ends the daemons in good order, and takes the LAN apart. Lost notifications matter to those runs that count
// holders, which look for themselves.
func (g *Group) End() error {
	if g.browsers != nil {
		g.browsers.close()
	}
	g.Stop(exitTimeout / 2)
	if err := g.Close(); !errors.Is(err, cluster.ErrLost) {
		return err
	}
	return nil
}

// start runs the daemon of a board.
func (b *board) start() error {
	command, err := b.setup.fill("command")
	if err != nil {
		return err
	}
	argv := strings.Fields(command)
	return b.Launch(argv[0], argv[1:])
}

// topdog gives topdog a command on the board.
func (b *board) topdog(verb string) error {
	_, err := b.Command(b.setup.Path, []string{verb, "--config", b.file("topdog.toml")})
	return err
}

// file is one of the board's.
func (b *board) file(name string) string { return filepath.Join(b.Dir, name) }

// resign has the board hand over: by topdog's command, by the file of keepalived's manual, and by the signal of UCarp's,
// after which a board takes part again after 3 s.
func (b *board) resign() error {
	switch b.setup.program {
	case topdog:
		return b.topdog("resign")
	case keepalived:
		return b.drain("1")
	}
	return b.Signal(syscall.SIGUSR2)
}

// drain tells keepalived whether the board is to lead.
func (b *board) drain(value string) error {
	return os.WriteFile(b.file("drain"), []byte(value+"\n"), 0o600)
}

// leave has a board go before its service is stopped, and waits until the daemon has ended: topdog-leave.service does it by
// `topdog leave`. The others have nothing but the end of their service.
func (b *board) leave() (err error) {
	if b.setup.program == topdog {
		err = b.topdog("leave")
	} else {
		err = b.Signal(unix.SIGTERM)
	}
	if err == nil && !b.Ended(exitTimeout) {
		err = fmt.Errorf("%s: the daemon does not end", b.Name)
	}
	return err
}

// signal sends a signal to the daemon, or to all processes of the board, one right after the other.
func (b *board) signal(everything bool, sig syscall.Signal) error {
	pids, err := b.Processes()
	if err != nil {
		return err
	}
	if !everything {
		pids = b.setup.order(b.PID(), b.withoutService(pids))
	}
	if sig == unix.SIGSTOP {
		b.frozen = pids
	}
	signalAll(pids, sig)
	return nil
}

// thaw lets go on what stands still.
func (b *board) thaw() {
	signalAll(b.frozen, unix.SIGCONT)
	b.frozen = nil
}

// signalAll sends a signal. Processes that have ended meanwhile don't matter.
func signalAll(pids []int, sig syscall.Signal) {
	for _, pid := range pids {
		_ = unix.Kill(pid, sig)
	}
}

// cleanUp ends all of a board's processes and takes away an address that was left.
func (b *board) cleanUp() error {
	err := cluster.Until(b.Name+" has no processes", func() string {
		pids, err := b.Processes()
		if len(pids) == 0 && err == nil {
			return ""
		}
		signalAll(pids, unix.SIGKILL)
		return fmt.Sprint(pids, err)
	})
	if err == nil && !b.Ended(exitTimeout) {
		err = fmt.Errorf("%s: the daemon has not ended, though the board has no processes", b.Name)
	}
	// keepalived does not start while its pid file names a process that nobody has reaped, as
	// may be in a container.
	left, globErr := filepath.Glob(b.file("*pid"))
	for _, file := range left {
		err = errors.Join(err, os.Remove(file))
	}
	for _, a := range []netip.Addr{vip, vip6, cluster.Second} {
		if deleteErr := b.DeleteAddress(netip.PrefixFrom(a, a.BitLen())); !errors.Is(deleteErr, unix.EADDRNOTAVAIL) {
			err = errors.Join(err, deleteErr)
		}
	}
	return errors.Join(err, globErr)
}

// repair brings a board back whose daemon has ended, or is to end.
func (b *board) repair() error {
	if err := b.cleanUp(); err != nil {
		return err
	}
	return b.start()
}

// startInTurn starts the board of the highest rank, with as many others as it needs to lead, and
// when it has the address all the rest, as an administrator would set up a group.
func (g *Group) startInTurn(ctx context.Context) error {
	if err := errors.Join(g.startServices(ctx), g.startBeside()); err != nil {
		return err
	}
	rest := len(g.boards) - g.sys.quorum(len(g.boards))
	if err := each(g.boards[rest:], (*board).start); err != nil {
		return err
	}
	wait, cancel := context.WithTimeout(ctx, stableTimeout)
	defer cancel()
	if err := g.Holders.WaitFor(wait, func(h []int) bool { return len(h) == 1 }); err != nil {
		return fmt.Errorf("nobody takes the address in a new group: %w\n%s", err, g.logs())
	}
	return each(g.boards[:rest], (*board).start)
}

// startBeside starts the programs of topdog that run beside its daemon if the variant wants them: for the page, and for
// scripts. keepalived runs scripts itself.
func (g *Group) startBeside() error {
	if g.sys.program != topdog || !g.variant.Hooked && !g.variant.pages {
		return nil
	}
	if g.variant.pages && g.browsers == nil {
		g.browsers = openBrowsers(g.LAN.Client())
	}
	return each(g.boards, func(b *board) error {
		args := []string{"page", "--config", b.file("topdog.toml")}
		if g.variant.Hooked {
			args = []string{"hooks", "--dir", b.file("hooks.d"), "--config", b.file("topdog.toml")}
		}
		d, err := g.NewDaemon(b.Number)
		if err != nil {
			return err
		}
		return d.Launch(g.sys.Path, args)
	})
}

func each(boards []*board, do func(*board) error) error {
	for _, b := range boards {
		if err := do(b); err != nil {
			return err
		}
	}
	return nil
}

// stableLeader waits until the group has had one and the same holder for the time that
// its system wants, and returns that board. A group that does not get there is
// started anew, which is counted by nobody: it is no event that is measured.
func (g *Group) stableLeader(ctx context.Context) (*board, error) {
	for attempt := 1; ; attempt++ {
		leader, lack := g.awaitStable(ctx)
		if lack == nil || ctx.Err() != nil {
			return leader, errors.Join(lack, ctx.Err())
		}
		if attempt == stableAttempts {
			return nil, fmt.Errorf("the group does not become stable: %w; it says\n%s", lack, g.logs())
		}
		if err := g.restart(ctx); err != nil {
			return nil, err
		}
	}
}

// restart ends all daemons and starts them in turn.
func (g *Group) restart(ctx context.Context) error {
	if err := g.LAN.Filter(); err != nil {
		return err
	}
	err := each(g.boards, func(b *board) error { return errors.Join(b.Plug(), b.cleanUp()) })
	if err != nil {
		return err
	}
	return g.startInTurn(ctx)
}

// awaitStable is one attempt of stableLeader.
func (g *Group) awaitStable(ctx context.Context) (leader *board, lack error) {
	began := time.Now()
	deadline := began.Add(g.sys.stableFor() + stableTimeout)
	for {
		// What was before the group was complete again does not count as stable.
		leader = g.steady(began)
		switch {
		case leader == nil:
			lack = fmt.Errorf("the address is on %v: %w", g.Holders.Current(), errNotStable)
		case g.variant.Preempt && leader.Number != len(g.boards):
			lack = fmt.Errorf("board %d leads, not the highest: %w", leader.Number, errNotStable)
		default:
			lack = g.ready(ctx)
		}
		for _, b := range g.boards {
			if !b.Running() {
				lack = fmt.Errorf("the daemon of %s has ended (%w)", b.Name, b.Wait())
			}
		}
		if lack == nil {
			return leader, nil
		}
		if err := wait(ctx, pollInterval); err != nil || time.Now().After(deadline) {
			return nil, errors.Join(lack, err)
		}
	}
}

// ready returns nil when all boards of topdog that run follow one leader, and their services are well. The others don't
// tell.
func (g *Group) ready(ctx context.Context) error {
	if g.sys.program != topdog {
		return nil
	}
	var leaders []string
	for _, b := range g.boards {
		if !b.Running() {
			continue
		}
		client := console.Dial(b.file("s"))
		if g.sys.Two {
			client = client.Of("dns1")
			switch second, err := client.Of("dns2").Status(ctx); {
			case err != nil:
				return err
			case second.LeaderName != "pi1":
				return fmt.Errorf("board %d has not the other leader in its second group: %w", b.Number, errNotStable)
			}
		}
		status, err := client.Status(ctx)
		switch {
		case err != nil:
			return err
		case !status.Held():
			return fmt.Errorf("board %d sees no holder: %w", b.Number, errNotStable)
		case g.sys.SecondPath && !cluster.HearsBySecondPath(status, len(g.boards)):
			return fmt.Errorf("board %d does not hear all boards by the second path: %w", b.Number, errNotStable)
		case g.sys.Checked && status.Grade != wire.GradePassing.String():
			return fmt.Errorf("board %d is %s: %w", b.Number, status.Grade, errNotStable)
		}
		leaders = append(leaders, status.LeaderName)
	}
	if distinct := slices.Compact(slices.Sorted(slices.Values(leaders))); len(distinct) != 1 {
		return fmt.Errorf("they follow %v: %w", distinct, errNotStable)
	}
	return nil
}

// steady is the board that alone has had the address for the time that the system wants, all of it since a moment, or nil.
func (g *Group) steady(since time.Time) *board {
	wanted := g.sys.stableFor()
	if n := soleHolder(g.Holders.Since(later(since, time.Now().Add(-wanted))), wanted); n > 0 {
		return g.boards[n-1]
	}
	return nil
}

// holder is the board that has the address now, of several the one of the highest rank, or nil.
func (g *Group) holder() *board {
	if h := g.Holders.Current(); len(h) > 0 {
		return g.boards[h[len(h)-1]-1]
	}
	return nil
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

// wait goes on for a while during which nothing is to be done.
func wait(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// logs returns the last of what each daemon said.
func (g *Group) logs() string {
	var t strings.Builder
	for _, b := range g.boards {
		fmt.Fprintf(&t, "%s:\n%s\n", b.Name, b.Log.Last(lastLines))
	}
	return t.String()
}

// Boards are the daemons, by number.
func (g *Group) Boards() (boards []*cluster.Daemon) {
	for _, b := range g.boards {
		boards = append(boards, b.Daemon)
	}
	return boards
}

// Up starts all daemons at once.
func (g *Group) Up() error { return each(g.boards, (*board).start) }
