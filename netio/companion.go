package netio

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/signal"
	"runtime"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// companion is the other end of a Deadman.
type companion struct {
	lease  lease
	handle *netlink.Handle
	plan   ReleasePlan
	// files came with the plan: the socket that sends the RESIGN, and the bundle of the TUN device and the
	// fence's programs, as far as there are such.
	files []int
	told  bool // that the addresses cannot be removed

	program program // what can be dropped from memory
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
	c.program = loadedProgram()
	return c.attend()
}

// attend waits for plans, for the timer, and for the end of the daemon.
func (c *companion) attend() error {
	waits := []unix.PollFd{{Fd: companionSocket, Events: unix.POLLIN}, {Fd: companionTimer, Events: unix.POLLIN}}
	for {
		c.program.drop()
		switch _, err := unix.Poll(waits, -1); {
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil:
			return fmt.Errorf("netio: dead man's switch: poll: %w", err)
		}
		// The plans first: the last one counts.
		switch end, err := c.receivePlans(); {
		case err != nil:
			return err
		case end == daemonDismisses:
			return nil
		case end == daemonEnded:
			return c.daemonEnded()
		}
		if waits[1].Revents != 0 && c.lease.expire() {
			c.release()
		}
	}
}

// daemonEnded does the rest when the daemon has ended. The fence is there for as long as this
// process is.
func (c *companion) daemonEnded() error {
	switch former := c.lease.word.load(); former {
	case leaseIdle:
		return nil
	case leaseFired:
		// It has ended in the middle of a release, or after this process has seen to it and
		// before it knew.
		if err := c.removeAddresses(); err == nil {
			return nil
		}
	default:
		c.lease.put(leaseFired)
	}
	return c.release()
}

// How the daemon has ended, if it has.
type daemonEnd int

const (
	daemonRuns daemonEnd = iota
	daemonDismisses
	daemonEnded
)

// receivePlans reads what the daemon has sent, and reports whether it has ended.
func (c *companion) receivePlans() (end daemonEnd, err error) {
	message, rights := make([]byte, maxPlanBytes), make([]byte, unix.CmsgSpace(maxPlanFiles*4))
	for {
		n, controls, _, _, err := unix.Recvmsg(companionSocket, message, rights, unix.MSG_CMSG_CLOEXEC|unix.MSG_DONTWAIT)
		switch {
		case errors.Is(err, unix.EAGAIN):
			return daemonRuns, nil
		case errors.Is(err, unix.EINTR):
			continue
		case errors.Is(err, unix.ECONNRESET), err == nil && n == 0:
			return daemonEnded, nil
		case err != nil:
			return daemonRuns, fmt.Errorf("netio: dead man's switch: receive: %w", err)
		case string(message[:n]) == string(dismissal):
			return daemonDismisses, nil
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

// How often, and for how long, an address is removed that the kernel does not let go of. Its
// lifetime is over by then.
const (
	removeEvery = 50 * time.Millisecond
	removeFor   = 10 * time.Second
)

// release removes the addresses, and tells the other boards afterwards: whoever takes over
// must be the only one. They are told sooner if the fence is closed, since nobody reaches
// this board by the addresses then.
func (c *companion) release() error {
	err := c.removeAddresses()
	if err == nil || c.plan.Fenced {
		c.resign()
	}
	for start := Now(); err != nil && Now()-start < removeFor; err = c.removeAddresses() {
		if !c.told {
			c.told = true
			fmt.Fprintln(os.Stderr, err)
		}
		_, _ = unix.Poll(nil, int(removeEvery.Milliseconds()))
	}
	if err == nil && c.told && !c.plan.Fenced {
		c.resign()
	}
	c.told = false
	return err
}

// removeAddresses removes the addresses of the plan that are there, by the label that they have according to
// the plan. It looks only for those that are not there by that one: the plan may be of the time before.
// Before Linux 6.9 or so a listing waits for the same lock of the kernel as a removal, and the RESIGN
// would wait for both.
func (c *companion) removeAddresses() error {
	missing, err := c.remove(c.planned())
	if len(missing) == 0 {
		return err
	}
	_, missed := c.remove(c.present(missing))
	return errors.Join(err, missed)
}

// labelled is an address as the kernel has it.
type labelled struct {
	addr  netip.Addr
	label string
}

// planned returns the addresses of the plan, with its label.
func (c *companion) planned() (all []labelled) {
	for _, addr := range c.plan.Addresses {
		all = append(all, labelled{addr, c.plan.Label})
	}
	return all
}

// present returns the addresses as they are on the plan's device. One that is not listed is returned
// with any label: the kernel may be at adding it for a daemon that was frozen there.
func (c *companion) present(addresses []netip.Addr) (found []labelled) {
	listed, _ := listAddrs(c.handle) // if that fails, none is listed
	for _, addr := range addresses {
		label := ""
		for _, a := range listed {
			p, ok := prefixOf(a.IPNet)
			if ok && p.IsSingleIP() && p.Addr() == addr && a.LinkIndex == c.plan.Link {
				label = a.Label
			}
		}
		found = append(found, labelled{addr, label})
	}
	return found
}

// remove removes addresses, and returns those that are not there by their label. It stops if the
// daemon knows by now that the lease was ended: then it has released them itself, and one that is
// here was acquired since and must stay. That may become so between the look at the word and the
// removal, for instance if this process stands still there. So each is removed by the label that it
// had before the look. An address that is acquired later has another one, see heldLabel. Only one that was
// neither there by the label of the plan nor listed goes by any: if that should be a later one, the daemon
// puts it back.
func (c *companion) remove(addresses []labelled) (missing []netip.Addr, err error) {
	var failed []error
	for _, a := range addresses {
		if c.lease.word.load() != leaseFired {
			return nil, errors.Join(failed...)
		}
		err := removeAddress(c.handle, c.plan.Link, a.addr, a.label)
		switch {
		case errors.Is(err, unix.EADDRNOTAVAIL):
			missing = append(missing, a.addr)
		case err != nil && !isGone(err):
			failed = append(failed, fmt.Errorf("netio: dead man's switch: remove %s: %w", a.addr, err))
		}
	}
	return missing, errors.Join(failed...)
}

// resign sends the pre-signed RESIGN several times.
func (c *companion) resign() {
	c.sendResign()
	for _, d := range resignPauses {
		_, _ = unix.Poll(nil, int(d.Milliseconds()))
		c.sendResign()
	}
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
