package netns

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
)

const (
	// outputGrace is how long Wait waits for the rest of the output of a
	// process that has ended. Only a child that it left behind with the same
	// stdout or stderr keeps the output open longer.
	outputGrace = 250 * time.Millisecond

	// strayTimeout bounds how long Close waits for one killed process to
	// leave a namespace.
	strayTimeout = 5 * time.Second
)

// Process is a child process whose network is that of a host.
type Process struct {
	PID int

	cmd     *exec.Cmd
	exited  chan struct{} // closed when the process has ended and err is set
	err     error
	outputs []*os.File // read ends of its stdout and stderr
	drained chan struct{}
}

// StartOption alters what Host.Start is about to run.
type StartOption func(*command)

// command is a program, and how it is to run.
type command struct {
	*exec.Cmd
	nice int
	user *syscall.Credential // nil for that of this process
}

// Stdout lets the process write its standard output to w; without it the
// output is discarded. Writes come from a goroutine of the lab.
func Stdout(w io.Writer) StartOption { return func(c *command) { c.Stdout = w } }

// Stderr is like Stdout for standard error. If both are the same w, then
// Write is called by one goroutine at a time.
func Stderr(w io.Writer) StartOption { return func(c *command) { c.Stderr = w } }

// Env adds "NAME=value" settings to the environment that the process inherits.
func Env(settings ...string) StartOption {
	return func(c *command) { c.Env = append(c.Environ(), settings...) }
}

// Files gives the process open files, as descriptors 3 and on. They stay open here.
func Files(files ...*os.File) StartOption { return func(c *command) { c.ExtraFiles = files } }

// Nice gives the process a priority, as Nice= of systemd.exec(5) does.
func Nice(nice int) StartOption { return func(c *command) { c.nice = nice } }

// User has the process belong to another user and to the group of the same number, so that it has no capability.
func User(id uint32) StartOption {
	return func(c *command) { c.user = &syscall.Credential{Uid: id, Gid: id} }
}

// Start starts a program in the host's network namespace. The process is
// killed when ctx ends, when the LAN is closed, and by the kernel when this
// process dies. It has a process group of its own, so that Ctrl-C on the
// terminal reaches this process alone.
func (h *Host) Start(ctx context.Context, path string, args []string, opts ...StartOption) (*Process, error) {
	cmd := &command{Cmd: exec.CommandContext(ctx, path, args...)}
	for _, opt := range opts {
		opt(cmd)
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true, Credential: cmd.user}

	p := &Process{cmd: cmd.Cmd, exited: make(chan struct{}), drained: make(chan struct{})}
	copies, err := p.redirect()
	if err != nil {
		return nil, fmt.Errorf("netns: %s: start %s: %w", h.Name, path, err)
	}
	started := make(chan error, 1)
	goOnOwnThread(func() {
		err := h.lan.whileOpen(func() error {
			if err := h.enter(); err != nil {
				return err
			}
			if err := cmd.start(); err != nil {
				return err
			}
			p.PID = cmd.Process.Pid
			h.lan.processes.add(p)
			return nil
		})
		closeWriteEnds(copies)
		started <- err
		if err != nil {
			return
		}
		// The kernel sends the parent-death signal when the *thread* that
		// made the child ends. So this thread stays until the child is gone.
		p.err = cmd.Wait()
		close(p.exited)
	})
	err = <-started
	go func() {
		p.drain(copies)
		if err == nil {
			<-p.exited
			h.lan.processes.remove(p)
		}
	}()
	if err != nil {
		return nil, fmt.Errorf("netns: %s: start %s: %w", h.Name, path, err)
	}
	return p, nil
}

// start starts the program. It inherits the priority of the calling thread, which is nobody else's.
func (c *command) start() error {
	if c.nice != 0 {
		if err := unix.Setpriority(unix.PRIO_PROCESS, 0, c.nice); err != nil {
			return fmt.Errorf("set the priority to %d: %w", c.nice, err)
		}
	}
	return c.Start()
}

// Kill ends the process as kill -9 does. It is os.ErrProcessDone if it had
// ended before.
func (p *Process) Kill() error { return p.cmd.Process.Kill() }

// Signal sends a signal, for instance SIGSTOP, to the process alone (not to
// its children). It is os.ErrProcessDone if it had ended before.
func (p *Process) Signal(sig os.Signal) error { return p.cmd.Process.Signal(sig) }

// Exited is closed when the process has ended.
func (p *Process) Exited() <-chan struct{} { return p.exited }

// Wait waits for the process to end and for its output to be written. The
// error is as of exec.Cmd.Wait. Any number of callers may wait.
func (p *Process) Wait() error {
	<-p.exited
	t := time.NewTimer(outputGrace)
	defer t.Stop()
	select {
	case <-p.drained:
	case <-t.C: // Its children still have the output open; see outputGrace.
	}
	return p.err
}

// outputCopy carries one stream of output from a pipe to a writer.
type outputCopy struct {
	to          io.Writer
	read, write *os.File
}

// redirect replaces the command's writers by pipes. exec.Cmd would do so too,
// but it closes them soon after the process has ended, and a child that the
// process left behind (to clean up after it, say) would die of SIGPIPE.
func (p *Process) redirect() ([]*outputCopy, error) {
	var copies []*outputCopy
	pipe := func(w io.Writer) (io.Writer, error) {
		if _, isFile := w.(*os.File); w == nil || isFile {
			return w, nil // The process can have it directly.
		}
		r, wr, err := os.Pipe()
		if err != nil {
			return nil, err
		}
		copies = append(copies, &outputCopy{to: w, read: r, write: wr})
		p.outputs = append(p.outputs, r)
		return wr, nil
	}
	same := sameWriter(p.cmd.Stdout, p.cmd.Stderr)
	var err error
	if p.cmd.Stdout, err = pipe(p.cmd.Stdout); err == nil {
		if same {
			p.cmd.Stderr = p.cmd.Stdout
		} else {
			p.cmd.Stderr, err = pipe(p.cmd.Stderr)
		}
	}
	if err != nil {
		for _, c := range copies {
			c.read.Close()
			c.write.Close()
		}
	}
	return copies, err
}

// sameWriter compares two writers. Comparing values of an uncomparable type
// panics; such a writer is the same as no other.
func sameWriter(a, b io.Writer) (same bool) {
	defer func() { _ = recover() }()
	return a == b
}

// closeWriteEnds leaves the write ends to the process alone.
func closeWriteEnds(copies []*outputCopy) {
	for _, c := range copies {
		c.write.Close()
	}
}

// drain copies all output until its last writer has gone.
func (p *Process) drain(copies []*outputCopy) {
	var wg sync.WaitGroup
	for _, c := range copies {
		wg.Go(func() {
			defer c.read.Close()
			if _, err := io.Copy(c.to, c.read); err != nil {
				// The writer has had enough. The process must be able to
				// go on writing nevertheless.
				_, _ = io.Copy(io.Discard, c.read)
			}
		})
	}
	wg.Wait()
	close(p.drained)
}

// abandonOutput ends the copying even if somebody still has the pipe open.
func (p *Process) abandonOutput() {
	for _, r := range p.outputs {
		_ = r.SetReadDeadline(time.Now().Add(outputGrace))
	}
	<-p.drained
}

// endStrays kills all processes in the given namespaces and waits until they
// are gone. This process itself is never in one: only threads of it that are
// about to end.
func endStrays(namespaces []netns.NsHandle) error {
	ours := make(map[namespaceID]bool)
	for _, ns := range namespaces {
		id, err := identify(ns)
		if err != nil {
			return fmt.Errorf("netns: look for processes left in the lab: %w", err)
		}
		ours[id] = true
	}
	// A process may fork between being found and being killed, so look
	// again until nobody is found.
	const rounds = 10
	for range rounds {
		found, err := findProcesses(ours)
		if err != nil {
			return fmt.Errorf("netns: look for processes left in the lab: %w", err)
		}
		if len(found) == 0 {
			return nil
		}
		for _, pid := range found {
			if err := endStray(pid, ours); err != nil {
				return fmt.Errorf("netns: end process %d, which was left in the lab: %w", pid, err)
			}
		}
	}
	return errors.New("netns: processes in the lab start new ones faster than they can be ended")
}

// namespaceID identifies a namespace among all that exist (ioctl_ns(2)).
type namespaceID struct {
	dev uint64
	ino uint64
}

// identify returns the identity of a namespace that is open.
func identify(ns netns.NsHandle) (namespaceID, error) {
	var st unix.Stat_t
	err := unix.Fstat(int(ns), &st)
	return namespaceID{st.Dev, st.Ino}, err
}

// networkOf returns the network namespace of a process.
func networkOf(pid int) (namespaceID, error) {
	var st unix.Stat_t
	err := unix.Stat("/proc/"+strconv.Itoa(pid)+"/ns/net", &st)
	return namespaceID{st.Dev, st.Ino}, err
}

func findProcesses(in map[namespaceID]bool) ([]int, error) {
	proc, err := os.Open("/proc")
	if err != nil {
		return nil, err
	}
	defer proc.Close()
	names, err := proc.Readdirnames(-1)
	if err != nil {
		return nil, err
	}
	var found []int
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil || pid == os.Getpid() {
			continue
		}
		// An error means that the process has ended meanwhile.
		if id, err := networkOf(pid); err == nil && in[id] {
			found = append(found, pid)
		}
	}
	return found, nil
}

// endStray kills one process by a descriptor rather than by its number, which
// could belong to another process by the time of the kill.
func endStray(pid int, in map[namespaceID]bool) error {
	fd, err := unix.PidfdOpen(pid, 0)
	if errors.Is(err, unix.ESRCH) {
		return nil
	}
	if err != nil {
		return os.NewSyscallError("pidfd_open", err)
	}
	defer unix.Close(fd)
	if id, err := networkOf(pid); err != nil || !in[id] {
		return nil // The number was another process's already.
	}
	if err := unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0); err != nil {
		if errors.Is(err, unix.ESRCH) {
			return nil
		}
		return os.NewSyscallError("pidfd_send_signal", err)
	}
	return waitReadable(fd, strayTimeout)
}

// waitReadable waits until a process descriptor says that the process ended.
func waitReadable(fd int, timeout time.Duration) error {
	deadline := time.Now().Add(timeout)
	for {
		left := time.Until(deadline)
		if left <= 0 {
			return fmt.Errorf("still alive %s after SIGKILL", timeout)
		}
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, int(left.Milliseconds())+1)
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return os.NewSyscallError("poll", err)
		case n > 0:
			return nil
		}
	}
}
