package rekey

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// lock keeps others from changing the key file at the same time. It locks the directory, since the
// file is replaced.
func lock(keyFile string) (unlock func(), err error) {
	dir, err := os.Open(filepath.Dir(keyFile))
	if err != nil {
		return nil, fmt.Errorf("open the directory of the key file: %w", err)
	}
	err = unix.Flock(int(dir.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if err == nil {
		return func() { dir.Close() }, nil
	}
	dir.Close()
	if errors.Is(err, unix.EWOULDBLOCK) {
		return nil, fmt.Errorf("somebody else changes %s at this moment: try again", keyFile)
	}
	return nil, fmt.Errorf("lock the directory of %s: %w", keyFile, err)
}
