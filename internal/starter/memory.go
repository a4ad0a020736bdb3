package starter

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// HideMemory has the kernel refuse other processes of the same user to write to the memory of this one, to read it, or to have its
// files. It is not so any more for what this process executes. The name of the process must be set before.
func HideMemory() error {
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return fmt.Errorf("keep other processes from the memory of this one: %w", os.NewSyscallError("prctl(PR_SET_DUMPABLE)", err))
	}
	return nil
}
