package observe

import (
	"fmt"
	"os"
	"strings"
)

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
