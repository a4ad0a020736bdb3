package main

import (
	"errors"
	"net/netip"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"topdog/internal/config"
	"topdog/internal/lab/assert"
	"topdog/internal/lab/cluster"
	"topdog/internal/lab/netns"
	"topdog/internal/lab/observe"
)

var (
	// vip is the floating address of all tests, as they configure it, and vip32
	// as the leader has it.
	vip   = cluster.Address
	vip32 = netip.PrefixFrom(vip, 32)
	// vip24 is as people add it.
	vip24 = netip.PrefixFrom(vip, 24)
	// vip6 is the floating address of clusters with IPv6.
	vip6 = cluster.Address6
)

// lifetime bounds how long the kernel keeps the address of a board whose daemon is frozen: 1 s of
// lifetime, and up to 1.25 s until the kernel looks (docs/address.md); the rest is for a busy
// machine.
const lifetime = 2500 * time.Millisecond

// atOnce bounds what the kernel does when a process has been killed: under 4 ms
// on a quiet machine. Other tests and the race detector may keep both
// processors busy here, so this is no figure; the figures are benchmarks.
func atOnce() time.Duration {
	if underRace {
		return 50 * time.Millisecond
	}
	return 10 * time.Millisecond
}

// clientInterval is how often the client asks for the address. Each change of it is in Holders, so that is often enough to see who
// answers.
const clientInterval = 5 * time.Millisecond

// testCluster is a cluster of topdogs that ends with its test, and a client.
type testCluster struct {
	*cluster.Cluster
	t       testing.TB
	program cluster.Program
	asker   *observe.Asker
	asker6  *observe.Asker // at the IPv6 address; nil without one
	key     config.Key
	boards  []*board
	began   time.Time
}

// board is one of its boards, with its daemon.
type board struct {
	*cluster.Topdog
	c             *testCluster
	started       bool
	mayEnd        bool // the test has told the daemon to end
	withoutHolder bool // the test has killed its holder, or has it stand still
}

// settings are keys of a configuration with their values as TOML has them, and quote writes a
// text so.
type settings = cluster.Settings

var quote = cluster.Quote

// newCluster builds the LAN. The boards are named pi1, pi2 …, and none runs yet.
func newCluster(t testing.TB, boards int, common settings) *testCluster {
	t.Helper()
	return newClusterOf(t, itself(), boards, common)
}

func newClusterOf(t testing.TB, p cluster.Program, boards int, common settings) *testCluster {
	t.Helper()
	return newClusterBy(t, cluster.New, p, boards, common)
}

// newClusterWithIPv6 has an IPv6 address and its client too.
func newClusterWithIPv6(t testing.TB, boards int, common settings) *testCluster {
	t.Helper()
	c := newClusterBy(t, cluster.NewWithIPv6, itself(), boards, common)
	var err error
	c.asker6, err = c.LAN.Ask(vip6, clientInterval)
	must(t, err)
	return c
}

func newClusterBy(t testing.TB, build func(boards int) (*cluster.Cluster, error), p cluster.Program, boards int, common settings) *testCluster {
	t.Helper()
	netns.Reserve(t)
	built, err := build(boards)
	must(t, err)
	c := &testCluster{Cluster: built, t: t, program: p, key: config.NewKey(), began: time.Now()}
	t.Cleanup(c.close)
	c.asker, err = c.LAN.Ask(vip, clientInterval)
	must(t, err)
	for n := 1; n <= boards; n++ {
		c.add(n, settings{"heartbeat": quote(heartbeat.String()), "log_level": quote("debug")}).set(common)
	}
	return c
}

// add adds a daemon on a board.
func (c *testCluster) add(n int, changes settings) *board {
	c.t.Helper()
	t, err := c.NewTopdog(c.program, n, changes)
	must(c.t, err)
	must(c.t, t.SetKey(c.key))
	b := &board{Topdog: t, c: c}
	c.boards = append(c.boards, b)
	return b
}

func must(t testing.TB, err error) {
	t.Helper()
	assert.NoError(t, err)
}

// board returns board n, counted from 1.
func (c *testCluster) board(n int) *board { return c.boards[n-1] }

// named returns the board that others call so, or nil.
func (c *testCluster) named(name string) *board {
	for _, b := range c.boards {
		if b.String() == name {
			return b
		}
	}
	return nil
}

// except returns all boards but these.
func (c *testCluster) except(these ...*board) []*board {
	return slices.DeleteFunc(slices.Clone(c.boards), func(b *board) bool { return slices.Contains(these, b) })
}

// running returns the boards whose daemons run.
func (c *testCluster) running() []*board {
	return slices.DeleteFunc(slices.Clone(c.boards), func(b *board) bool { return !b.Running() })
}

// close ends the boards as an administrator would, and tells what they said if
// the test failed.
func (c *testCluster) close() {
	if !c.t.Failed() {
		c.Stop(cluster.Timeout)
		for _, b := range c.boards {
			b.ended()
		}
	}
	if err := c.Close(); err != nil {
		c.t.Error(err)
	}
	for _, b := range c.boards {
		if b.Log.Logged("DATA RACE") || b.Log.Logged("panic:") {
			c.t.Errorf("%s: data race or panic", b)
		}
	}
	if c.t.Failed() {
		for _, b := range c.boards {
			c.t.Logf("%s:\n%s", b, b.Log)
		}
	}
}

// start runs the daemon on these boards.
func (c *testCluster) start(boards ...*board) {
	c.t.Helper()
	for _, b := range boards {
		b.start()
	}
}

func (b *board) start() {
	b.c.t.Helper()
	must(b.c.t, b.Run())
	b.started, b.mayEnd = true, false
}

// ended waits until the daemon has ended, and checks that it did so in good order
// unless it was killed or never ran, or the test took its holder away.
func (b *board) ended() {
	b.c.t.Helper()
	b.gone()
	err := b.Wait()
	if b.withoutHolder {
		if err == nil {
			b.c.t.Errorf("%s: the daemon has lost its holder, and says that all is well", b)
		}
		return
	}
	var killed interface{ Sys() any }
	if errors.As(err, &killed) {
		if status, ok := killed.Sys().(syscall.WaitStatus); ok && status.Signaled() && status.Signal() == syscall.SIGKILL {
			return
		}
	}
	if err != nil {
		b.c.t.Errorf("%s: the daemon ended with %v", b, err)
	}
}

// gone waits until the daemon has ended, in whatever way.
func (b *board) gone() {
	b.c.t.Helper()
	if !b.Ended(cluster.Timeout) {
		b.c.t.Fatalf("%s has not ended within %v", b, cluster.Timeout)
	}
}

// set changes settings; the daemon learns of it when it starts, or by SIGHUP.
func (b *board) set(changes settings) {
	b.c.t.Helper()
	must(b.c.t, b.Set(changes))
}

func (b *board) writeConfig(text string) {
	b.c.t.Helper()
	must(b.c.t, os.WriteFile(b.ConfigFile(), []byte(text), 0o644))
}

// signal sends a signal to the daemon.
func (b *board) signal(sig syscall.Signal) {
	b.c.t.Helper()
	b.Log.Note("%v", sig)
	b.mayEnd = b.mayEnd || sig == syscall.SIGTERM || sig == syscall.SIGKILL
	must(b.c.t, b.Signal(sig))
}

// topdog runs a command on the board, with its configuration.
func (b *board) topdog(args ...string) outcome {
	b.c.t.Helper()
	o := execOn(b.c.t, b.c.program, b.Host, append(args, "--config", b.ConfigFile()))
	b.Log.Note("topdog %s: %v", strings.Join(args, " "), o)
	return o
}
