package main

import (
	"flag"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"topdog/internal/console"
	"topdog/internal/lab/cluster"
	"topdog/internal/lab/judge"
	"topdog/internal/lab/netns"
)

// newClusterWithSecondPath builds a LAN whose boards have a second path too: in the same LAN, or in another one.
func newClusterWithSecondPath(t testing.TB, boards int, inOneLAN bool) *testCluster {
	t.Helper()
	c := newCluster(t, boards, nil)
	must(t, c.LAN.AddSecondPath(inOneLAN))
	for _, b := range c.boards {
		b.set(cluster.SecondPath)
	}
	return c
}

// agreeOnBothPaths waits until the boards agree on a leader, and hear each other on both paths.
func (c *testCluster) agreeOnBothPaths() (leader *board) {
	c.t.Helper()
	leader = c.agree(c.boards...)
	for _, b := range c.boards {
		b.untilStatusIs("all boards are heard on both paths", func(s console.Status) bool {
			return cluster.HearsBySecondPath(s, len(c.boards)) &&
				!slices.ContainsFunc(s.Boards, func(b console.Board) bool { return !b.Self && b.HeardMs == nil })
		})
	}
	return leader
}

// TestSecondPath: whatever happens to one path, at most one board answers, and the address moves only if its board cannot be reached
// by the first.
func TestSecondPath(t *testing.T) {
	judge.Run(t, func(t *judge.T) {
		for _, lan := range []struct {
			name string
			one  bool
		}{{"two LANs", false}, {"one LAN", true}} {
			t.Run(lan.name, func(t *judge.T) {
				c := newClusterWithSecondPath(t, 3, lan.one)
				c.start(c.boards...)
				c.agreeOnBothPaths()
				for _, fault := range []struct {
					name        string
					begin, mend func(leader *board) error
					moves       bool
				}{
					{"cable", func(b *board) error { return b.Pull() }, func(b *board) error { return b.Plug() }, true},
					{"silent port", func(b *board) error { return c.LAN.Filter(netns.Cut(b.Port())...) }, func(*board) error { return c.LAN.Filter() }, true},
					{"port that sends nothing", func(b *board) error { return c.LAN.Filter(netns.Filter{From: netns.Ports(b.Host)}) }, func(*board) error { return c.LAN.Filter() }, true},
					{"port that receives nothing", func(b *board) error { return c.LAN.Filter(netns.Filter{To: netns.Ports(b.Host)}) }, func(*board) error { return c.LAN.Filter() }, true},
					{"split", func(b *board) error {
						other := c.except(b)[0]
						return c.LAN.Filter(netns.Apart(netns.Ports(other.Host), netns.Ports(b.Host, c.except(b, other)[0].Host))...)
					}, func(*board) error { return c.LAN.Filter() }, false},
					{"second path of the leader", func(b *board) error { return b.PullSecond() }, func(b *board) error { return b.PlugSecond() }, false},
				} {
					t.Run(fault.name, func(t *judge.T) {
						leader := c.agree(c.boards...)
						began := time.Now()
						must(t, fault.begin(leader))
						if fault.moves {
							c.untilTakenFrom(leader)
							c.twoHoldersAtMost(began, 0)
						} else {
							c.watchFor(1500 * time.Millisecond)
							c.undisturbed(began, leader)
						}
						mended := time.Now()
						must(t, fault.mend(leader))
						c.agreeOnBothPaths()
						c.twoHoldersAtMost(mended, 0)
					})
					if t.Failed() {
						return
					}
				}
			})
		}
	})
}

// TestSecondPathFlaps: a second path that comes and goes on all boards moves nothing, and works when it is left alone.
func TestSecondPathFlaps(t *testing.T) {
	judge.Run(t, func(t *judge.T) {
		c := newClusterWithSecondPath(t, 3, false)
		c.start(c.boards...)
		leader := c.agreeOnBothPaths()
		began := time.Now()
		for range 10 {
			for _, change := range []func(*board) error{func(b *board) error { return b.PullSecond() }, func(b *board) error { return b.PlugSecond() }} {
				for _, b := range c.boards {
					must(t, change(b))
				}
				c.watchFor(150 * time.Millisecond)
			}
		}
		c.agreeOnBothPaths()
		c.undisturbed(began, leader)

		ended := time.Now()
		must(t, leader.Pull())
		c.untilTakenFrom(leader)
		c.handedOver(c.agree(c.except(leader)...))
		c.twoHoldersAtMost(ended, 0)
	})
}

// TestSecondPathHolderOfAService: the holder is a service of its own, and opens the sockets of both paths. The daemon is restarted, and
// the holder too, with which the daemon ends.
func TestSecondPathHolderOfAService(t *testing.T) {
	judge.Run(t, func(t *judge.T) {
		c := newClusterWithSecondPath(t, 2, false)
		c.start(c.board(2))
		b := c.board(1)
		holder, err := c.NewDaemon(1)
		must(t, err)
		path := filepath.Join(b.Dir, "h")
		launch := func(d *cluster.Daemon, args ...string) {
			t.Helper()
			must(t, d.Launch(c.program.Path, append(args, "--config", b.ConfigFile()), netns.Env(c.program.Env...)))
		}
		serve := func() { launch(holder, "holder", "--socket", path, "--user", "root") }
		run := func() {
			t.Helper()
			launch(b.Daemon, "run", "--holder", path)
			c.agreeOnBothPaths()
		}
		serve()
		run()
		must(t, b.Signal(syscall.SIGTERM))
		must(t, b.Wait())
		if !holder.Running() {
			t.Errorf("the holder has ended with the daemon:\n%s", holder.Log)
		}
		run()
		must(t, holder.Signal(syscall.SIGKILL))
		c.untilTrue("the daemon ends without its holder", func() bool { return !b.Running() })
		serve()
		run()
		must(t, b.Signal(syscall.SIGTERM))
		must(t, b.Wait())
		must(t, holder.Signal(syscall.SIGTERM))
		must(t, holder.Wait())
		c.twoHoldersAtMost(c.began, devicesGone)
	})
}

var secondPathBefore = flag.String("second-path.before", "", "the program with which TestSecondPathOneByOne begins: a build from before there was a second path")

// TestSecondPathOneByOne: the boards get a second path one by one, at an upgrade too. Until two have one, nobody is heard by it.
func TestSecondPathOneByOne(t *testing.T) {
	judge.Run(t, func(t *judge.T) {
		c := newClusterWithSecondPath(t, 3, false)
		for _, b := range c.boards {
			b.set(settings{"interface": quote("eth0")})
			if *secondPathBefore != "" {
				b.Program = cluster.Program{Path: *secondPathBefore}
			}
		}
		c.start(c.boards...)
		c.agree(c.boards...)
		for _, b := range c.boards {
			b.signal(syscall.SIGTERM)
			b.ended()
			b.Program = c.program
			b.set(cluster.SecondPath)
			b.start()
			c.agree(c.boards...)
		}
		leader := c.agreeOnBothPaths()
		must(t, leader.Pull())
		c.untilTakenFrom(leader)
		c.handedOver(c.agree(c.except(leader)...))
		c.twoHoldersAtMost(c.began, 0)
	})
}
