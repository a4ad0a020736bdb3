package netio

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"strings"
	"sync/atomic"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

const (
	// asleepTogether is by how much the companion must be late itself to conclude
	// that not the daemon but the machine stood still. Linux wakes a process whose time
	// has come within a fraction of it.
	asleepTogether = 2 * time.Millisecond
	// awakening is how long the daemon then gets to speak for itself, once. It is
	// awake by then, and knows better than a will what is to be done.
	awakening = 4 * time.Millisecond
)

// willRepeats are the pauses before the will is said again: a datagram may be lost.
var willRepeats = [...]time.Duration{2 * time.Millisecond, 5 * time.Millisecond, 15 * time.Millisecond}

// companion is the other end of a Deadman.
type companion struct {
	word   *atomic.Uint32
	handle *netlink.Handle
	estate ReleasePlan
	// files came with the estate: the socket for the will, if there is a will, and
	// the TUN device, if there is one.
	files []int

	program []span // what can be dropped from memory
}

// AttendDeadman is the whole life of a companion process: it returns when the daemon
// has ended, and what it left behind was settled. The files are inherited from
// StartDeadman; without them the error says so.
func AttendDeadman() error {
	// The daemon is who decides when to go. A service manager that ends it signals
	// every process of the service.
	signal.Ignore(unix.SIGTERM, unix.SIGINT, unix.SIGHUP, unix.SIGQUIT, unix.SIGABRT, unix.SIGPIPE)
	runtime.LockOSThread()
	kind, err := unix.GetsockoptInt(deadmanSocket, unix.SOL_SOCKET, unix.SO_TYPE)
	if err != nil || kind != unix.SOCK_SEQPACKET {
		return errors.New("this is a part of `topdog run`, which starts it: it is of no use by itself")
	}
	for _, fd := range []int{deadmanSocket, deadmanAlarm, deadmanMemory} {
		unix.CloseOnExec(fd)
	}
	// The name of the process; only for people, so it does not matter if it fails.
	_ = os.WriteFile("/proc/self/comm", []byte("topdog-deadman"), 0)
	c := new(companion)
	if _, c.word, err = mapLease(deadmanMemory); err != nil {
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

// span is a part of the address space.
type span struct{ from, to uintptr }

// forget drops the program's pages, of which a start and an estate have used most of
// 7 MB, so that the companion is as small as what it does: to wait. What is needed
// again is still in memory, since the daemon is the same file.
func (c *companion) forget() {
	for _, s := range c.program {
		_, _, _ = unix.Syscall(unix.SYS_MADVISE, s.from, s.to-s.from, unix.MADV_DONTNEED)
	}
}

// attend waits for news, for the alarm, and for the end of the daemon.
func (c *companion) attend() error {
	waits := []unix.PollFd{{Fd: deadmanSocket, Events: unix.POLLIN}, {Fd: deadmanAlarm, Events: unix.POLLIN}}
	for {
		c.forget()
		switch _, err := unix.Poll(waits, -1); {
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil:
			return fmt.Errorf("netio: dead man's switch: poll: %w", err)
		}
		// News first: the last of it says what there is to let go of.
		ended, err := c.listen()
		switch {
		case ended:
			// Whatever the lease says, unless it says that all is well.
			if lease := c.word.Load(); lease != leaseIdle && lease != leaseFired {
				c.word.Store(leaseFired)
				return c.settle()
			}
			return nil
		case err != nil:
			return err
		}
		if waits[1].Revents != 0 && c.expire(deadmanAlarm) {
			if err := c.settle(); err != nil {
				return err
			}
		}
	}
}

// expire ends a lease that has run out, unless the daemon comes before. The word is
// looked at before the alarm is, which the daemon sets before the word: so if the alarm
// has rung, and the word has not changed when it is swapped, nobody has extended the lease.
func (c *companion) expire(alarm int) bool {
	lease := c.word.Load()
	var count [8]byte
	if _, err := unix.Read(alarm, count[:]); err != nil {
		return false // it was set anew meanwhile
	}
	if lease < leaseFirst {
		return false // it rang for a lease that is over
	}
	if late := int32(leaseAt(monotonic()) - lease); time.Duration(late)*time.Microsecond > asleepTogether {
		_, _ = unix.Poll(nil, int(awakening.Milliseconds()))
	}
	return c.word.CompareAndSwap(lease, leaseFired)
}

// listen takes in what the daemon has said, and reports whether it has ended.
func (c *companion) listen() (ended bool, err error) {
	message, rights := make([]byte, maxEstate), make([]byte, unix.CmsgSpace(2*4))
	for {
		n, controls, _, _, err := unix.Recvmsg(deadmanSocket, message, rights, unix.MSG_CMSG_CLOEXEC|unix.MSG_DONTWAIT)
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
		c.inherit(message[:n], rights[:controls])
	}
}

// inherit takes in an estate. One that cannot be read comes from another version of
// this program, which does not happen, since both are the same file.
func (c *companion) inherit(message, rights []byte) {
	former := c.files
	c.files, c.estate = nil, ReleasePlan{}
	if json.Unmarshal(message, &c.estate) != nil {
		c.estate = ReleasePlan{}
	}
	if controls, err := unix.ParseSocketControlMessage(rights); err == nil && len(controls) > 0 {
		c.files, _ = unix.ParseUnixRights(&controls[0])
	}
	// The former files last, so that a device that was kept is never closed by all.
	for _, fd := range former {
		unix.Close(fd)
	}
}

// settle lets go of the addresses first, and says so then.
func (c *companion) settle() error {
	var failed []error
	for _, a := range c.estate.Addresses {
		if c.word.Load() != leaseFired {
			// The daemon knows by now, and has let go itself. An address that is here was
			// taken since, and is nobody's to remove.
			break
		}
		err := c.handle.AddrDel(nil, &netlink.Addr{LinkIndex: c.estate.Link, IPNet: hostNet(a)})
		if err != nil && !errors.Is(err, unix.EADDRNOTAVAIL) && !errors.Is(err, unix.ENODEV) {
			failed = append(failed, fmt.Errorf("netio: dead man's switch: remove %s: %w", a, err))
		}
	}
	if len(failed) > 0 {
		// Whoever took over now would be the second holder: no will.
		return errors.Join(failed...)
	}
	c.bequeath()
	for _, d := range willRepeats {
		_, _ = unix.Poll(nil, int(d.Milliseconds()))
		c.bequeath()
	}
	return nil
}

// bequeath says the will. What is lost is repeated, and what cannot be said is
// found out by the others, as after a pulled plug.
func (c *companion) bequeath() {
	if len(c.estate.Resign) == 0 || len(c.files) == 0 {
		return
	}
	for _, to := range c.estate.To {
		if !to.Addr().Is4() {
			continue
		}
		_ = unix.Sendto(c.files[0], c.estate.Resign, unix.MSG_DONTWAIT, &unix.SockaddrInet4{Port: int(to.Port()), Addr: to.Addr().As4()})
	}
}
