package assert

import (
	"os"
	"syscall"
	"testing"
)

// WriteProgram writes a file that can be executed at once. Nothing is forked meanwhile: the child would have the file open for
// writing until it executes something, and until then the kernel refuses to execute the file (ETXTBSY; Go issue 22315).
func WriteProgram(t testing.TB, path string, text []byte) {
	t.Helper()
	syscall.ForkLock.RLock()
	err := os.WriteFile(path, text, 0o755)
	syscall.ForkLock.RUnlock()
	NoError(t, err)
}
