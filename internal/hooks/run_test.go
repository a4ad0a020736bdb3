package hooks

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"topdog/internal/console"
	"topdog/internal/lab/assert"
)

// The same thousand, by way of the daemon's stream, while its reader is busy, and with a SIGTERM at the
// end: what is due is told before it ends.
func TestRun(t *testing.T) {
	dir, book := directory(t), filepath.Join(t.TempDir(), "book")
	write(t, filepath.Join(dir, "notify"), "#!/bin/sh\necho $3 >>"+book+"\n", 0o755)
	daemon := newDaemon(t)
	log, said := newTestLog()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- Run(ctx, daemon.client(), Options{Directory: dir, Timeout: deadline, Log: log})
	}()
	told := func() []string {
		text, _ := os.ReadFile(book)
		return strings.Fields(string(text))
	}
	waitFor(t, "the hook is told how the board is", func() bool { return len(told()) == 1 })
	const many = 1000
	for i := range many {
		daemon.becomes([]string{console.RoleLeader, console.RoleFollower}[i%2])
	}
	daemon.becomes(console.RoleLeader)
	waitFor(t, "the last state is told", func() bool { all := told(); return all[len(all)-1] == string(master) && said.has("were over before") })
	daemon.stop() // as at a shutdown: first the daemon, then its hooks
	cancel()
	select {
	case err := <-ended:
		assert.ErrorIs(t, err, nil, "its end")
	case <-time.After(deadline):
		t.Fatal("it does not end")
	}
	all := told()
	for i, word := range all[1:] {
		if word == all[i] {
			t.Errorf("it was told %s twice in a row", word)
		}
	}
	if last := all[len(all)-1]; last != string(stop) {
		t.Errorf("the last that was told is %s, want STOP", last)
	}
	t.Logf("%d of %d were told, the others overtaken", len(all), many+3)
	if left := children(t); len(left) > 0 {
		t.Errorf("these processes are left: %q", left)
	}
}
