package netio

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"

	"golang.org/x/sys/unix"

	"topdog/wire"
)

// heldSockets are the sockets of a group that a holder keeps open while the daemon starts anew. So nobody
// else can bind to the port meanwhile, and no switch forgets the group.
type heldSockets struct {
	options   Options
	tag       wire.GroupTag
	index     int // of the interface when they were opened
	sockets   []int
	admission kernelAdmission
	// unlimited is why no program in the kernel limits what comes.
	unlimited string
}

// provide has the sockets of such a Conn open: fresh ones, though they may have the addresses of those that are open.
func (h *heldSockets) provide(o Options, tag wire.GroupTag) (err error) {
	if h.are(o, tag) {
		return h.renew()
	}
	h.close()
	*h, err = openHeld(o, tag)
	return err
}

// openSender opens a socket that sends as that of the group does, but from a port of its own: the one of the group must be
// free when the daemon has ended and is started again.
func openSender(o Options, index int) (*os.File, error) {
	socket, err := openSocket(o, index, netip.AddrPortFrom(o.Local, 0), PathUnicast)
	if err != nil {
		return nil, err
	}
	defer socket.Close()
	return socket.File()
}

// openHeld opens the sockets of a Conn, as files that nothing reads.
func openHeld(o Options, tag wire.GroupTag) (held heldSockets, err error) {
	held = heldSockets{options: o, tag: tag}
	c, err := held.openSockets()
	if err != nil || tag == 0 {
		return held, err
	}
	// Where the kernel has no such programs, the readers do it.
	if held.admission, err = newKernelAdmission(c.binds(), networkOf(o), tag, c.index, os.Geteuid()); err != nil {
		held.unlimited = err.Error()
	}
	return held, nil
}

// networkOf returns this board's address with the prefix length of its network, or an invalid one.
func networkOf(o Options) netip.Prefix {
	own, err := prefixesOn(o.Interface)
	if i := slices.IndexFunc(own, func(p netip.Prefix) bool { return p.Addr() == o.Local && !p.IsSingleIP() }); err == nil && i >= 0 {
		return own[i]
	}
	return netip.Prefix{}
}

// openSockets opens the sockets, and returns the Conn that they are of, which is closed.
func (h *heldSockets) openSockets() (*Conn, error) {
	c, err := Open(h.options)
	if err != nil {
		return nil, err
	}
	// The runtime would be woken by each packet that arrives. It lets go of what a Conn closes.
	defer c.Close()
	var files []int
	for _, socket := range c.sockets {
		raw, err := socket.SyscallConn()
		if err != nil {
			closeAll(files)
			return nil, err
		}
		copied := -1
		if failed := raw.Control(func(fd uintptr) { copied, err = unix.FcntlInt(fd, unix.F_DUPFD_CLOEXEC, 0) }); failed != nil || err != nil {
			closeAll(files)
			return nil, fmt.Errorf("netio: keep the sockets on %s: %w", h.options.Interface, errors.Join(failed, err))
		}
		files = append(files, copied)
	}
	h.index, h.sockets = c.index, files
	return c, nil
}

// renew replaces the sockets by others with the same addresses. What the daemon before has set on a socket stays for as long as that is
// open: if somebody had taken the daemon over, a filter that drops everything and cannot be removed, for example. Those before are
// closed when the others are there: so nobody else can bind to the port, and this host remains in the group.
func (h *heldSockets) renew() error {
	former := h.sockets
	for _, socket := range former {
		if err := setReusePort(socket, true); err != nil {
			return err
		}
	}
	h.options.replaces = true
	defer func() { h.options.replaces = false }()
	if _, err := h.openSockets(); err != nil {
		return err
	}
	closeAll(former)
	for _, socket := range h.sockets {
		if err := setReusePort(socket, false); err != nil {
			return err
		}
	}
	return nil
}

// files are what the daemon is given.
func (h *heldSockets) files() []int {
	if h.admission.array == 0 {
		return h.sockets
	}
	return append(slices.Clip(h.sockets), h.admission.array)
}

// are reports whether these are the sockets of such a Conn in that group, on the interface as it is now.
func (h *heldSockets) are(o Options, tag wire.GroupTag) bool {
	former := &h.options
	if len(h.sockets) == 0 || former.Interface != o.Interface || former.Local != o.Local || former.Group != o.Group ||
		!slices.Equal(former.Floating, o.Floating) || h.tag != tag {
		return false
	}
	link, err := net.InterfaceByName(o.Interface)
	return err == nil && link.Index == h.index
}

func (h *heldSockets) close() {
	h.admission.detach()
	closeAll(h.files())
	*h = heldSockets{}
}

// takeOver returns a Conn of sockets that openHeld has opened with the same options. It takes the files over.
func takeOver(o Options, files []int, unlimited string) (*Conn, error) {
	c, err := newConn(o)
	if err == nil {
		c.admission.unlimited = unlimited
		err = c.takeOver(files)
	} else {
		closeAll(files)
	}
	if err != nil {
		return nil, fmt.Errorf("netio: take over the sockets on %s: %w", o.Interface, err)
	}
	return c, nil
}

func (c *Conn) takeOver(files []int) error {
	defer closeAll(files) // the runtime works on duplicates
	binds := c.binds()
	if n := len(files) - len(binds); n < 0 || n > 1 {
		return fmt.Errorf("%d sockets were given instead of %d", len(files), len(binds))
	}
	link, err := net.InterfaceByName(c.options.Interface)
	if err != nil {
		return fmt.Errorf("%w (no such interface)", ErrLinkDown)
	}
	c.index = link.Index
	for i, bind := range binds {
		discard(files[i])
		if err := c.takeOverSocket(files[i], bind); err != nil {
			_ = c.Close()
			return err
		}
	}
	if len(files) > len(binds) {
		return c.share(files[len(binds)])
	}
	return nil
}

func (c *Conn) takeOverSocket(fd int, b bind) error {
	copied, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return os.NewSyscallError("fcntl", err)
	}
	file := os.NewFile(uintptr(copied), "udp "+b.to.String())
	defer file.Close()
	packets, err := net.FilePacketConn(file)
	if err != nil {
		return err
	}
	socket, ok := packets.(*net.UDPConn)
	if !ok {
		packets.Close()
		return errors.New("one of them is no UDP socket")
	}
	return c.add(socket, b.path)
}

// discardMax bounds what is thrown away: more than a socket has room for, and a flood ends it all the same.
const discardMax = 4096

// discard throws away what a socket has received while nobody read it. It was said to the daemon before.
func discard(fd int) {
	var b [1]byte
	for range discardMax {
		if _, _, err := unix.Recvfrom(fd, b[:], unix.MSG_DONTWAIT|unix.MSG_TRUNC); err != nil {
			return
		}
	}
}

// bind is an address that one of the sockets is bound to, and the way by which something comes there.
type bind struct {
	to   netip.AddrPort
	path Path
}

// binds are those of all sockets, in the order in which they are opened.
func (c *Conn) binds() []bind {
	all := []bind{{c.self, PathUnicast}, {c.options.Group, PathMulticast}, {c.broadcast, PathBroadcast}}
	for _, addr := range c.options.Floating {
		all = append(all, bind{netip.AddrPortFrom(addr.Unmap(), c.self.Port()), PathFloating})
	}
	return all
}
