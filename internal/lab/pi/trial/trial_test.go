package trial

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"topdog/internal/lab/assert"
	"topdog/internal/lab/pi"
)

// Where something is missing the trial says so before it builds anything, which takes minutes.
func TestRunLooksBeforeItBuilds(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip(err)
	}
	path := t.TempDir()
	assert.NoError(t, os.Symlink(bash, filepath.Join(path, "bash")))
	t.Setenv("PATH", path)
	var out bytes.Buffer
	dir := t.TempDir()
	err = Run(t.Context(), Options{Supply: &pi.Supply{Source: "../../../..", Dir: dir, Progress: &out}, Emulated: 1, Out: &out})
	if err == nil {
		t.Fatal("it ran without any program")
	}
	for _, want := range []string{"apt-get install", "mmdebstrap", "qemu-system-arm"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the error does not name %s: %v", want, err)
		}
	}
	if left, _ := os.ReadDir(dir); len(left) > 0 || out.Len() > 0 {
		t.Errorf("it left %v and said %q", left, out.String())
	}
}
