package netns

import (
	"path/filepath"
	"testing"
	"time"
)

// Whoever comes second waits for the first one to end, in the same process as well.
func TestLockMachine(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	release, err := lockMachine(path)
	must(t, err)
	second := make(chan func())
	go func() {
		release, err := lockMachine(path)
		if err != nil {
			t.Error(err)
		}
		second <- release
	}()
	select {
	case <-second:
		t.Fatal("two have it")
	case <-time.After(20 * time.Millisecond):
	}
	release()
	select {
	case release := <-second:
		release()
	case <-time.After(timeout):
		t.Fatal("nobody has it")
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
