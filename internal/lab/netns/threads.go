package netns

import (
	"errors"
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// EachThread does something to each thread of a process: priorities and processors are those of threads in Linux, and a
// new thread has those of the one that makes it. A thread that has ended meanwhile is no error.
func EachThread(pid int, do func(thread int) error) error {
	threads, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	if err != nil {
		return err
	}
	for _, t := range threads {
		id, err := strconv.Atoi(t.Name())
		if err != nil {
			return err
		}
		if err := do(id); err != nil && !errors.Is(err, unix.ESRCH) {
			return err
		}
	}
	return nil
}
