package observe

import (
	"os"
	"os/exec"
	"testing"
	"time"

	"topdog/internal/lab/assert"
)

// TestParentOf: a child has this process as its parent, and is alive until it ends.
func TestParentOf(t *testing.T) {
	child := exec.Command("cat")
	end, err := child.StdinPipe()
	assert.NoError(t, err)
	assert.NoError(t, child.Start())
	pid := child.Process.Pid
	if parent, alive := ParentOf(pid); parent != os.Getpid() || !alive {
		t.Errorf("its parent is process %d, and it is alive: %t", parent, alive)
	}
	end.Close()
	assert.NoError(t, child.Wait())
	if _, alive := ParentOf(pid); alive {
		t.Error("it has ended, and is alive")
	}
}

func TestParseSchedstat(t *testing.T) {
	for text, want := range map[string][2]time.Duration{"12345678 99 7\n": {12345678, 99}, "0 0 0\n": {}} {
		if ran, waited, err := parseSchedstat(text); err != nil || ran != want[0] || waited != want[1] {
			t.Errorf("%q: %v, %v, %v", text, ran, waited, err)
		}
	}
	for _, text := range []string{"", "1 2", "one 2 3", "1 two 3", "1 2 3 4", "99999999999999999999 1 1"} {
		if ran, waited, err := parseSchedstat(text); err == nil {
			t.Errorf("%q was taken for %v and %v", text, ran, waited)
		}
	}
	if ran, waited, err := Schedstat("/proc/thread-self/schedstat"); err != nil || ran <= 0 || waited < 0 {
		t.Errorf("this thread: %v, %v, %v", ran, waited, err)
	}
}
