package observe

import (
	"os"
	"os/exec"
	"testing"

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
