package netns

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"testing"

	"golang.org/x/sys/unix"
)

// Each thread has its turn, also after one that has ended; another error ends it.
func TestEachThread(t *testing.T) {
	var all []int
	must(t, EachThread(os.Getpid(), func(id int) error {
		all = append(all, id)
		return fmt.Errorf("it has ended: %w", unix.ESRCH)
	}))
	if len(all) < 2 || !slices.Contains(all, os.Getpid()) {
		t.Errorf("this process (%d) has the threads %v", os.Getpid(), all)
	}
	if err := EachThread(os.Getpid(), func(int) error { return unix.EPERM }); !errors.Is(err, unix.EPERM) {
		t.Errorf("%v", err)
	}
	if err := EachThread(-1, func(int) error { return nil }); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a process that is not there: %v", err)
	}
}
