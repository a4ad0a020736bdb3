package bench

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"topdog/internal/lab/cluster"
	"topdog/internal/lab/netns"
)

// Group is a group of boards that run one system, for those who do to it what this bench does not.
type Group struct {
	*cluster.Cluster
	rig *rig
}

// GroupOptions say what a group is of.
type GroupOptions struct {
	System    string // its key, as --systems has it
	Program   string // the path of topdog, if the system is topdog
	Boards    int
	Strangers int // machines on the LAN on which nothing runs
}

// NewGroup builds the LAN of a group, and starts its boards.
func NewGroup(ctx context.Context, o GroupOptions) (*Group, error) {
	chosen := named(allSystems(), o.System)
	if len(chosen) != 1 {
		return nil, fmt.Errorf("there is no system %q", o.System)
	}
	sys := chosen[0]
	if t, ok := sys.(*topdog); ok {
		t.path = o.Program
	}
	if err := sys.missing(); err != nil {
		return nil, err
	}
	r, err := newRig(sys, o.Boards, variant{strangers: o.Strangers})
	if err != nil {
		return nil, err
	}
	g := &Group{Cluster: r.Cluster, rig: r}
	for _, b := range r.boards {
		// Users of the board may ask the daemon.
		if err := os.Chmod(b.Dir, 0o755); err != nil {
			g.End()
			return nil, err
		}
	}
	if err := r.startInTurn(ctx); err != nil {
		g.End()
		return nil, err
	}
	return g, nil
}

// End ends the daemons in good order, and takes the LAN apart.
func (g *Group) End() error { return g.rig.close() }

// Program and version of what the boards run.
func (g *Group) Program(ctx context.Context) (name, version string, err error) {
	info := g.rig.sys.info()
	if t, ok := g.rig.sys.(*topdog); ok {
		info.Version, err = versionOf(ctx, t.path)
	}
	return info.Program, info.Version, err
}

// Interval is that of the leader's messages.
func (g *Group) Interval() time.Duration { return g.rig.sys.info().Interval }

// Boards are the daemons, by number.
func (g *Group) Boards() (boards []*cluster.Daemon) {
	for _, b := range g.rig.boards {
		boards = append(boards, b.Daemon)
	}
	return boards
}

// Stranger returns one of the machines on which nothing runs, counted from 1.
func (g *Group) Stranger(n int) *netns.Host { return g.LAN.Board(len(g.rig.boards) + n) }

// Leader returns the board that alone has the address, if the group is as it is meant to be. Otherwise the error says
// what is missing.
func (g *Group) Leader(ctx context.Context) (*cluster.Daemon, error) {
	holders := g.Holders.Current()
	if len(holders) != 1 {
		return nil, fmt.Errorf("the address is on %v: %w", holders, errNotStable)
	}
	return g.rig.boards[holders[0]-1].Daemon, g.rig.sys.ready(ctx, g.rig)
}

// Kill is a crash of a board's daemon.
func (g *Group) Kill(d *cluster.Daemon) error {
	b := g.rig.boards[d.Number-1]
	all, err := b.Processes()
	if err == nil {
		signalAll(g.rig.sys.daemon(b, all), unix.SIGKILL)
	}
	return err
}

// Start starts the daemon of a board, which has ended.
func (g *Group) Start(d *cluster.Daemon) error { return g.rig.boards[d.Number-1].start() }

// Repair brings a board back whose daemon was killed.
func (g *Group) Repair(d *cluster.Daemon) error { return g.rig.boards[d.Number-1].repair() }

// Down ends all processes of all boards.
func (g *Group) Down() error {
	for _, b := range g.rig.boards {
		if err := b.cleanUp(); err != nil {
			return err
		}
	}
	return nil
}

// Up starts all daemons at once.
func (g *Group) Up() error {
	for _, b := range g.rig.boards {
		if err := b.start(); err != nil {
			return err
		}
	}
	return nil
}

// Busy returns for how long the processes of each board have been on a processor, by number, without some that are
// no part of the system.
func (g *Group) Busy(strangers ...int) (busy []time.Duration, err error) {
	for _, b := range g.rig.boards {
		pids, err := b.Processes()
		if err != nil {
			return nil, err
		}
		pids = slices.DeleteFunc(pids, func(pid int) bool { return slices.Contains(strangers, pid) })
		u, err := usageOf(pids)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", b.Name, err)
		}
		busy = append(busy, u.busy)
	}
	return busy, nil
}

// Topdog returns the command line of topdog for a verb on one of the boards, and the path of its socket.
func (g *Group) Topdog(d *cluster.Daemon, verb string) (argv []string, socket string, err error) {
	sys, ok := g.rig.sys.(*topdog)
	if !ok {
		return nil, "", fmt.Errorf("%s is no topdog", g.rig.sys)
	}
	b := g.rig.boards[d.Number-1]
	return []string{sys.path, verb, "--config", sys.config(b)}, sys.socket(b), nil
}

// Configure adds lines to the configurations of all boards of topdog, for the next time that they start.
func (g *Group) Configure(lines ...string) error {
	sys, ok := g.rig.sys.(*topdog)
	if !ok {
		return fmt.Errorf("%s has no such configuration", g.rig.sys)
	}
	for _, b := range g.rig.boards {
		text := strings.Join(lines, "\n") + "\n" + sys.text(b, g.rig.variant)
		text = fmt.Sprintf("socket = %q\n", sys.socket(b)) + text
		if err := os.WriteFile(sys.config(b), []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}
