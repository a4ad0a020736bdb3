package observe

import (
	"os"
	"os/exec"
	"testing"
)

// TestParentOf: a child has this process as its parent, and is alive until it ends.
func TestParentOf(t *testing.T) {
	child := exec.Command("cat")
	end, err := child.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	pid := child.Process.Pid
	if parent, alive := ParentOf(pid); parent != os.Getpid() || !alive {
		t.Errorf("its parent is process %d, and it is alive: %t", parent, alive)
	}
	end.Close()
	if err := child.Wait(); err != nil {
		t.Fatal(err)
	}
	if _, alive := ParentOf(pid); alive {
		t.Error("it has ended, and is alive")
	}
}
