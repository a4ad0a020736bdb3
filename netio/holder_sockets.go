package netio

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"sync"

	"golang.org/x/sys/unix"

	"topdog/wire"
)

// boardSockets are the sockets of all groups of a board, which share the port.
type boardSockets struct {
	mu     sync.Mutex // held while sockets are opened or closed
	groups map[wire.GroupTag]*heldSockets
}

// of returns those of a group.
func (b *boardSockets) of(tag wire.GroupTag) *heldSockets {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.groups == nil {
		b.groups = map[wire.GroupTag]*heldSockets{}
	}
	if b.groups[tag] == nil {
		b.groups[tag] = &heldSockets{board: b}
	}
	return b.groups[tag]
}

// keep closes the sockets of all groups but those with these tags.
func (b *boardSockets) keep(tags ...wire.GroupTag) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for tag, held := range b.groups {
		if !slices.Contains(tags, tag) {
			held.shut()
			delete(b.groups, tag)
		}
	}
}

// quieten closes the sockets to which comes what is sent to this board alone of groups that no daemon has, if a daemon has another
// group with the same address. The kernel would deliver there what is for that group if they were opened last, and nobody reads it.
func (b *boardSockets) quieten() {
	for _, held := range b.groups {
		if held.used || held.quiet || len(held.sockets) == 0 {
			continue
		}
		for _, other := range b.groups {
			if other.used && other.options.self() == held.options.self() {
				closeAll(held.sockets[:1]) // see binds
				held.sockets, held.quiet = held.sockets[1:], true
				break
			}
		}
	}
}

// sharePort sets whether others may bind to the port, see setReusePort.
func (b *boardSockets) sharePort(may bool) error {
	for _, held := range b.groups {
		for _, socket := range held.sockets {
			if err := setReusePort(socket, may); err != nil {
				return err
			}
		}
	}
	return nil
}

// heldSockets are the sockets of a group. A holder keeps them open while the daemon restarts, so that nobody else can
// bind to the port meanwhile, and no switch forgets that this host is in the group.
type heldSockets struct {
	board     *boardSockets
	options   Options
	tag       wire.GroupTag
	others    []wire.GroupTag // of the board's other groups
	index     int             // of the interface at the time when they were opened
	sockets   []int
	used      bool // a daemon has them
	quiet     bool // the first one is closed, see boardSockets.quieten
	admission kernelAdmission
	// unlimited is why no program in the kernel limits what arrives; "" if one does.
	unlimited string
}

// provide opens the sockets of such a Conn: always fresh ones, even if the open ones have the same addresses. Only
// meanwhile, others of this user may bind to the port: the former sockets and those of the other groups are bound to it.
func (h *heldSockets) provide(o Options, tag wire.GroupTag, others []wire.GroupTag) (err error) {
	h.board.mu.Lock()
	defer h.board.mu.Unlock()
	defer func() { err = errors.Join(err, h.board.sharePort(false)) }()
	if err := h.board.sharePort(true); err != nil {
		return err
	}
	if len(others) > 0 {
		o.Tag = tag
	}
	if h.are(o, tag, others) {
		err = h.renew()
	} else {
		h.shut()
		h.options, h.tag, h.others = o, tag, others
		err = h.open()
	}
	h.used = err == nil
	h.board.quieten()
	return err
}

// rest keeps the sockets for the next daemon.
func (h *heldSockets) rest() {
	h.board.mu.Lock()
	defer h.board.mu.Unlock()
	h.used = false
	h.board.quieten()
}

// openSender opens a socket that sends as the group's does, but from a port of its own: the group's port must be free
// when the daemon is restarted.
func openSender(o Options, index int) (*os.File, error) {
	socket, err := openSocket(o, index, netip.AddrPortFrom(o.Local, 0), PathUnicast)
	if err != nil {
		return nil, err
	}
	defer socket.Close()
	return socket.File()
}

// open opens the sockets of a Conn, as bare descriptors that nobody reads.
func (h *heldSockets) open() error {
	c, err := h.openSockets()
	if err != nil || h.tag == 0 {
		return err
	}
	p := admissionProgram{sockets: c.binds(), network: networkOf(h.options), tag: h.tag, others: h.others}
	// If the kernel has no such programs, the daemon's readers limit what arrives.
	if h.admission, err = p.attach(c.index, os.Geteuid()); err != nil {
		h.unlimited = err.Error()
	}
	return nil
}

// networkOf returns this board's address with the prefix length of its network, or an invalid one.
func networkOf(o Options) netip.Prefix {
	own, err := prefixesOn(o.Interface)
	if i := slices.IndexFunc(own, func(p netip.Prefix) bool { return p.Addr() == o.Local && !p.IsSingleIP() }); err == nil && i >= 0 {
		return own[i]
	}
	return netip.Prefix{}
}

// openSockets opens the sockets by a Conn, keeps copies of their descriptors, and returns the closed Conn.
func (h *heldSockets) openSockets() (*Conn, error) {
	o := h.options
	o.replaces = true
	c, err := Open(o)
	if err != nil {
		return nil, err
	}
	// If the Conn stayed open, each packet that arrives would wake the Go runtime.
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
	h.index, h.sockets, h.quiet = c.index, files, false
	return c, nil
}

// renew replaces the sockets by fresh ones with the same addresses. Otherwise the options that the previous daemon set
// on them would remain: a daemon that was taken over could have attached a filter that drops everything and cannot be
// removed. The old ones are closed once the new ones are open, so that nobody else can bind to the port, and this host
// stays in the group.
func (h *heldSockets) renew() error {
	former := h.sockets
	if _, err := h.openSockets(); err != nil {
		return err
	}
	closeAll(former)
	return nil
}

// files are the descriptors that the daemon is given: the sockets, and the memory of the admission program if there is one.
func (h *heldSockets) files() []int {
	if h.admission.array == 0 {
		return h.sockets
	}
	return append(slices.Clip(h.sockets), h.admission.array)
}

// are reports whether these are the sockets of such a Conn, and the interface is still the same.
func (h *heldSockets) are(o Options, tag wire.GroupTag, others []wire.GroupTag) bool {
	former := &h.options
	if len(h.sockets) == 0 || former.Interface != o.Interface || former.Local != o.Local || former.Group != o.Group ||
		!slices.Equal(former.Floating, o.Floating) || h.tag != tag || !slices.Equal(h.others, others) {
		return false
	}
	link, err := net.InterfaceByName(o.Interface)
	return err == nil && link.Index == h.index
}

func (h *heldSockets) close() {
	h.board.mu.Lock()
	defer h.board.mu.Unlock()
	h.shut()
}

// shut is close for a caller who has the board's lock.
func (h *heldSockets) shut() {
	h.admission.detach()
	closeAll(h.files())
	*h = heldSockets{board: h.board}
}

// takeOver returns a Conn of the sockets that a holder has opened with the same options. It takes ownership of the files.
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
	defer closeAll(files) // the Go runtime works on duplicates
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

// bind is the address that a socket is bound to, and the path by which datagrams arrive there.
type bind struct {
	to   netip.AddrPort
	path Path
}

// binds lists the binds of all sockets, in the order in which they are opened.
func (c *Conn) binds() []bind {
	all := []bind{{c.self, PathUnicast}, {c.options.Group, PathMulticast}, {c.broadcast, PathBroadcast}}
	four, _ := byFamily(c.options.Floating)
	for _, addr := range four {
		all = append(all, bind{netip.AddrPortFrom(addr, c.self.Port()), PathFloating})
	}
	return all
}
