package netns

import (
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"runtime"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// Test is what Reserve needs of a testing.TB.
type Test interface {
	Helper()
	Skip(reason ...any)
	Fatal(reason ...any)
	Cleanup(func())
}

// The tests of this machine share it by locks on the bytes of a file, one for each slot. The kernel unlocks
// them also when a process is killed.
const (
	slotFile = "/run/topdog-test.slots"
	slotsMax = 64
	// turn is the byte that is locked by whoever waits for a slot. The others wait for that byte, so that a
	// test that wants all slots gets them, however many come after it.
	turn = slotsMax
	// slotInterval is how often a test that waits looks for a slot. One test of the machine looks at a time.
	slotInterval = 5 * time.Millisecond
)

// Slots is how many tests may use namespaces at once. Boards mostly wait for the next heartbeat: on two
// processors, four clusters leave each other in time, and six do not (docs/CONTRIBUTING.md has the figures).
func Slots() int { return min(2*runtime.NumCPU(), slotsMax) }

// reserved are the tests of this process that have a slot, or all of them.
var reserved sync.Map

// Reserve has a test wait until few enough other tests of this machine use namespaces, in this process and in others: `go test
// ./...` runs several packages at a time. It skips the test where there can be no namespaces, and with -short.
func Reserve(t Test) {
	t.Helper()
	ReserveSlots(t, false)
}

// ReserveSlots is Reserve, or has the test wait until no other test of this machine uses namespaces, and keeps the others
// waiting until it has ended: for what loads the machine, or must not be disturbed.
func ReserveSlots(t Test, alone bool) {
	t.Helper()
	skipUnreservable(t)
	take(t, slotFile, alone)
	skipUnavailable(t) // what it tries out uses namespaces, too
}

// ReserveTogether has all tests of this process use one slot, which it keeps until it ends. It is for many tests of some tens of
// milliseconds each, which would wait for a slot for longer than that. No test of the process can be alone then.
func ReserveTogether(t Test) {
	t.Helper()
	skipUnreservable(t)
	if err := together(); err != nil {
		t.Fatal(err)
	}
	skipUnavailable(t)
}

// together takes the slot, which the kernel frees when the process ends.
var together = sync.OnceValue(func() error {
	_, err := takeSlots(slotFile, Slots(), false)
	return err
})

// Share has a test that makes no namespaces wait for a slot as well, or for all of them: its boards are in this process, and
// share the processors with others. With -short it skips the test: to wait for one takes minutes while others run.
func Share(t Test, alone bool) {
	t.Helper()
	if short() {
		t.Skip("-short: it waits for its share of the machine")
	}
	take(t, slotFile, alone)
}

func skipUnavailable(t Test) {
	t.Helper()
	if err := Available(); err != nil {
		t.Skip(err)
	}
}

// short is testing.Short, where tests run.
func short() bool {
	f := flag.Lookup("test.short")
	return f != nil && f.Value.String() == "true"
}

func skipUnreservable(t Test) {
	t.Helper()
	if short() {
		t.Skip("-short: tests with network namespaces take seconds")
	}
	if err := needsRoot(); err != nil {
		t.Skip(err)
	}
}

func take(t Test, path string, alone bool) {
	t.Helper()
	if _, again := reserved.LoadOrStore(t, true); again {
		return
	}
	release, err := takeSlots(path, Slots(), alone)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		release()
		reserved.Delete(t)
	})
}

// takeSlots waits for one of so many slots of a file, or for all of them. Whoever may not write the file, as root in a
// container, waits for nobody.
func takeSlots(path string, slots int, alone bool) (release func(), err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR|unix.O_NOFOLLOW, 0o600)
	switch {
	case errors.Is(err, fs.ErrPermission), errors.Is(err, fs.ErrNotExist), errors.Is(err, unix.EROFS):
		return func() {}, nil
	case err != nil:
		return nil, fmt.Errorf("netns: wait for other tests: %w", err)
	}
	if err := takeTurn(f, slots, alone); err != nil {
		f.Close()
		return nil, fmt.Errorf("netns: lock %s to wait for other tests: %w", path, err)
	}
	return func() { f.Close() }, nil
}

func takeTurn(f *os.File, slots int, alone bool) error {
	if err := lockBytes(f, unix.F_OFD_SETLKW, unix.F_WRLCK, turn, 1); err != nil {
		return err
	}
	defer lockBytes(f, unix.F_OFD_SETLK, unix.F_UNLCK, turn, 1)
	if alone {
		return lockBytes(f, unix.F_OFD_SETLKW, unix.F_WRLCK, 0, slotsMax)
	}
	tick := time.NewTicker(slotInterval)
	defer tick.Stop()
	for ; ; <-tick.C {
		for slot := range slots {
			if err := lockBytes(f, unix.F_OFD_SETLK, unix.F_WRLCK, slot, 1); !errors.Is(err, unix.EAGAIN) {
				return err
			}
		}
	}
}

// lockBytes locks or unlocks bytes of a file for whoever has this descriptor of it (fcntl(2), "Open file
// description locks").
func lockBytes(f *os.File, command int, kind int16, first, length int) error {
	for {
		err := unix.FcntlFlock(f.Fd(), command, &unix.Flock_t{Type: kind, Start: int64(first), Len: int64(length)})
		if !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}
