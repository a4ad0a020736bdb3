package pi

import (
	"os"
	"os/exec"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"

	"topdog/internal/lab/assert"
)

// A board is on as long as the process with the number in its file has locked that. A stranger that has been given the number
// since is spared.
func TestProcess(t *testing.T) {
	b := &Board{N: 1, lab: &Lab{}, dir: t.TempDir()}
	c := exec.Command("sleep", "1h")
	assert.NoError(t, c.Start())
	t.Cleanup(func() {
		_ = c.Process.Kill()
		_ = c.Wait()
	})
	assert.NoError(t, os.WriteFile(b.file("qemu.pid"), []byte(strconv.Itoa(c.Process.Pid)+"\n"), 0o600))
	assert.ErrorIs(t, b.PowerOff(), nil, "switch a board off that has only a stranger's number")
	assert.ErrorIs(t, unix.Kill(c.Process.Pid, 0), nil, "the stranger")
	if b.On() {
		t.Error("a stranger is taken for the board")
	}
}
