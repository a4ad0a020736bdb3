package netio

import (
	"fmt"
	"os"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// DropProgram drops the pages of the program that this process has used. What is needed
// again is still in the kernel's memory, and is mapped again when it is used.
func DropProgram() { loadedProgram().drop() }

// program are the parts of memory that are as they are in the program's file.
type program []span

// span is a part of the address space.
type span struct{ from, to uintptr }

// programText returns the parts of memory that are as they are in the program's file: they
// cannot be written to, and were not. A position-independent program, or a library, has
// others, which were written to when it was loaded, before they were protected.
// smaps is /proc/self/smaps.
func programText(smaps string) (text program) {
	var latest span
	file := false
	for line := range strings.Lines(smaps) {
		var s span
		var mode string
		if n, _ := fmt.Sscanf(line, "%x-%x %s", &s.from, &s.to, &mode); n == 3 {
			latest, file = s, !strings.Contains(mode, "w") && strings.Contains(line, "/")
		}
		var written int
		if n, _ := fmt.Sscanf(line, "Anonymous: %d kB", &written); n == 1 && written == 0 && file {
			text = append(text, latest)
		}
	}
	return text
}

// loadedProgram is the program of this process, which is looked for once, since that takes more memory than there is to
// drop. What cannot be read is not dropped.
var loadedProgram = sync.OnceValue(func() program {
	smaps, _ := os.ReadFile("/proc/self/smaps")
	return programText(string(smaps))
})

// drop drops the program's pages. A start has used most of them, and a process that only waits needs
// nearly none.
func (p program) drop() {
	for _, s := range p {
		_, _, _ = unix.Syscall(unix.SYS_MADVISE, s.from, s.to-s.from, unix.MADV_DONTNEED)
	}
}
