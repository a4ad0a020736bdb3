package rekey

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// lock keeps others from changing the key file at the same time. What it locks is a file beside it that only its user
// may open: whoever can open a file can lock it for ever. It goes with the lock.
func lock(keyFile string) (unlock func(), err error) {
	keyFile, err = filepath.EvalSymlinks(keyFile)
	if err != nil {
		return nil, fmt.Errorf("find the key file: %w", err)
	}
	path := filepath.Join(filepath.Dir(keyFile), "."+filepath.Base(keyFile)+".lock")
	for {
		f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW, 0o600)
		if err != nil {
			return nil, fmt.Errorf("lock %s: %w", keyFile, err)
		}
		switch err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); {
		case errors.Is(err, unix.EWOULDBLOCK):
			f.Close()
			return nil, fmt.Errorf("somebody else changes %s at this moment: try again", keyFile)
		case err != nil:
			f.Close()
			return nil, fmt.Errorf("lock %s: %w", keyFile, err)
		}
		// Whoever had the lock until now has removed the file.
		if !is(f, path) {
			f.Close()
			continue
		}
		return func() {
			os.Remove(path)
			f.Close()
		}, nil
	}
}

// is reports whether an open file is the one that has that path.
func is(f *os.File, path string) bool {
	opened, err := f.Stat()
	if err != nil {
		return false
	}
	found, err := os.Lstat(path)
	return err == nil && os.SameFile(opened, found)
}
