package netns

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

// Test is what Reserve needs of a testing.TB.
type Test interface {
	Helper()
	Skip(reason ...any)
	Fatal(reason ...any)
	Cleanup(func())
}

// reservationFile is locked by the test that has this machine's network for itself.
const reservationFile = "/run/topdog-test.lock"

// reserved are the tests that have reserved it, of this process.
var reserved sync.Map

// Reserve has a test wait until no other test of this machine uses namespaces, and keeps the others waiting
// until it has ended. It skips the test where there can be no namespaces. `go test ./...` runs several packages at
// a time. The kernel has one lock for the networks of all namespaces, and keeps it for tens of milliseconds
// when it takes one apart: for a daemon of another test, that is a machine that stands still. The kernel takes the
// last ones of a test apart when the next one begins already.
func Reserve(t Test) {
	t.Helper()
	reserve(t)
	if err := Available(); err != nil {
		t.Skip(err)
	}
}

// reserve only waits, and not where there can be no namespaces.
func reserve(t Test) {
	t.Helper()
	if err := needsRoot(); err != nil {
		t.Skip(err)
	}
	if _, again := reserved.LoadOrStore(t, true); again {
		return
	}
	unlock, err := lockMachine(reservationFile)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		unlock()
		reserved.Delete(t)
	})
}

// lockMachine waits for a file's lock. The kernel unlocks it also when the process is killed. Who may not write
// the file, as root in a container, waits for nobody.
func lockMachine(path string) (unlock func(), err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR|unix.O_NOFOLLOW, 0o600)
	switch {
	case errors.Is(err, fs.ErrPermission), errors.Is(err, fs.ErrNotExist), errors.Is(err, unix.EROFS):
		return func() {}, nil
	case err != nil:
		return nil, fmt.Errorf("netns: wait for the tests of other packages: %w", err)
	}
	for {
		if err = unix.Flock(int(f.Fd()), unix.LOCK_EX); !errors.Is(err, unix.EINTR) {
			break
		}
	}
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("netns: lock %s to wait for the tests of other packages: %w", path, err)
	}
	return func() { f.Close() }, nil
}
