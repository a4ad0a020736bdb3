package netns

import (
	"fmt"
	"os"
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"topdog/internal/lab/assert"
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
	assert.ErrorIs(t, EachThread(os.Getpid(), func(int) error { return unix.EPERM }), unix.EPERM, "")
	assert.ErrorIs(t, EachThread(-1, func(int) error { return nil }), os.ErrNotExist, "a process that is not there")
}
