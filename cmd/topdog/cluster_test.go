package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"topdog/internal/config"
	"topdog/internal/console"
	"topdog/internal/lab/netns"
	"topdog/internal/lab/observe"
)

var (
	// vip is the floating address of all tests, as they configure it, and vip32
	// as the leader has it.
	vip   = netip.MustParseAddr("10.77.0.100")
	vip32 = netip.PrefixFrom(vip, 32)
	// vip24 is as people add it.
	vip24 = netip.PrefixFrom(vip, 24)
)

const (
	// patience is how long a test waits for what must happen. On a quiet machine
	// everything here takes a second or two.
	patience = 20 * time.Second
	// pollEvery is how often a test looks.
	pollEvery = 10 * time.Millisecond
	// lifetime bounds how long the kernel keeps the address of a board whose
	// daemon is frozen: 1 s of lifetime, and up to 1.25 s until the kernel looks
	// (docs/address.md); the rest is for a busy machine.
	lifetime = 2500 * time.Millisecond
)

// atOnce bounds what the kernel does when a process has been killed: under 4 ms
// on a quiet machine. Other tests and the race detector may keep both
// processors busy here, so this is no figure; the figures are benchmarks.
func atOnce() time.Duration {
	if underRace {
		return 50 * time.Millisecond
	}
	return 10 * time.Millisecond
}

// cluster is a LAN whose boards run topdog, each with a configuration and a
// control socket of its own, and a client that asks for the address every millisecond.
type cluster struct {
	t       testing.TB
	program program
	lan     *netns.LAN
	holders *observe.Holders
	asker   *observe.Asker
	boards  []*board
	began   time.Time
}

// board is one of them.
type board struct {
	*netns.Host
	c        *cluster
	number   int
	dir      string
	settings settings
	process  *netns.Process // nil when it was never started
	status   *console.Client
	journal  *journal
}

// settings are keys of a configuration with their values as TOML has them.
type settings map[string]string

// newCluster builds the LAN. The boards are named pi1, pi2 …, and none runs yet.
func newCluster(t testing.TB, boards int, common settings) *cluster {
	t.Helper()
	return newClusterOf(t, itself(), boards, common)
}

func newClusterOf(t testing.TB, p program, boards int, common settings) *cluster {
	t.Helper()
	if err := netns.Available(); err != nil {
		t.Skip(err)
	}
	lan, err := netns.New(netns.Options{Boards: boards})
	must(t, err)
	c := &cluster{t: t, program: p, lan: lan, began: time.Now()}
	t.Cleanup(c.close)
	c.holders, err = lan.WatchHolders(vip)
	must(t, err)
	c.asker, err = lan.Ask(vip, time.Millisecond)
	must(t, err)

	key := newKey(t)
	for n := 1; n <= boards; n++ {
		// Not t.TempDir: with the name of the test in it, it is too long for a socket.
		dir, err := os.MkdirTemp("", "topdog")
		must(t, err)
		t.Cleanup(func() { os.RemoveAll(dir) })
		b := &board{
			Host: lan.Board(n), c: c, number: n, dir: dir,
			journal: &journal{start: c.began},
			status:  console.Dial(filepath.Join(dir, "s")),
			settings: settings{
				"address":   quote(vip.String()),
				"name":      quote(fmt.Sprintf("pi%d", n)),
				"key_file":  quote("key"),
				"led":       quote("none"),
				"socket":    quote(filepath.Join(dir, "s")),
				"heartbeat": quote(heartbeat.String()),
				"log_level": quote("debug"),
			},
		}
		b.set(common)
		b.setKey(key)
		c.boards = append(c.boards, b)
	}
	return c
}

func newKey(t testing.TB) config.Key {
	t.Helper()
	key, err := config.NewKey(rand.Reader)
	must(t, err)
	return key
}

// quote writes a text as TOML has it; none of ours needs an escape.
func quote(text string) string { return `"` + text + `"` }

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// board returns board n, counted from 1.
func (c *cluster) board(n int) *board { return c.boards[n-1] }

// named returns the board that others call so, or nil.
func (c *cluster) named(name string) *board {
	for _, b := range c.boards {
		if b.settings["name"] == quote(name) {
			return b
		}
	}
	return nil
}

// except returns all boards but these.
func (c *cluster) except(these ...*board) []*board {
	return slices.DeleteFunc(slices.Clone(c.boards), func(b *board) bool { return slices.Contains(these, b) })
}

// close ends the boards as an administrator would, and tells what they said if
// the test failed.
func (c *cluster) close() {
	if !c.t.Failed() {
		for _, b := range c.boards {
			if b.running() {
				_ = b.process.Signal(syscall.SIGCONT)
				_ = b.process.Signal(syscall.SIGTERM)
			}
		}
		for _, b := range c.boards {
			if b.process != nil {
				b.ended()
			}
		}
	}
	if err := c.lan.Close(); err != nil {
		c.t.Error(err)
	}
	if lost := c.holders; lost != nil && lost.Lost() > 0 {
		c.t.Errorf("%d notifications of the kernel were lost, so nothing is known about two holders", lost.Lost())
	}
	for _, b := range c.boards {
		if log := b.journal.String(); strings.Contains(log, "DATA RACE") || strings.Contains(log, "panic:") {
			c.t.Errorf("%s: data race or panic", b)
		}
	}
	if c.t.Failed() {
		for _, b := range c.boards {
			c.t.Logf("%s:\n%s", b, b.journal)
		}
	}
}

// ended waits until the daemon has ended, and checks that it did so in good order
// unless it was killed.
func (b *board) ended() {
	b.c.t.Helper()
	select {
	case <-b.process.Exited():
	case <-time.After(patience):
		b.c.t.Errorf("%s has not ended %v after SIGTERM", b, patience)
		return
	}
	err := b.process.Wait()
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

func (b *board) String() string { return strings.Trim(b.settings["name"], `"`) }

// set changes settings; the daemon learns of it when it starts, or by SIGHUP.
func (b *board) set(changes settings) {
	maps.Copy(b.settings, changes)
	var text strings.Builder
	for _, key := range slices.Sorted(maps.Keys(b.settings)) {
		if value := b.settings[key]; value != "" {
			fmt.Fprintf(&text, "%s = %s\n", key, value)
		}
	}
	b.writeConfig(text.String())
}

func (b *board) writeConfig(text string) {
	must(b.c.t, os.WriteFile(b.config(), []byte(text), 0o644))
}

func (b *board) config() string { return filepath.Join(b.dir, "topdog.toml") }

func (b *board) setKey(key config.Key) {
	must(b.c.t, os.WriteFile(filepath.Join(b.dir, "key"), key.Encode(), 0o600))
}

// start runs the daemon on these boards.
func (c *cluster) start(boards ...*board) {
	c.t.Helper()
	for _, b := range boards {
		b.start()
	}
}

func (b *board) start() {
	b.c.t.Helper()
	var err error
	b.journal.note("start")
	b.process, err = b.c.program.daemon(b.Host, b.journal, "run", "--config", b.config())
	must(b.c.t, err)
}

// signal sends a signal to the daemon.
func (b *board) signal(sig syscall.Signal) {
	b.c.t.Helper()
	b.journal.note("%v", sig)
	must(b.c.t, b.process.Signal(sig))
}

// topdog runs a command on the board, with its configuration.
func (b *board) topdog(args ...string) outcome {
	b.c.t.Helper()
	o := b.c.program.execOn(b.c.t, b.Host, append(args, "--config", b.config())...)
	b.journal.note("topdog %s: %v", strings.Join(args, " "), o)
	return o
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

// look asks the daemon for its status.
func (b *board) look() (console.Status, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	return b.status.Status(ctx)
}
