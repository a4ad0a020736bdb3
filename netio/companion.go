package netio

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"strings"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// companion is the other end of a Deadman.
type companion struct {
	lease  lease
	handle *netlink.Handle
	plan   ReleasePlan
	// files came with the plan: the socket that sends the RESIGN, if there is one, and
	// the TUN device, if there is one.
	files []int

	program []span // what can be dropped from memory
}

// AttendDeadman is the whole life of a companion process. It returns when the daemon has
// ended, and the addresses that it held then are gone. The files are inherited from
// StartDeadman; without them the error says so.
func AttendDeadman() error {
	// The daemon decides when to go. A service manager that ends it signals every process
	// of the service.
	signal.Ignore(unix.SIGTERM, unix.SIGINT, unix.SIGHUP, unix.SIGQUIT, unix.SIGABRT, unix.SIGPIPE)
	runtime.LockOSThread()
	kind, err := unix.GetsockoptInt(companionSocket, unix.SOL_SOCKET, unix.SO_TYPE)
	if err != nil || kind != unix.SOCK_SEQPACKET {
		return errors.New("this is a part of `topdog run`, which starts it: it is of no use by itself")
	}
	for _, fd := range []int{companionSocket, companionTimer, companionMemory} {
		unix.CloseOnExec(fd)
	}
	// The name of the process; only for people, so it does not matter if it fails.
	_ = os.WriteFile("/proc/self/comm", []byte("topdog-deadman"), 0)
	c := &companion{lease: lease{timer: companionTimer}}
	if err := c.lease.mapWord(companionMemory); err != nil {
		return fmt.Errorf("netio: dead man's switch: %w", err)
	}
	if c.handle, err = openHandle(); err != nil {
		return err
	}
	// What cannot be read is not dropped.
	smaps, _ := os.ReadFile("/proc/self/smaps")
	c.program = programText(string(smaps))
	return c.attend()
}

// attend waits for plans, for the timer, and for the end of the daemon.
func (c *companion) attend() error {
	waits := []unix.PollFd{{Fd: companionSocket, Events: unix.POLLIN}, {Fd: companionTimer, Events: unix.POLLIN}}
	for {
		c.dropProgram()
		switch _, err := unix.Poll(waits, -1); {
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil:
			return fmt.Errorf("netio: dead man's switch: poll: %w", err)
		}
		// The plans first: the last one counts.
		ended, err := c.receivePlans()
		switch {
		case ended:
			// Whatever the lease says, unless there is nothing to release.
			if end := c.lease.word.Load(); end != leaseIdle && end != leaseFired {
				c.lease.word.Store(leaseFired)
				return c.release()
			}
			return nil
		case err != nil:
			return err
		}
		if waits[1].Revents != 0 && c.lease.expire() {
			if err := c.release(); err != nil {
				return err
			}
		}
	}
}

// receivePlans reads what the daemon has sent, and reports whether it has ended.
func (c *companion) receivePlans() (ended bool, err error) {
	message, rights := make([]byte, maxPlanBytes), make([]byte, unix.CmsgSpace(2*4))
	for {
		n, controls, _, _, err := unix.Recvmsg(companionSocket, message, rights, unix.MSG_CMSG_CLOEXEC|unix.MSG_DONTWAIT)
		switch {
		case errors.Is(err, unix.EAGAIN):
			return false, nil
		case errors.Is(err, unix.EINTR):
			continue
		case errors.Is(err, unix.ECONNRESET), err == nil && n == 0:
			return true, nil
		case err != nil:
			return false, fmt.Errorf("netio: dead man's switch: receive: %w", err)
		}
		c.replacePlan(message[:n], rights[:controls])
	}
}

// replacePlan reads a plan. One that cannot be read comes from another version of this
// program, which does not happen, since both processes run the same file.
func (c *companion) replacePlan(message, rights []byte) {
	former := c.files
	c.files, c.plan = nil, ReleasePlan{}
	if json.Unmarshal(message, &c.plan) != nil {
		c.plan = ReleasePlan{}
	}
	if controls, err := unix.ParseSocketControlMessage(rights); err == nil && len(controls) > 0 {
		c.files, _ = unix.ParseUnixRights(&controls[0])
	}
	// The former files last: a device that is in both plans is open all the time.
	for _, fd := range former {
		unix.Close(fd)
	}
}

// resignPauses are the times between copies of the RESIGN: a datagram may be lost.
var resignPauses = [...]time.Duration{2 * time.Millisecond, 5 * time.Millisecond, 15 * time.Millisecond}

// release removes the addresses, and tells the other boards afterwards.
func (c *companion) release() error {
	var failed []error
	for _, a := range c.plan.Addresses {
		if c.lease.word.Load() != leaseFired {
			// The daemon knows by now, and has released the addresses itself. One that is
			// here was acquired since, and must stay.
			break
		}
		if err := removeAddress(c.handle, c.plan.Link, a); err != nil {
			failed = append(failed, fmt.Errorf("netio: dead man's switch: remove %s: %w", a, err))
		}
	}
	if len(failed) > 0 {
		// Whoever took over now would be the second holder, so nobody is told.
		return errors.Join(failed...)
	}
	c.sendResign()
	for _, d := range resignPauses {
		_, _ = unix.Poll(nil, int(d.Milliseconds()))
		c.sendResign()
	}
	return nil
}

// sendResign sends the pre-signed RESIGN to all. Where it does not arrive, the other boards
// find out by themselves, as after a pulled plug.
func (c *companion) sendResign() {
	if len(c.plan.Resign) == 0 || len(c.files) == 0 {
		return
	}
	for _, to := range c.plan.To {
		if !to.Addr().Is4() {
			continue
		}
		_ = unix.Sendto(c.files[0], c.plan.Resign, unix.MSG_DONTWAIT, &unix.SockaddrInet4{Port: int(to.Port()), Addr: to.Addr().As4()})
	}
}

// span is a part of the address space.
type span struct{ from, to uintptr }

// programText returns the parts of memory that are as they are in the program's file: they
// cannot be written to, and were not. A position-independent program, or a library, has
// others, which were written to when it was loaded, before they were protected.
// smaps is /proc/self/smaps.
func programText(smaps string) (text []span) {
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

// dropProgram drops the program's pages. A start and a plan have used most of 7 MB of them;
// a process that only waits needs nearly none. What is needed again is still in memory,
// since the daemon runs the same file.
func (c *companion) dropProgram() {
	for _, s := range c.program {
		_, _, _ = unix.Syscall(unix.SYS_MADVISE, s.from, s.to-s.from, unix.MADV_DONTNEED)
	}
}
