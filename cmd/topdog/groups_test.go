package main

import (
	"context"
	"flag"
	"fmt"
	"net/netip"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"topdog/internal/lab/cluster"
	"topdog/internal/lab/judge"
	"topdog/internal/lab/netns"
	"topdog/internal/lab/observe"
)

// vip2 is the floating address of the second group of a home.
var vip2 = cluster.Second

// home is a cluster whose boards are in two groups: dns1 has vip, and dns2 has vip2. What it expects, it reads from the kernels
// and from a client of each address.
type home struct {
	*testCluster
	holders2 *observe.Holders // of vip2
	asker2   *observe.Asker   // at vip2
}

// newHome builds the LAN, and gives all boards the same file: dns1 prefers pi1, and dns2 pi2. No board runs yet.
func newHome(t testing.TB, boards int) *home {
	t.Helper()
	h := &home{testCluster: newCluster(t, boards, nil)}
	var err error
	h.holders2, err = h.LAN.WatchHolders(vip2)
	must(t, err)
	h.asker2, err = h.LAN.Ask(vip2, clientInterval)
	must(t, err)
	t.Cleanup(func() {
		if lost := h.holders2.Lost(); lost > 0 {
			t.Errorf("%v (%d of them)", cluster.ErrLost, lost)
		}
	})
	for _, b := range h.boards {
		b.writeGroups(inGroup("dns1", vip, "board1"), inGroup("dns2", vip2, "board2"))
	}
	return h
}

// inGroup is the table of a group.
func inGroup(name string, address netip.Addr, prefer string) string {
	return fmt.Sprintf("\n[[group]]\nname = %q\naddress = %q\nprefer = %q\n", name, address, prefer)
}

// writeGroups writes the configuration of a board: what belongs to all groups, and then these lines. An address returns to its
// board sooner than by default, since these tests wait for that again and again.
func (b *board) writeGroups(lines ...string) {
	b.c.t.Helper()
	text := fmt.Sprintf("name = %q\nsocket = %q\nkey_file = \"key\"\nled = \"none\"\nlog_level = \"debug\"\nheartbeat = %q\npreempt_delay = \"300ms\"\n",
		b.Host.Name, b.Dir+"/s", heartbeat)
	for _, line := range lines {
		text += line
	}
	b.writeConfig(text)
}

// nobody is the number of no board.
const nobody = 0

// are waits until one board alone has the address of dns1 and another, or the same, that of dns2, and until they answer the client.
func (h *home) are(first, second int) {
	h.t.Helper()
	groups := []struct {
		address netip.Addr
		holders *observe.Holders
		asker   *observe.Asker
		board   int
	}{{vip, h.Holders, h.asker, first}, {vip2, h.holders2, h.asker2, second}}
	h.until(fmt.Sprintf("the addresses come to %d and %d", first, second), func() (lack string) {
		for _, g := range groups {
			want := []int{g.board}
			if g.board == nobody {
				want = nil
			}
			if got := g.holders.Current(); !slices.Equal(got, want) {
				lack += fmt.Sprintf("%v is on %v; ", g.address, got)
			}
		}
		return lack
	})
	ctx, cancel := context.WithTimeout(context.Background(), cluster.Timeout)
	defer cancel()
	for _, g := range groups {
		if g.board == nobody {
			continue
		}
		if _, err := g.asker.WaitAnswer(ctx, func(n int) bool { return n == g.board }); err != nil {
			h.t.Fatalf("pi%d does not answer at %v: %v", g.board, g.address, err)
		}
	}
}

// twoAtMost checks that since a moment no two boards had one address for longer than they may.
func (h *home) twoAtMost(since time.Time, two time.Duration) {
	h.t.Helper()
	h.twoHoldersAtMost(since, two)
	seen, asked := h.holders2.Since(since), h.asker2.Report(since)
	h.t.Logf("dns2: two holders %.1f ms, no holder %.1f ms, %d moves; the client waited %.1f ms at most",
		ms(seen.Overlap()), ms(seen.Vacant()), seen.Moves(), ms(asked.Longest.Duration()))
	if seen.Overlap() > two {
		h.t.Errorf("two boards had %v for %.1f ms, more than %.1f", vip2, ms(seen.Overlap()), ms(two))
	}
}

// devicesGone is how long the kernel may take to remove the devices of a killed holder, one after the other, on a machine that makes
// and removes many others at the same time. They answer nobody meanwhile.
const devicesGone = 100 * time.Millisecond

// TestGroupsAtHome: each address is at home on its board. Whatever happens to a board, the other has both addresses meanwhile, and
// each returns when its board does.
func TestGroupsAtHome(t *testing.T) {
	judge.Run(t, func(t *judge.T) {
		h := newHome(t, 2)
		h.start(h.boards...)
		h.are(1, 2)
		probers := map[netip.Addr]*observe.Prober{vip: h.reached(vip), vip2: h.reached(vip2)}
		for i, fault := range []struct {
			name       string
			begin, end func(*board)
			two        time.Duration
		}{
			{"cable", func(b *board) { must(t, b.Pull()) }, func(b *board) { must(t, b.Plug()) }, 0},
			{"daemon killed", func(b *board) { b.signal(syscall.SIGKILL) }, (*board).restart, atOnce()},
			{"holder killed", func(b *board) {
				b.withoutHolder = true
				must(t, syscall.Kill(b.holder(), syscall.SIGKILL))
			}, (*board).restart, devicesGone},
			{"daemon frozen", func(b *board) { b.signal(syscall.SIGSTOP) }, func(b *board) { b.signal(syscall.SIGCONT) }, atOnce()},
			{"all frozen", func(b *board) { b.all(syscall.SIGSTOP) }, func(b *board) { b.all(syscall.SIGCONT) }, lifetime},
			{"stopped", func(b *board) { b.signal(syscall.SIGTERM) }, (*board).restart, 0},
		} {
			hit := h.boards[i%len(h.boards)]
			t.Run(fmt.Sprintf("%s of %s", fault.name, hit), func(*judge.T) {
				other := h.except(hit)[0].Number
				began := time.Now()
				fault.begin(hit)
				h.are(other, other)
				h.twoAtMost(began, fault.two)
				for address, prober := range probers {
					if two := prober.Since(began).Overlap(); two > 0 {
						t.Errorf("both boards answered at %v for %v", address, two)
					}
				}
				ended := time.Now()
				fault.end(hit)
				h.are(1, 2)
				h.twoAtMost(ended, 0)
			})
			if t.Failed() {
				return
			}
		}
	})
}

// TestGroupsOfWhichOneIsShared: the third board is in dns2 only, by a file without tables. It inherits dns2, and never dns1.
func TestGroupsOfWhichOneIsShared(t *testing.T) {
	judge.Run(t, func(t *judge.T) {
		h := newHome(t, 3)
		h.board(3).writeGroups("group = \"dns2\"\n", fmt.Sprintf("address = %q\npriority = 120\n", vip2))
		h.start(h.boards...)
		h.are(1, 2)

		must(t, h.board(2).Pull())
		h.are(1, 3) // its priority, 120, is above the 100 that pi1 has in dns2
		must(t, h.board(1).Pull())
		h.are(nobody, 3)
		must(t, h.board(1).Plug())
		h.are(1, 3)
		must(t, h.board(2).Plug())
		h.are(1, 2)
		h.twoAtMost(h.began, 0)
	})
}

// TestGroupsReload: by SIGHUP, each address moves to the board that is preferred now, and no group is disturbed by the change
// of another.
func TestGroupsReload(t *testing.T) {
	judge.Run(t, func(t *judge.T) {
		h := newHome(t, 2)
		h.start(h.boards...)
		h.are(1, 2)
		reload := func(first, second string) {
			t.Helper()
			for _, b := range h.boards {
				b.writeGroups(inGroup("dns1", vip, first), inGroup("dns2", vip2, second))
				b.signal(syscall.SIGHUP)
			}
		}
		before := time.Now()
		reload("board2", "board2")
		h.are(2, 2)
		if moves := h.holders2.Since(before).Moves(); moves > 0 {
			t.Errorf("%v has moved %d times, and nothing has changed in its group", vip2, moves)
		}
		reload("board2", "board1")
		h.are(2, 1)
		reload("board1", "board2")
		h.are(1, 2)
		h.twoAtMost(h.began, 0)
	})
}

var groupsBefore = flag.String("groups.before", "", "the program with which TestGroupsOneByOne begins: a build from before there were several groups")

// TestGroupsOneByOne: a group of one address becomes two groups, board by board, at an upgrade too. The boards have different files meanwhile.
func TestGroupsOneByOne(t *testing.T) {
	judge.Run(t, func(t *judge.T) {
		h := newHome(t, 2)
		for _, b := range h.boards {
			b.writeGroups("group = \"dns1\"\n", fmt.Sprintf("address = %q\n", vip))
			if *groupsBefore != "" {
				b.Program = cluster.Program{Path: *groupsBefore}
			}
		}
		h.start(h.boards...)
		h.untilHolders("somebody has dns1", func(on []int) bool { return len(on) == 1 })
		for _, b := range h.boards {
			b.signal(syscall.SIGTERM)
			b.ended()
			b.Program = h.program
			b.writeGroups(inGroup("dns1", vip, "board1"), inGroup("dns2", vip2, "board2"))
			b.start()
			h.untilTrue("dns2 has a holder", func() bool { return len(h.holders2.Current()) == 1 })
		}
		h.are(1, 2)
		h.twoAtMost(h.began, 0)
	})
}

// TestGroupsApart: two boards have the key and the port in common, and no group. Neither takes over from the other.
func TestGroupsApart(t *testing.T) {
	judge.Run(t, func(t *judge.T) {
		h := newHome(t, 2)
		h.board(1).writeGroups(inGroup("dns1", vip, "board1"))
		h.board(2).writeGroups(inGroup("dns2", vip2, "board2"))
		h.start(h.boards...)
		h.are(1, 2)
		must(t, h.board(1).Pull())
		h.are(nobody, 2)
		must(t, h.board(1).Plug())
		h.are(1, 2)
		h.twoAtMost(h.began, 0)
	})
}

// TestGroupsHolderFrozen: the holder of a board stands still, and with it both addresses. The other board takes them.
func TestGroupsHolderFrozen(t *testing.T) {
	judge.Run(t, func(t *judge.T) {
		h := newHome(t, 2)
		h.start(h.boards...)
		h.are(1, 2)
		hit := h.board(1)
		holder := hit.holder()
		hit.withoutHolder = true
		began := time.Now()
		must(t, netns.Freeze(holder))
		t.Cleanup(func() { _ = syscall.Kill(holder, syscall.SIGKILL) })
		h.are(2, 2)
		h.twoAtMost(began, lifetime)
	})
}

// TestGroupsHolderOfAService: the holder is a service of its own, and serves both groups. It is killed, and both services are restarted.
// It outlives the daemon.
func TestGroupsHolderOfAService(t *testing.T) {
	judge.Run(t, func(t *judge.T) {
		h := newHome(t, 1)
		b := h.board(1)
		holder, err := h.NewDaemon(1)
		must(t, err)
		path := filepath.Join(b.Dir, "h")
		launch := func(d *cluster.Daemon, args ...string) {
			t.Helper()
			must(t, d.Launch(h.program.Path, append(args, "--config", b.ConfigFile()), netns.Env(h.program.Env...)))
		}
		serve := func() {
			t.Helper()
			launch(holder, "holder", "--socket", path, "--user", "root")
			launch(b.Daemon, "run", "--holder", path)
			h.are(1, 1)
		}
		serve()
		must(t, holder.Signal(syscall.SIGKILL))
		h.untilTrue("the daemon ends without its holder", func() bool { return !b.Running() })
		h.are(nobody, nobody)
		serve()
		must(t, b.Signal(syscall.SIGTERM))
		must(t, b.Wait())
		h.are(nobody, nobody)
		if !holder.Running() {
			t.Errorf("the holder has ended with the daemon:\n%s", holder.Log)
		}
		launch(b.Daemon, "run", "--holder", path)
		h.are(1, 1)
		must(t, b.Signal(syscall.SIGTERM))
		must(t, b.Wait())
		must(t, holder.Signal(syscall.SIGTERM))
		must(t, holder.Wait())
		h.twoAtMost(h.began, 0)
	})
}
