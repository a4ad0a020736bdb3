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
// frozen when its lease runs out, which it extends with every heartbeat.
//
// In the steady state the companion sleeps. The lease is memory that both processes
// share, and so is the timer that would wake the companion: an extension costs the
// daemon one system call and wakes nobody.
//
// The methods are for one goroutine, but for Exited.
type Deadman struct {
	command *exec.Cmd
	socket  int
	lease   lease
	set     uint32 // what the lease was set to last

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

// StartDeadman starts a companion: command is a program of which the main function
// calls AttendDeadman at once. Its environment keeps it small.
func StartDeadman(command []string) (*Deadman, error) {
	d := &Deadman{socket: -1, exited: make(chan struct{})}
	if err := d.start(command); err != nil {
		d.release()
		return nil, fmt.Errorf("netio: start the dead man's switch: %w", err)
	}
	return d, nil
}

func (d *Deadman) start(command []string) error {
	var memory *os.File
	var err error
	if d.lease, memory, err = newLease(); err != nil {
		return err
	}
	defer memory.Close()
	// A copy, since the file that is handed to a child is closed by its finalizer.
	copied, err := unix.FcntlInt(uintptr(d.lease.timer), unix.F_DUPFD_CLOEXEC, 0)
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
	d.command.ExtraFiles = []*os.File{theirs, timer, memory}
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

// Prepare gives the companion its plan. It must be called before Arm, and again whenever
// anything of the plan changes.
func (d *Deadman) Prepare(p ReleasePlan) error {
	if err := p.send(d.socket); err != nil {
		return fmt.Errorf("netio: prepare the dead man's switch: %w", err)
	}
	return nil
}

// Arm begins a lease: the companion acts when the daemon has ended, or when a lease that
// was extended runs out.
func (d *Deadman) Arm() {
	d.set = leaseForever
	d.lease.word.Store(leaseForever)
}

// Disarm ends the lease. It reports false if the lease has run out before.
func (d *Deadman) Disarm() bool {
	d.set = leaseIdle
	return d.lease.word.Swap(leaseIdle) != leaseFired
}

// NoEnd is the end of a lease that only the daemon's end ends.
const NoEnd time.Duration = 1<<63 - 1

// Extend moves the end of the lease to a moment on the clock of Now, or to NoEnd. It
// reports false if the lease has run out: then the addresses are gone, or about to go, and
// the companion sends the pre-signed RESIGN.
func (d *Deadman) Extend(end time.Duration) bool {
	next := uint32(leaseForever)
	if end != NoEnd {
		next = leaseAt(end)
		d.lease.wakeAt(end) // before the word changes; see lease.expire
	}
	if !d.lease.word.CompareAndSwap(d.set, next) {
		return false
	}
	d.set = next
	return true
}

// Fired reports whether an armed lease has run out.
func (d *Deadman) Fired() bool { return d.lease.word.Load() == leaseFired }

// closeWithin bounds how long Close waits for the companion.
const closeWithin = time.Second

// Close ends the companion, which then releases nothing, and waits for it.
func (d *Deadman) Close() error {
	d.close.Do(func() {
		d.lease.word.Store(leaseIdle)
		unix.Close(d.socket)
		d.socket = -1
		select {
		case <-d.exited:
		case <-time.After(closeWithin):
			d.command.Process.Kill()
			<-d.exited
		}
		d.release()
	})
	if d.err != nil {
		return fmt.Errorf("netio: the dead man's switch ended with: %w", d.err)
	}
	return nil
}

// release gives back what the daemon's end has.
func (d *Deadman) release() {
	if d.socket >= 0 {
		unix.Close(d.socket)
	}
	d.lease.close()
}
