package check

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// execProber passes while there is a process of a program, perhaps of a certain user. Processes are
// looked for in /proc, and then held by their pidfds. It looks for new ones when none is
// left, and now and then.
type execProber struct {
	path, user string
	target     string // what path leads to, if it is a symbolic link
	ended      chan struct{}
	held       []*process
	searchedAt time.Time
	others     []int // all processes that there were then
}

// heldMax is how many processes of a program are watched. A service that has forked more of them
// is there as long as one of these is.
const heldMax = 8

func newExecProber(c *Check) *execProber {
	return &execProber{path: c.Target, user: c.User, ended: make(chan struct{}, 1)}
}

func (p *execProber) changes() <-chan struct{} { return p.ended }

func (p *execProber) close() { p.drop(func(*process) bool { return true }) }

// drop forgets processes.
func (p *execProber) drop(gone func(*process) bool) {
	p.held = slices.DeleteFunc(p.held, func(held *process) bool {
		if gone(held) {
			held.close()
			return true
		}
		return false
	})
}

func (p *execProber) probe(context.Context) error {
	last := 0
	p.drop(func(held *process) bool {
		if held.lives() {
			return false
		}
		last = held.pid
		return true
	})
	switch {
	case len(p.held) > 0 && time.Since(p.searchedAt) < slowly:
		return nil
	case len(p.held) == 0 && last != 0:
		// A server that is updated in place hands over to another process, and ends.
		if p.search(p.others) == nil {
			return nil
		}
		return endedError("its process", last)
	}
	return p.search(nil)
}

// search looks for the processes of the program, but not among those that are known to be others: to look at all
// takes milliseconds.
func (p *execProber) search(others []int) error {
	p.searchedAt = time.Now()
	if target, err := filepath.EvalSymlinks(p.path); err == nil {
		p.target = target
	}
	uid, err := p.uid()
	if err != nil {
		return err
	}
	pids, err := processes()
	if err != nil {
		return err
	}
	p.others = pids
	for _, pid := range pids {
		if _, known := slices.BinarySearch(others, pid); known {
			continue
		}
		if len(p.held) == heldMax {
			p.others = nil // there may be more
			break
		}
		if slices.ContainsFunc(p.held, func(held *process) bool { return held.pid == pid }) || !p.matches(pid, uid) {
			continue
		}
		found, err := watchProcess(pid, p.ended)
		if errors.Is(err, syscall.ESRCH) {
			continue
		}
		if err != nil {
			return fmt.Errorf("watch process %d: %w", pid, err)
		}
		if !p.matches(pid, uid) { // its number became that of another one, before it was opened
			found.close()
			continue
		}
		p.held = append(p.held, found)
	}
	if len(p.held) == 0 {
		return notFound()
	}
	return nil
}

// hiddenHint is what to do if processes of other users cannot be seen.
const hiddenHint = "the unit of topdog hides the processes of other users: run `systemctl edit topdog`, " +
	"add the lines [Service] and ProtectProc=default, and run `systemctl restart topdog`"

// notFound says that there is no process, or that none can be seen: the first process of all is always there.
func notFound() error {
	if _, err := os.Stat("/proc/1"); err != nil {
		return errors.New(hiddenHint)
	}
	return errors.New("there is no such process")
}

// anyUser as a number of a user means that it does not matter.
const anyUser = -1

// uid returns the number of the user whose processes count.
func (p *execProber) uid() (int, error) {
	if p.user == "" {
		return anyUser, nil
	}
	if number, err := strconv.Atoi(p.user); err == nil {
		return number, nil
	}
	u, err := user.Lookup(p.user)
	if err != nil {
		return 0, fmt.Errorf("there is no user %s", p.user)
	}
	return strconv.Atoi(u.Uid)
}

// processes returns the numbers of all processes that can be seen, the oldest first as far as
// the numbers tell.
func processes() ([]int, error) {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return nil, err
	}
	var pids []int
	for _, name := range names {
		if pid, err := strconv.Atoi(name); err == nil {
			pids = append(pids, pid)
		}
	}
	slices.Sort(pids)
	return pids, nil
}

// matches reports whether a process is one of the program. The kernel tells nobody but root which file a process
// of another user runs. Then it goes by what the process calls itself: by the words of its command line,
// of which the second one is a script's, or by its name, for a server that has rewritten them.
func (p *execProber) matches(pid, uid int) bool {
	dir := "/proc/" + strconv.Itoa(pid)
	if uid != anyUser {
		info, err := os.Stat(dir)
		if err != nil {
			return false
		}
		if owner, ok := info.Sys().(*syscall.Stat_t); !ok || int(owner.Uid) != uid {
			return false
		}
	}
	exe, hidden := os.Readlink(dir + "/exe")
	exe = strings.TrimSuffix(exe, " (deleted)") // an update has replaced the file
	if hidden == nil && exe == p.path {
		return p.runs(dir)
	}
	line, err := os.ReadFile(dir + "/cmdline")
	if err != nil || len(line) == 0 {
		return false // it has ended, or is a part of the kernel
	}
	words := strings.Split(string(line), "\x00")
	if hidden == nil && exe == p.target && slices.Contains([]string{filepath.Base(exe), filepath.Base(words[0])}, filepath.Base(p.path)) {
		return p.runs(dir) // by a symbolic link; one program may have many, with other names
	}
	if slices.Contains(words[:min(2, len(words))], p.path) && (hidden != nil || words[0] != p.path) {
		return p.runs(dir)
	}
	if hidden == nil || filepath.IsAbs(words[0]) { // it tells that it is another one
		return false
	}
	name, err := os.ReadFile(dir + "/comm")
	return err == nil && strings.TrimSpace(string(name)) == commOf(p.path) && p.runs(dir)
}

// runs reports whether a process has not ended. One that waits for its parent to notice has.
func (p *execProber) runs(dir string) bool {
	stat, err := os.ReadFile(dir + "/stat")
	if err != nil {
		return false
	}
	_, rest, found := strings.Cut(string(stat[strings.LastIndexByte(string(stat), ')')+1:]), " ")
	return found && !strings.HasPrefix(rest, "Z") && !strings.HasPrefix(rest, "X")
}

// commMax is how much of a program's name the kernel keeps (TASK_COMM_LEN, less the final NUL).
const commMax = 15

// commOf is the name of a process that runs a program.
func commOf(path string) string {
	name := filepath.Base(path)
	return name[:min(len(name), commMax)]
}
