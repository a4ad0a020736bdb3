package observe

import (
	"fmt"
	"os"
	"strings"
	"time"
)

// Schedstat reads the file schedstat of a thread: for how long it has had a processor, and for how long it has waited for one.
// They are the first two of three numbers, which are nanoseconds (Documentation/scheduler/sched-stats.rst of Linux).
func Schedstat(path string) (ran, waited time.Duration, err error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return 0, 0, err
	}
	if ran, waited, err = parseSchedstat(string(text)); err != nil {
		err = fmt.Errorf("%s: %q are not three numbers: %w", path, text, err)
	}
	return ran, waited, err
}

func parseSchedstat(text string) (ran, waited time.Duration, err error) {
	var slices uint64
	_, err = fmt.Sscanf(text, "%d %d %d\n", &ran, &waited, &slices)
	return ran, waited, err
}

// ParentOf returns the parent of a process, and whether the process has not ended.
func ParentOf(pid int) (parent int, alive bool) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, false
	}
	// The name is in parentheses and may contain anything. The state and the parent follow it (proc_pid_stat(5)).
	var state string
	n, _ := fmt.Sscan(string(text[strings.LastIndexByte(string(text), ')')+1:]), &state, &parent)
	return parent, n == 2 && state != "Z"
}
