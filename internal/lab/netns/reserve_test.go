package netns

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// Whoever comes second waits for the first one to end, in the same process as well.
func TestLockMachine(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	other, err := os.Create(path)
	must(t, err)
	defer other.Close()
	isFree := func() bool {
		err := unix.Flock(int(other.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil {
			must(t, unix.Flock(int(other.Fd()), unix.LOCK_UN))
		} else if !errors.Is(err, unix.EWOULDBLOCK) {
			t.Fatal(err)
		}
		return err == nil
	}
	unlock, err := lockMachine(path)
	must(t, err)
	if isFree() {
		t.Error("another one gets it as well")
	}
	second := make(chan func())
	go func() {
		unlock, err := lockMachine(path)
		if err != nil {
			t.Error(err)
		}
		second <- unlock
	}()
	unlock()
	select {
	case unlock := <-second:
		if isFree() {
			t.Error("the second one does not have it")
		}
		unlock()
	case <-time.After(timeout):
		t.Fatal("nobody has it")
	}
	if !isFree() {
		t.Error("it is not given back")
	}
}

// Where the file cannot be, nobody waits.
func TestLockMachineWithoutAFile(t *testing.T) {
	for range 2 {
		_, err := lockMachine(filepath.Join(t.TempDir(), "missing", "lock"))
		must(t, err)
	}
}

// A test that reserves the network again does not wait for itself, and the next one gets it.
func TestReserve(t *testing.T) {
	for range 2 {
		t.Run("", func(t *testing.T) {
			Reserve(t)
			Reserve(t)
		})
	}
}
