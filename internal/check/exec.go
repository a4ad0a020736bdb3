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

	"golang.org/x/sys/unix"
)

// execProber passes while a process of a program runs. If a user is configured, only that user's processes count. The
// prober searches /proc for such a process and watches it by its pidfd. When the process has ended, it searches again.
type execProber struct {
	path, user string
	target     string // of path, if that is a symbolic link
	ended      chan struct{}
	held       *process // nil if none is known
}

func newExecProber(c *Check) *execProber {
	return &execProber{path: c.Target, user: c.User, ended: make(chan struct{}, 1)}
}

func (p *execProber) changes() <-chan struct{} { return p.ended }

func (p *execProber) close() {
	if p.held != nil {
		p.held.close()
	}
	p.held = nil
}

func (p *execProber) probe(context.Context) error {
	last := p.held
	if last != nil && last.lives() {
		return nil
	}
	p.close()
	err := p.search() // a server that updates itself starts a new process, and ends
	if err != nil && last != nil {
		return endedError("its process", last.pid)
	}
	return err
}

// search looks for a process of the program.
func (p *execProber) search() error {
	p.target, _ = filepath.EvalSymlinks(p.path)
	uid, err := p.uid()
	if err != nil {
		return err
	}
	pids, err := processes()
	if err != nil {
		return err
	}
	for _, pid := range pids {
		if !p.matches(pid, uid) {
			continue
		}
		found, err := watchProcess(pid, p.ended)
		if errors.Is(err, syscall.ESRCH) {
			continue
		}
		if err != nil {
			return fmt.Errorf("watch process %d: %w", pid, err)
		}
		// The process may have ended without its parent having noticed yet. Or it ended before it was opened, and another
		// process has its PID now.
		if !found.lives() || !p.matches(pid, uid) {
			found.close()
			continue
		}
		p.held = found
		return nil
	}
	return notFound()
}

// hiddenHint says what to do if the processes of other users are hidden.
const hiddenHint = "the unit of topdog hides the processes of other users: run `systemctl edit topdog`, " +
	"add the lines [Service] and ProtectProc=default, and run `systemctl restart topdog`"

// notFound says that there is no such process, or that processes are hidden. PID 1 always exists, so if it
// isn't there it is hidden.
func notFound() error {
	if _, err := os.Stat("/proc/1"); err != nil {
		return errors.New(hiddenHint)
	}
	return errors.New("there is no such process")
}

// anyUser stands for all users.
const anyUser = -1

// uid returns the ID of the user whose processes count.
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

// processes returns the PIDs of all visible processes, as the kernel lists them: in ascending order, so mostly the oldest
// first, which is the main process of a service.
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
	return pids, nil
}

// matches reports whether a process runs the program. Only root may see which file the process of another user runs. If the
// file cannot be seen, the command line counts, whose second word may be a script, or the name of the process if it has
// rewritten its command line.
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
	exe = strings.TrimSuffix(exe, " (deleted)") // after an update of the file
	if hidden == nil && exe == p.path {
		return true
	}
	line, err := os.ReadFile(dir + "/cmdline")
	if err != nil || len(line) == 0 {
		return false // it has ended, or is a kernel thread
	}
	words := strings.Split(string(line), "\x00")
	names := []string{filepath.Base(exe), filepath.Base(words[0])}
	if hidden == nil && exe == p.target && slices.Contains(names, filepath.Base(p.path)) {
		return true // through a symbolic link; one program may have several, of different names
	}
	if slices.Contains(words[:min(2, len(words))], p.path) && (hidden != nil || words[0] != p.path) {
		return true
	}
	if hidden == nil || filepath.IsAbs(words[0]) { // it says that it runs another program
		return false
	}
	name, err := os.ReadFile(dir + "/comm")
	return err == nil && strings.TrimSpace(string(name)) == commOf(p.path)
}

// commMax is how much of a program's name the kernel keeps, in bytes (TASK_COMM_LEN without the final NUL).
const commMax = 15

// commOf returns the kernel's name for a process that runs this program.
func commOf(path string) string {
	name := filepath.Base(path)
	return name[:min(len(name), commMax)]
}

// process is a watched process. Its pidfd stands for the process itself, while another process may get its PID later.
type process struct {
	pid  int
	file *os.File // the pidfd
}

// watchProcess watches a process until close, and notifies ended when the process ends. After this call the caller must
// check again that the PID still belongs to the process that it means.
func watchProcess(pid int, ended chan<- struct{}) (*process, error) {
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return nil, os.NewSyscallError("pidfd_open", err)
	}
	// PIDFD_NONBLOCK would do this in one call, but needs Linux 5.10.
	if err := unix.SetNonblock(fd, true); err != nil {
		unix.Close(fd)
		return nil, os.NewSyscallError("fcntl", err)
	}
	p := &process{pid: pid, file: os.NewFile(uintptr(fd), "process")}
	raw, err := p.file.SyscallConn()
	if err != nil {
		p.file.Close()
		return nil, err
	}
	go func() {
		// A pidfd becomes readable when the process has ended (pidfd_open(2)).
		if raw.Read(func(fd uintptr) bool { return readable(int(fd)) }) == nil {
			notify(ended)
		}
	}()
	return p, nil
}

// readable reports whether a pidfd says that its process has ended.
func readable(fd int) bool { return poll(fd, unix.POLLIN, 0) }

// poll waits for one of these events, or for the end of a connection. It waits for at most within milliseconds, or for ever
// if within is negative.
func poll(fd int, events int16, within int) bool {
	for {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: events}}, within)
		if !errors.Is(err, unix.EINTR) {
			return n > 0
		}
	}
}

// lives reports whether the process has not ended.
func (p *process) lives() bool {
	raw, err := p.file.SyscallConn()
	if err != nil {
		return false
	}
	ended := true
	_ = raw.Control(func(fd uintptr) { ended = readable(int(fd)) })
	return !ended
}

func (p *process) close() { p.file.Close() }

// endedError says that a process has ended, and what it was.
func endedError(what string, pid int) error { return fmt.Errorf("%s %d has ended", what, pid) }

// notify wakes the waiter, now or when it waits next. It never blocks.
func notify(waiter chan<- struct{}) {
	select {
	case waiter <- struct{}{}:
	default:
	}
}
