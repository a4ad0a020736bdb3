package main

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"topdog/internal/lab/judge"
	"topdog/internal/lab/netns"
)

// TestWaitsForTheHolder starts a daemon before the holder of its service, and restarts both.
func TestWaitsForTheHolder(t *testing.T) {
	judge.Run(t, func(t *judge.T) {
		c := newCluster(t, 1, nil)
		b := c.board(1)
		path := filepath.Join(b.Dir, "h")
		run := func() {
			t.Helper()
			must(t, b.Launch(c.program.Path, []string{"run", "--config", b.ConfigFile(), "--holder", path}, netns.Env(c.program.Env...)))
		}
		logged := func(words ...string) {
			t.Helper()
			c.until("the daemon logs it", func() string {
				if b.Log.Logged(words...) {
					return ""
				}
				return b.Log.Last(10)
			})
		}
		run()
		logged("waiting for the holder", path, "does topdog-holder.service run?")

		// Whoever changes the keys meanwhile is told that no daemon runs: it has them when it does.
		b.mustKey("the daemon does not run", "add")
		b.mustKey("the daemon does not run", "first", b.keys().Also.String(), "--force")
		b.mustKey("the daemon does not run", "drop", "--force")

		holder, err := c.NewDaemon(1)
		must(t, err)
		serve := func() {
			t.Helper()
			must(t, holder.Launch(c.program.Path, []string{"holder", "--config", b.ConfigFile(), "--socket", path, "--user", "root"}, netns.Env(c.program.Env...)))
		}
		serve()
		b.holds()
		if o := b.mustKey(b.keys().Signs.String()+" signs", "show"); strings.Contains(o.stdout, "has others") {
			t.Errorf("the daemon has keys that were changed while it waited: %v", o)
		}

		must(t, holder.Signal(syscall.SIGKILL))
		c.untilTrue("the daemon ends without its holder", func() bool { return !b.Running() })
		if !b.Log.Logged("the holder") {
			t.Errorf("the daemon has not said why it ended:\n%s", b.Log.Last(10))
		}
		c.untilHolders("nobody has the address", func(holders []int) bool { return len(holders) == 0 })
		run()
		serve()
		b.holds()
		must(t, b.Signal(syscall.SIGTERM))
		must(t, b.Wait())
		if !holder.Running() {
			t.Errorf("the holder has ended with the daemon:\n%s", holder.Log)
		}
		must(t, holder.Signal(syscall.SIGTERM))
		must(t, holder.Wait())
	})
}
