package cluster

import (
	"fmt"
	"os"
	"runtime"

	"golang.org/x/sys/unix"

	"topdog/internal/lab/netns"
)

// BeOnTime gives all threads of this process the priority of topdog's unit, and what it starts from now on inherits that.
// A client, the boards' answers and who watches them are this process, so nobody is ahead.
func BeOnTime() error {
	// A thread in a system call keeps its place among the running ones until Go's monitor notices, which takes up to 10 ms.
	// With places to spare, the client and the boards' answers don't wait for that.
	runtime.GOMAXPROCS(max(16, 4*runtime.NumCPU()))
	err := netns.EachThread(os.Getpid(), func(id int) error { return unix.Setpriority(unix.PRIO_PROCESS, id, ServiceNice) })
	if err != nil {
		return fmt.Errorf("raise the priority to that of topdog's unit (%d): %w", ServiceNice, err)
	}
	return nil
}
