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
	target, err := filepath.EvalSymlinks(keyFile)
	path := filepath.Join(filepath.Dir(target), "."+filepath.Base(target)+".lock")
	for err == nil {
		var f *os.File
		if f, err = os.OpenFile(path, os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW, 0o600); err != nil {
			break
		}
		var found unix.Stat_t
		if err = errors.Join(unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB), unix.Fstat(int(f.Fd()), &found)); err == nil && found.Nlink > 0 {
			return func() {
				os.Remove(path)
				f.Close()
			}, nil
		}
		f.Close() // also if whoever had the lock until now has removed the file meanwhile
	}
	if errors.Is(err, unix.EWOULDBLOCK) {
		return nil, fmt.Errorf("somebody else changes %s at this moment: try again", keyFile)
	}
	return nil, fmt.Errorf("lock %s: %w", keyFile, err)
}
