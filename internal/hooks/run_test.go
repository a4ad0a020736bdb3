package hooks

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"topdog/internal/console"
	"topdog/internal/lab/assert"
)

// A thousand changes as fast as they come, while the reader of the daemon's stream is busy, and with a SIGTERM at the
// end: what is told is in order, and no word twice in a row; what is due is told before it ends, and no process is left.
func TestRun(t *testing.T) {
	dir, book := directory(t), newBook(t)
	write(t, filepath.Join(dir, "notify"), "#!/bin/sh\necho $3 $TOPDOG_TERM >>"+string(book)+"\n", 0o755)
	daemon := newDaemon(t)
	log, said := newTestLog()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		Run(ctx, daemon.client(), Options{Directory: dir, Timeout: deadline, Log: log})
		close(ended)
	}()
	book.wants(t, "BACKUP 0") // how the board is
	const many = 1021
	for i := range many {
		daemon.becomes([]string{console.RoleLeader, console.RoleFollower}[i%2])
		if i%51 == 0 { // so that one of fifty at least is told, and the last one
			waitFor(t, "it is told", func() bool {
				told := book.lines()
				return strings.HasPrefix(told[len(told)-1], []string{"MASTER", "BACKUP"}[i%2])
			})
		}
	}
	waitFor(t, "the others are logged", func() bool { return said.has("were over before") })
	daemon.stop() // as at a shutdown: first the daemon, then its hooks
	cancel()
	select {
	case <-ended:
	case <-time.After(deadline):
		t.Fatal("it does not end")
	}
	told := book.lines()
	former, before := backup, 0
	for _, line := range told[1 : len(told)-1] {
		var w word
		var term int
		if _, err := fmt.Sscan(line, &w, &term); err != nil || w == former || w != []word{backup, master}[term%2] || term <= before {
			t.Errorf("after %s %d comes %s, %v", former, before, line, err)
		}
		former, before = w, term
	}
	assert.Is(t, "STOP 0", told[len(told)-1], "the last that was told")
	t.Logf("%d of %d were told, the others overtaken", len(told), many+2)
	noChildren(t)
}
