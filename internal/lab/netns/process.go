package netns

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/prometheus/procfs"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
)

const (
	// outputGrace is how long Wait waits for the rest of the output of a
	// process that has ended. Only a child that it left behind with the same
	// stdout or stderr keeps the output open longer.
	outputGrace = 250 * time.Millisecond

	// strayTimeout bounds how long Close waits for killed processes to
	// leave their namespaces.
	strayTimeout = 5 * time.Second
)

// Process is a child process whose network is that of a host.
type Process struct {
	PID int

	cmd     *exec.Cmd
	exited  chan struct{} // closed when the process has ended and err is set
	err     error
	drained chan struct{} // closed when the last writer of its output has gone
}

// StartOption alters what Host.Start is about to run.
type StartOption func(*command)

// command is a program, and how it is to run.
type command struct {
	*exec.Cmd
	nice int
}

// Stdout lets the process write its standard output to w; without it the
// output is discarded. Writes come from a goroutine of the lab.
func Stdout(w io.Writer) StartOption { return func(c *command) { c.Stdout = patient(w) } }

// Stderr is like Stdout for standard error. If both are the same w, then
// Write is called by one goroutine at a time.
func Stderr(w io.Writer) StartOption { return func(c *command) { c.Stderr = patient(w) } }

// patient has the process go on writing when the writer has had enough.
func patient(w io.Writer) io.Writer {
	if _, isFile := w.(*os.File); isFile {
		return w // the process can have it directly
	}
	return patientWriter{w}
}

type patientWriter struct{ io.Writer }

func (w patientWriter) Write(b []byte) (int, error) {
	_, _ = w.Writer.Write(b)
	return len(b), nil
}

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
	return func(c *command) { c.SysProcAttr.Credential = &syscall.Credential{Uid: id, Gid: id} }
}

// Start starts a program in the host's network namespace. The process is
// killed when ctx ends, when the LAN is closed, and by the kernel when this
// process dies. It has a process group of its own, so that Ctrl-C on the
// terminal reaches this process alone.
func (h *Host) Start(ctx context.Context, path string, args []string, opts ...StartOption) (*Process, error) {
	cmd := &command{Cmd: exec.CommandContext(ctx, path, args...)}
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
	for _, opt := range opts {
		opt(cmd)
	}

	p := &Process{cmd: cmd.Cmd, exited: make(chan struct{}), drained: make(chan struct{})}
	if err := p.start(h, cmd); err != nil {
		return nil, fmt.Errorf("netns: %s: start %s: %w", h.Name, path, err)
	}
	return p, nil
}

// start starts the program on a thread of its own.
func (p *Process) start(h *Host, cmd *command) error {
	started := make(chan error, 1)
	goOnOwnThread(func() {
		err := h.lan.whileOpen(func() error {
			if err := h.enter(); err != nil {
				return err
			}
			if cmd.nice != 0 { // it inherits the priority of this thread, which is nobody else's
				if err := unix.Setpriority(unix.PRIO_PROCESS, 0, cmd.nice); err != nil {
					return fmt.Errorf("set the priority to %d: %w", cmd.nice, err)
				}
			}
			if err := cmd.Cmd.Start(); err != nil {
				return err
			}
			p.PID = cmd.Process.Pid
			h.lan.startedMu.Lock()
			defer h.lan.startedMu.Unlock()
			h.lan.processes = append(h.lan.processes, p)
			return nil
		})
		started <- err
		if err != nil {
			return
		}
		// The kernel sends the parent-death signal when the *thread* that
		// made the child ends. So this thread stays until the child is gone.
		state, err := cmd.Process.Wait()
		if err == nil && !state.Success() {
			err = &exec.ExitError{ProcessState: state}
		}
		p.err = err
		close(p.exited)
		// That the process has ended is known. This waits for its output, which is not cut off: a child that the process
		// left behind (to clean up after it, say) would die of SIGPIPE.
		_ = cmd.Wait()
		close(p.drained)
	})
	return <-started
}

// Kill ends the process as kill -9 does. It is os.ErrProcessDone if it had
// ended before.
func (p *Process) Kill() error { return p.cmd.Process.Kill() }

// Signal sends a signal, for instance SIGSTOP, to the process alone (not to
// its children), and after SIGSTOP waits until it stands still. It is os.ErrProcessDone if it had ended before.
func (p *Process) Signal(sig os.Signal) error {
	if err := p.cmd.Process.Signal(sig); err != nil || sig != unix.SIGSTOP {
		return err
	}
	return awaitStill(p.PID)
}

// Freeze has a process stand still: SIGSTOP comes back before all of its threads do, and one of them may still answer meanwhile.
func Freeze(pid int) error {
	if err := unix.Kill(pid, unix.SIGSTOP); err != nil {
		return fmt.Errorf("netns: stop process %d: %w", pid, err)
	}
	return awaitStill(pid)
}

// awaitStill waits until no thread of a process runs that was told to stop. One that has ended meanwhile has none.
func awaitStill(pid int) error {
	for deadline := time.Now().Add(strayTimeout); ; time.Sleep(100 * time.Microsecond) {
		threads, err := procfs.AllThreads(pid)
		switch {
		case errors.Is(err, os.ErrNotExist):
			return nil
		case err != nil:
			return fmt.Errorf("netns: see whether process %d stands still: %w", pid, err)
		case !slices.ContainsFunc(threads, runs):
			return nil
		case time.Now().After(deadline):
			return fmt.Errorf("netns: process %d still runs %s after SIGSTOP", pid, strayTimeout)
		}
	}
}

// runs reports whether a thread neither stands still nor has ended.
func runs(thread procfs.Proc) bool {
	stat, err := thread.Stat()
	return err == nil && !strings.Contains("TtZX", stat.State)
}

// Exited is closed when the process has ended.
func (p *Process) Exited() <-chan struct{} { return p.exited }

// Wait waits for the process to end and for its output to be written. The
// error is as of exec.Cmd.Wait. Any number of callers may wait.
func (p *Process) Wait() error {
	<-p.exited
	p.awaitOutput()
	return p.err
}

// awaitOutput waits for the rest of the output, unless somebody still has it open; see outputGrace.
func (p *Process) awaitOutput() {
	select {
	case <-p.drained:
	case <-time.After(outputGrace):
	}
}

// endStrays kills all processes in the given namespaces and waits until they
// are gone. This process itself is never in one: only threads of it that are
// about to end. A process may fork between being found and being killed, so it looks again.
func endStrays(namespaces []netns.NsHandle) error {
	for deadline := time.Now().Add(strayTimeout); ; time.Sleep(time.Millisecond) {
		found, err := processesIn(namespaces...)
		switch {
		case err != nil:
			return fmt.Errorf("netns: look for processes left in the lab: %w", err)
		case len(found) == 0:
			return nil
		case time.Now().After(deadline):
			return fmt.Errorf("netns: the processes %v, which were left in the lab, are still alive %s after SIGKILL", found, strayTimeout)
		}
		for _, pid := range found {
			_ = unix.Kill(pid, unix.SIGKILL) // it may have ended meanwhile
		}
	}
}

// Processes returns the processes whose network is that of the host, in no
// particular order: what was started there, and whatever that has started. A
// child whose parent has died still counts.
func (h *Host) Processes() (found []int, err error) {
	err = h.lan.whileOpen(func() (err error) {
		found, err = processesIn(h.ns)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("netns: %s: list its processes: %w", h.Name, err)
	}
	return found, nil
}

// processesIn returns the other processes in any of the namespaces.
func processesIn(namespaces ...netns.NsHandle) (found []int, err error) {
	ours := make(map[string]bool) // as namespaces(7) names them
	for _, ns := range namespaces {
		name, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", int(ns)))
		if err != nil {
			return nil, err
		}
		ours[name] = true
	}
	all, err := procfs.AllProcs()
	for _, p := range all {
		// An error means that the process has ended meanwhile.
		network, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/net", p.PID))
		if err == nil && ours[network] && p.PID != os.Getpid() {
			found = append(found, p.PID)
		}
	}
	return found, err
}

// EachThread does something to each thread of a process: priorities and processors are those of threads in Linux, and a
// new thread has those of the one that makes it. A thread that has ended meanwhile is no error.
func EachThread(pid int, do func(thread int) error) error {
	threads, err := procfs.AllThreads(pid)
	for _, t := range threads {
		if err := do(t.PID); err != nil && !errors.Is(err, unix.ESRCH) {
			return err
		}
	}
	return err
}
