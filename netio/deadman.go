package netio

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Deadman is a dead man's switch: a companion process that lets go of the floating
// addresses, and says so with a last will, when the daemon no longer can. A daemon
// that is killed is missed when its end of a socket closes, and one that is frozen when
// its lease runs out, which it extends with every heartbeat.
//
// In the steady state the companion sleeps. The lease is a word of memory that both
// processes share, and the alarm that would wake the companion is a timerfd that
// they share too, so an extension costs the daemon one system call and wakes nobody.
// Both ends change the word by compare-and-swap: either the lease was extended
// before it ran out, or it has run out and the daemon is told, never both.
//
// The methods are for one goroutine, but for Exited.
type Deadman struct {
	command *exec.Cmd
	socket  int
	alarm   int
	word    *atomic.Uint32
	memory  []byte
	lease   uint32 // what the word was set to last

	exited chan struct{}
	err    error // of the companion; good when exited is closed
	close  sync.Once
}

// The lease is the moment at which it runs out (see leaseAt), or one of these.
//
// It has 32 bits since a Raspberry Pi Zero cannot swap 64 of them at once: what Go does
// there instead locks out the threads of its own process, and no other one.
const (
	leaseIdle    = iota // there is nothing to let go of
	leaseFired          // the companion has taken over
	leaseForever        // only the daemon's end ends it
	leaseFirst          // no moment is less
)

// leaseAt is a moment on CLOCK_MONOTONIC, given in nanoseconds: in microseconds, of which
// 32 bits are kept. They repeat after 71 minutes, and a lease lasts for seconds; for
// whether it has run out, the alarm is asked.
func leaseAt(t int64) uint32 { return max(uint32(t/int64(time.Microsecond)), leaseFirst) }

// The files that a companion finds open.
const (
	deadmanSocket = 3 + iota
	deadmanAlarm
	deadmanMemory
)

// ReleasePlan is what there is to let go of, and whom to tell.
type ReleasePlan struct {
	// Link is the index of the device that has the addresses.
	Link      int
	Addresses []netip.Addr
	// Resign is a datagram that was signed beforehand, nil for none. It is sent to all of To.
	Resign []byte
	To     []netip.AddrPort
	// From is the Conn whose options the socket has that sends it.
	From *Conn `json:"-"`
	// device is the open TUN device, if there is one. The companion keeps it open as
	// well: to take a device down costs the kernel some 20 ms, for which a
	// killed process would hold on to its end of the socket.
	device *os.File
}

// maxEstate bounds the message that carries an estate: a will, and the addresses of
// 255 peers in JSON.
const maxEstate = 16 << 10

// StartDeadman starts a companion: command is a program of which the main function
// calls AttendDeadman at once. Its environment keeps it small.
func StartDeadman(command []string) (*Deadman, error) {
	d := &Deadman{socket: -1, alarm: -1, exited: make(chan struct{})}
	if err := d.start(command); err != nil {
		d.release()
		return nil, fmt.Errorf("netio: start the dead man's switch: %w", err)
	}
	return d, nil
}

func (d *Deadman) start(command []string) error {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return os.NewSyscallError("socketpair", err)
	}
	d.socket = pair[0]
	theirs := os.NewFile(uintptr(pair[1]), "socket")
	defer theirs.Close()
	if d.alarm, err = unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_CLOEXEC|unix.TFD_NONBLOCK); err != nil {
		return os.NewSyscallError("timerfd_create", err)
	}
	memory, err := unix.MemfdCreate("topdog-lease", unix.MFD_CLOEXEC)
	if err != nil {
		return os.NewSyscallError("memfd_create", err)
	}
	shared := os.NewFile(uintptr(memory), "lease")
	defer shared.Close()
	if err := shared.Truncate(int64(os.Getpagesize())); err != nil {
		return err
	}
	if d.memory, d.word, err = mapLease(memory); err != nil {
		return err
	}
	// A copy, since the file that is handed to a child is closed by its finalizer.
	alarm, err := unix.FcntlInt(uintptr(d.alarm), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return os.NewSyscallError("fcntl", err)
	}
	theirAlarm := os.NewFile(uintptr(alarm), "alarm")
	defer theirAlarm.Close()

	d.command = exec.Command(command[0], command[1:]...)
	d.command.Args[0] = filepath.Base(os.Args[0]) // what ps shows, instead of /proc/self/exe
	d.command.ExtraFiles = []*os.File{theirs, theirAlarm, shared}
	d.command.Stderr = os.Stderr
	// One processor is enough for a process that does one thing, and a collector
	// that never runs wakes nobody; the limit is for the day on which it would be needed.
	d.command.Env = append(os.Environ(), "GOMAXPROCS=1", "GOGC=off", "GOMEMLIMIT=8MiB")
	// Of its own process group: what a terminal sends to the daemon is not for it.
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

// mapLease maps the word that both processes share.
func mapLease(fd int) ([]byte, *atomic.Uint32, error) {
	memory, err := unix.Mmap(fd, 0, os.Getpagesize(), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, nil, os.NewSyscallError("mmap", err)
	}
	return memory, (*atomic.Uint32)(unsafe.Pointer(&memory[0])), nil
}

// Exited is closed when the companion has ended, which it must not before Close.
func (d *Deadman) Exited() <-chan struct{} { return d.exited }

// PID is the companion's process.
func (d *Deadman) PID() int { return d.command.Process.Pid }

// Prepare tells the companion what there is to let go of, and with what. It must be done before
// Arm, and again whenever anything of it changes.
func (d *Deadman) Prepare(e ReleasePlan) error {
	message, err := json.Marshal(e)
	if err != nil {
		return fmt.Errorf("netio: tell the dead man's switch: %w", err)
	}
	if len(message) > maxEstate {
		return fmt.Errorf("netio: tell the dead man's switch: %d bytes are too long (at most %d)", len(message), maxEstate)
	}
	var files []int
	if e.From != nil {
		spare, err := e.From.spare()
		if err != nil {
			return fmt.Errorf("netio: open a socket for the last will: %w", err)
		}
		defer spare.Close()
		files = append(files, int(spare.Fd()))
	}
	if e.device != nil {
		files = append(files, int(e.device.Fd()))
	}
	var rights []byte
	if len(files) > 0 {
		rights = unix.UnixRights(files...)
	}
	if err := unix.Sendmsg(d.socket, message, rights, nil, unix.MSG_NOSIGNAL); err != nil {
		return fmt.Errorf("netio: tell the dead man's switch: %w", err)
	}
	return nil
}

// spare opens a socket that sends as the Conn does, but from a port of its own: the one of
// the group must be free when the daemon has ended and is started again.
func (c *Conn) spare() (*os.File, error) {
	socket, err := openSocket(c.options, c.index, netip.AddrPortFrom(c.options.Local, 0), false)
	if err != nil {
		return nil, err
	}
	defer socket.Close()
	return socket.File()
}

// Arm begins a lease: the companion lets go when the daemon has ended, or at Extend's deadline.
func (d *Deadman) Arm() {
	d.lease = leaseForever
	d.word.Store(leaseForever)
}

// Disarm ends the lease, and reports whether that was in peace: false means that
// it has run out before.
func (d *Deadman) Disarm() (inPeace bool) {
	d.lease = leaseIdle
	return d.word.Swap(leaseIdle) != leaseFired
}

// Extend moves the end of the lease to that long from now, or to never if it is 0. It
// reports false if the lease has run out: then the addresses are gone, or
// about to go, and the will speaks for this board.
func (d *Deadman) Extend(by time.Duration) bool {
	next := uint32(leaseForever)
	if by > 0 {
		end := monotonic() + int64(by)
		next = leaseAt(end)
		// The alarm comes before the word; see companion.expire. It fails only for a
		// descriptor or a time that is none.
		_ = unix.TimerfdSettime(d.alarm, unix.TFD_TIMER_ABSTIME, &unix.ItimerSpec{Value: unix.NsecToTimespec(end)}, nil)
	}
	if !d.word.CompareAndSwap(d.lease, next) {
		return false
	}
	d.lease = next
	return true
}

// Fired reports whether an armed lease has run out.
func (d *Deadman) Fired() bool { return d.word.Load() == leaseFired }

// monotonic reads the clock of the lease, on which both processes agree.
func monotonic() int64 {
	var t unix.Timespec
	// The clock exists on every Linux, so there is no error.
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &t)
	return t.Nano()
}

// closeWithin bounds how long Close waits for the companion.
const closeWithin = time.Second

// Close ends the companion in peace, and waits for it.
func (d *Deadman) Close() error {
	d.close.Do(func() {
		d.word.Store(leaseIdle)
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
	for _, fd := range []int{d.socket, d.alarm} {
		if fd >= 0 {
			unix.Close(fd)
		}
	}
	if d.memory != nil {
		_ = unix.Munmap(d.memory)
	}
}
