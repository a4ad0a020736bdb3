package netio

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Deadman is a dead man's switch: a companion process that removes the floating
// addresses, and tells the other boards so, when the daemon no longer can. It notices
// that the daemon was killed when the daemon's end of a socket closes, and that it is
// frozen when its lease runs out, which it extends with every heartbeat. It also keeps the
// fence closed until the addresses are gone, if the daemon was killed.
//
// In the steady state the companion sleeps. The lease is memory that both processes
// share, and so is the timer that would wake the companion: an extension costs the
// daemon one system call and wakes nobody.
//
// The methods are for one goroutine, but for Exited.
type Deadman struct {
	command *exec.Cmd
	socket  int
	fence   *Fence

	exited chan struct{}
	err    error // of the companion; good when exited is closed
	close  sync.Once
}

// The files that a companion finds open.
const (
	companionSocket = 3 + iota
	companionTimer
	companionMemory
)

// StartDeadman starts a companion that shares the lease of a fence: command is a program of
// which the main function calls AttendDeadman at once. Its environment keeps it small.
func StartDeadman(command []string, f *Fence) (*Deadman, error) {
	d := &Deadman{socket: -1, fence: f, exited: make(chan struct{})}
	if err := d.start(command); err != nil {
		d.closeSocket()
		return nil, fmt.Errorf("netio: start the dead man's switch: %w", err)
	}
	return d, nil
}

func (d *Deadman) start(command []string) error {
	// A copy, since the file that is handed to a child is closed by its finalizer.
	copied, err := unix.FcntlInt(uintptr(d.fence.timer), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return os.NewSyscallError("fcntl", err)
	}
	timer := os.NewFile(uintptr(copied), "timer")
	defer timer.Close()
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return os.NewSyscallError("socketpair", err)
	}
	d.socket = pair[0]
	theirs := os.NewFile(uintptr(pair[1]), "socket")
	defer theirs.Close()

	d.command = exec.Command(command[0], command[1:]...)
	d.command.Args[0] = filepath.Base(os.Args[0]) // what ps shows, instead of /proc/self/exe
	d.command.ExtraFiles = []*os.File{theirs, timer, d.fence.file}
	d.command.Stderr = os.Stderr
	// One processor is enough for a process that does one thing, and a collector that
	// never runs wakes nobody. The limit makes it run after all, should the memory grow.
	d.command.Env = append(os.Environ(), "GOMAXPROCS=1", "GOGC=off", "GOMEMLIMIT=8MiB")
	// A process group of its own: what a terminal sends to the daemon is not for it.
	d.command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := d.command.Start(); err != nil {
		return err
	}
	go func() {
		d.err = d.command.Wait()
		close(d.exited)
	}()
	return nil
}

// Exited is closed when the companion has ended, which it must not before Close.
func (d *Deadman) Exited() <-chan struct{} { return d.exited }

// PID is the companion's process.
func (d *Deadman) PID() int { return d.command.Process.Pid }

// Prepare gives the companion its plan. It must be called before the first lease begins, and again
// whenever anything of the plan changes during a lease. The companion acts when the daemon has ended during a
// lease, or when the lease runs out.
func (d *Deadman) Prepare(p ReleasePlan) error {
	if err := p.send(d.socket, d.fence); err != nil {
		return fmt.Errorf("netio: prepare the dead man's switch: %w", err)
	}
	return nil
}

// closeWithin bounds how long Close waits for the companion.
const closeWithin = time.Second

// dismissal is the message that ends a companion.
var dismissal = []byte("end")

// Close ends the companion, which then releases nothing, and waits for it.
func (d *Deadman) Close() error {
	d.close.Do(func() {
		// A companion that has ended cannot be told.
		_ = unix.Sendmsg(d.socket, dismissal, nil, nil, unix.MSG_NOSIGNAL)
		d.closeSocket()
		select {
		case <-d.exited:
		case <-time.After(closeWithin):
			d.command.Process.Kill()
			<-d.exited
		}
	})
	if d.err != nil {
		return fmt.Errorf("netio: the dead man's switch ended with: %w", d.err)
	}
	return nil
}

func (d *Deadman) closeSocket() {
	if d.socket >= 0 {
		unix.Close(d.socket)
	}
	d.socket = -1
}
