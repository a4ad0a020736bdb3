package netns

import (
	"slices"
	"testing"
	"time"
)

// A host's processes are those that were started there and their children, also
// when the parent has died; and nobody else's.
func TestProcesses(t *testing.T) {
	l := newLAN(t, 2)
	b := l.Board(1)
	if pids, err := b.Processes(); err != nil || len(pids) > 0 {
		t.Fatalf("before anything runs: %v, %v", pids, err)
	}
	// The shell's child is another process, since the shell has more to do after it.
	shell, err := b.Start(t.Context(), "/bin/sh", []string{"-c", "sleep 60; true"})
	must(t, err)
	number := func(want int) []int {
		t.Helper()
		for deadline := time.Now().Add(timeout); ; {
			pids, err := b.Processes()
			must(t, err)
			if len(pids) == want {
				return pids
			}
			if time.Now().After(deadline) {
				t.Fatalf("the processes are %v, not %d of them", pids, want)
			}
		}
	}
	both := number(2)
	if !slices.Contains(both, shell.PID) {
		t.Errorf("%v does not contain the shell, %d", both, shell.PID)
	}
	if pids, err := l.Board(2).Processes(); err != nil || len(pids) > 0 {
		t.Errorf("the other board has %v, %v", pids, err)
	}
	must(t, shell.Kill())
	<-shell.Exited()
	if orphan := number(1); orphan[0] == shell.PID || !slices.Contains(both, orphan[0]) {
		t.Errorf("after the shell's end there is %v of %v", orphan, both)
	}
}
