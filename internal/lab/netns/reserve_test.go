package netns

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"topdog/internal/lab/assert"
)

// taken reports whether a slot, or all of them, cannot be had at once. What it gets it gives back.
func taken(t *testing.T, path string, slots int, alone bool) bool {
	t.Helper()
	got := make(chan func(), 1)
	go func() {
		release, err := takeSlots(path, slots, alone)
		assert.ErrorIs(t, err, nil, "")
		got <- release
	}()
	select {
	case release := <-got:
		release()
		return false
	case <-time.After(50 * slotInterval):
		t.Cleanup(func() { (<-got)() }) // it gets it when the test gives it back
		return true
	}
}

// As many tests as there are slots have one, in one process as well, and the next gets that of the first to end.
func TestSlots(t *testing.T) {
	path := filepath.Join(t.TempDir(), "slots")
	const slots = 3
	var releases []func()
	for n := range slots {
		if taken(t, path, slots, false) {
			t.Fatalf("slot %d of %d is taken", n+1, slots)
		}
		release, err := takeSlots(path, slots, false)
		must(t, err)
		releases = append(releases, release)
	}
	next := make(chan struct{})
	go func() {
		release, err := takeSlots(path, slots, false)
		assert.ErrorIs(t, err, nil, "")
		release()
		close(next)
	}()
	select {
	case <-next:
		t.Error("one more has got a slot")
	case <-time.After(20 * slotInterval):
	}
	releases[1]()
	<-next
	releases[0]()
	releases[2]()
}

// Whoever wants all slots gets them when they are free, before those that come later, and then nobody else has one.
func TestAllSlots(t *testing.T) {
	path := filepath.Join(t.TempDir(), "slots")
	one, err := takeSlots(path, 2, false)
	must(t, err)
	order := make(chan string, 2)
	wait := func(name string, alone bool) (ended chan struct{}) {
		ended = make(chan struct{})
		go func() {
			defer close(ended)
			release, err := takeSlots(path, 2, alone)
			if err != nil {
				t.Error(err)
				return
			}
			order <- name
			release()
		}()
		return ended
	}
	alone := wait("alone", true)
	for turnIsFree(t, path) { // until it has its turn
	}
	later := wait("later", false) // though the second slot is free
	one()
	<-alone
	<-later
	assert.Is(t, "alone", <-order, "who was first")
	all, err := takeSlots(path, 2, true)
	must(t, err)
	if !taken(t, path, 2, false) {
		t.Error("another one has a slot as well")
	}
	all()
}

func turnIsFree(t *testing.T, path string) bool {
	t.Helper()
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	must(t, err)
	defer f.Close()
	err = lockBytes(f, unix.F_OFD_SETLK, unix.F_WRLCK, turn, 1)
	return err == nil
}

// Where the file cannot be, nobody waits.
func TestSlotsWithoutAFile(t *testing.T) {
	for range 2 {
		_, err := takeSlots(filepath.Join(t.TempDir(), "missing", "slots"), 1, true)
		must(t, err)
	}
}

// A test that reserves the network again does not wait for itself, and the next one gets it.
func TestReserve(t *testing.T) {
	path := filepath.Join(t.TempDir(), "slots")
	for range 2 {
		t.Run("", func(t *testing.T) {
			take(t, path, true)
			take(t, path, false)
		})
	}
}

// The tests of a process that share a slot have one of them, however many they are.
func TestReserveTogether(t *testing.T) {
	for range Slots() + 1 {
		t.Run("", func(t *testing.T) { ReserveTogether(t) })
	}
}
