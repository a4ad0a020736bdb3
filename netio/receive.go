package netio

import (
	"encoding/binary"
	"errors"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"topdog/wire"
)

// Path is the kind of address that a datagram was sent to.
type Path uint8

// The paths.
const (
	PathUnicast   Path = iota // this board's own address
	PathMulticast             // the group
	PathBroadcast             // every host on the link
	PathFloating              // a floating address, which this board holds
)

// Datagram is one packet from another board on the link.
type Datagram struct {
	// Data is only valid during the call that delivers it.
	Data []byte
	// From is the sender's own address and port.
	From netip.AddrPort
	// Path says to which kind of address it was sent.
	Path Path
	// At is when it was read, on the clock of Now.
	At time.Duration
	// Known says that Conn.Know was called for the sender's address.
	Known bool
	// Elsewhere says that it has come by another interface than the Conn's own, see Conn.ByAnyInterface.
	Elsewhere bool
}

// Drops counts what was received and not delivered.
type Drops struct {
	WrongTTL      uint64 // from beyond the link, or from a program other than topdog
	Short         uint64 // shorter than wire.MinPacket
	Truncated     uint64 // longer than wire.MaxPacket
	OtherGroup    uint64 // of another group
	OverRate      uint64 // more than a sender may send
	LocalUser     uint64 // a user of this board was about to send it to the group
	Overflows     uint64 // there was no room in a socket; not known of what is said to all boards if Options.Tag is set
	ReceiveErrors uint64 // reads that failed; the reader waits a little and goes on
}

// Drops returns how many datagrams were dropped so far, and why.
func (c *Conn) Drops() Drops {
	return Drops{
		WrongTTL:      c.wrongTTL.Load() + c.admission.dropped(admissionTTL),
		Short:         c.admission.dropped(admissionShort),
		Truncated:     c.truncated.Load() + c.admission.dropped(admissionLong),
		OtherGroup:    c.admission.dropped(admissionGroup),
		OverRate:      c.admission.dropped(admissionRate),
		LocalUser:     c.admission.dropped(admissionUser),
		Overflows:     c.overflows(),
		ReceiveErrors: c.receiveErrors.Load(),
	}
}

// Arrivals counts the packets that have arrived: those to all boards at the interface, and those at the sockets.
type Arrivals struct {
	Counted bool   // a program in the kernel counts at the interface, before any firewall; otherwise Seen and FromOwn are 0
	Seen    uint64 // at the interface, from other hosts, and within the limits of admission
	FromOwn uint64 // at the interface, from another machine with this board's own address; the kernel drops them
	Heard   uint64 // at the sockets, from other hosts, including those to this board alone
	Own     uint64 // at the sockets, broadcast by this board itself
}

// Arrivals returns what has arrived so far. Only the difference between two results is meaningful.
func (c *Conn) Arrivals() Arrivals {
	a := Arrivals{Counted: c.admission.inKernel, Seen: c.admission.memory.seen.Load(), FromOwn: c.admission.memory.fromOwn.Load()}
	a.Own = c.own.Load()
	for _, r := range c.readers {
		a.Heard += r.got.Load()
	}
	a.Heard -= min(a.Heard, a.Own)
	return a
}

// OtherGroups returns the senders of packets of other groups that the program in the kernel has dropped since the last
// call. Without such a program these packets are delivered.
func (c *Conn) OtherGroups() (senders []netip.Addr) {
	for i := range c.admission.memory.others {
		slot := &c.admission.memory.others[i]
		if slot.Load() == 0 {
			continue
		}
		var from [4]byte
		binary.NativeEndian.PutUint32(from[:], slot.Swap(0))
		senders = append(senders, netip.AddrFrom4(from))
	}
	return senders
}

// overflows counts the packets that no socket had room for. Of a socket that the kernel gives the packets of other groups, too,
// nobody can tell: the kernel counts what byTag drops as if there had been no room.
func (c *Conn) overflows() (sum uint64) {
	for _, r := range c.readers {
		if c.options.Tag != 0 && (r.path == PathMulticast || r.path == PathBroadcast) {
			continue
		}
		sum += uint64(r.overflows())
	}
	return sum
}

// Serve delivers every datagram that arrives until Close is called, and then
// returns nil. Each socket is read by a goroutine, so deliver may be
// called several times at once. Serve survives every error that a read can
// return: the link may go and come back.
func (c *Conn) Serve(deliver func(Datagram)) error {
	var running sync.WaitGroup
	for _, r := range c.readers {
		r.begin(func(d *received) { c.accept(d, r.path, deliver) })
		running.Go(func() { readUntilClosed(c.closed, r.next, func() { c.receiveErrors.Add(1) }) })
	}
	running.Wait()
	return nil
}

// Drain delivers what the kernel has received until now before it returns. The readers
// would deliver it as well, but after the process stood still, timers may expire before they do.
func (c *Conn) Drain() {
	for _, r := range c.readers {
		r.drain()
	}
}

// readUntilClosed calls a function that reads from a socket, until it returns net.ErrClosed. It calls failed for each
// other error, and then waits for a while, unless the channel is closed.
func readUntilClosed(closed <-chan struct{}, next func() error, failed func()) {
	for failures := 0; ; {
		err := next()
		switch {
		case err == nil:
			failures = 0
		case errors.Is(err, net.ErrClosed):
			return
		default:
			failed()
			failures++
			if !pause(closed, retryDelay(failures)) {
				return
			}
		}
	}
}

// accept delivers a datagram of another board, and counts what it drops.
func (c *Conn) accept(d *received, path Path, deliver func(Datagram)) {
	now := Now()
	ttl, index := ttlAndInterface(d.control)
	switch {
	case d.flags&unix.MSG_TRUNC != 0:
		c.truncated.Add(1)
	case ttl != wire.TTL:
		c.wrongTTL.Add(1)
	case d.from == c.self:
		// This board's own datagram, looped back: a broadcast always is, a multicast only if Shared.
		// The kernel rejects what others send from this address.
		c.own.Add(1)
	case !c.admission.admit(d.from.Addr(), now, c.anyInterface.Load() && (path == PathUnicast || path == PathFloating)):
	default:
		deliver(Datagram{Data: d.data, From: d.from, Path: path, At: now, Known: c.admission.knows(d.from.Addr()), Elsewhere: index != 0 && index != c.index})
	}
}

// retryDelay is how long to wait after so many failed reads in a row. The first
// failure is usually a message about one earlier packet (ICMP port
// unreachable) or about the link going down, and the next read simply blocks,
// so it costs no wait; an error that stays must not eat the CPU.
func retryDelay(failures int) time.Duration {
	const (
		first = 10 * time.Millisecond
		most  = time.Second
	)
	switch {
	case failures <= 1:
		return 0
	case failures >= 9: // 10 ms doubled 7 times is over the limit
		return most
	default:
		return min(first<<(failures-2), most)
	}
}

// pause waits for d. It returns false as soon as stop is closed.
func pause(stop <-chan struct{}, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-stop:
		return false
	case <-timer.C:
		return true
	}
}

// controlSpace holds the control messages that are asked for (24 bytes for
// IP_TTL, and perhaps 32 for IP_PKTINFO) with room to spare.
const controlSpace = 64

// drainMax bounds how many packets are read from a socket at once, so that a flood does not hold the
// caller up.
const drainMax = 64

// received is a datagram as the kernel delivers it. Its memory is reused.
type received struct {
	data, control []byte
	flags         int
	from          netip.AddrPort
}

// reader reads one UDP socket. It calls recvmsg itself: the net package can either
// wait for a datagram or not read at all, and two goroutines cannot share a read.
type reader struct {
	path   Path
	socket syscall.RawConn

	// wait and empty are for RawConn, and made once, since a closure allocates.
	wait  func(fd uintptr) (done bool)
	empty func(fd uintptr)
	count func(fd uintptr)
	err   error // of the last wait

	got  atomic.Uint64 // packets that were read
	lost atomic.Uint32 // packets for which there was no room, at the last count

	mu     sync.Mutex // held from reading a datagram until it is delivered
	handle func(*received)
	last   received
	data   [wire.MaxPacket]byte
	oob    [controlSpace]byte
	name   unix.RawSockaddrInet4
	vector unix.Iovec
	header unix.Msghdr
}

func newReader(conn *net.UDPConn, path Path) (*reader, error) {
	socket, err := conn.SyscallConn()
	if err != nil {
		return nil, err
	}
	r := &reader{path: path, socket: socket}
	r.wait = func(fd uintptr) bool {
		r.err = r.read(fd)
		return r.err != unix.EAGAIN
	}
	r.empty = func(fd uintptr) {
		for range drainMax {
			if r.read(fd) != nil {
				return
			}
		}
	}
	r.count = func(fd uintptr) { r.lost.Store(lostBy(int(fd))) }
	return r, nil
}

// overflows counts the packets for which the socket had no room. The kernel includes those with a
// wrong checksum.
func (r *reader) overflows() uint32 {
	_ = r.socket.Control(r.count) // for a closed socket, the last count stands
	return r.lost.Load()
}

// lostBy asks the kernel how many packets a socket has lost; 0 if it cannot say.
func lostBy(fd int) uint32 {
	var memory [skMemoryWords]uint32
	size := uint32(unsafe.Sizeof(memory))
	_, _, errno := unix.RawSyscall6(unix.SYS_GETSOCKOPT, uintptr(fd), unix.SOL_SOCKET, unix.SO_MEMINFO,
		uintptr(unsafe.Pointer(&memory)), uintptr(unsafe.Pointer(&size)), 0)
	if errno != 0 {
		return 0
	}
	return memory[skMemoryDrops]
}

// What SO_MEMINFO returns (linux/sock_diag.h).
const (
	skMemoryDrops = 8
	skMemoryWords = 9
)

// begin sets the function that gets what is read.
func (r *reader) begin(handle func(*received)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.handle = handle
}

// next waits for one datagram and delivers it.
func (r *reader) next() error {
	if r.socket.Read(r.wait) != nil {
		return net.ErrClosed // RawConn has no other error, but another name for it
	}
	return r.err
}

// drain delivers what has arrived, without waiting. It leaves errors to next: the
// link is gone, or the socket is closed.
func (r *reader) drain() { _ = r.socket.Control(r.empty) }

// read reads one datagram and delivers it, or returns EAGAIN if there is none.
func (r *reader) read(fd uintptr) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.handle == nil {
		return unix.EAGAIN
	}
	r.vector.Base = &r.data[0]
	r.vector.SetLen(len(r.data))
	r.header = unix.Msghdr{Name: (*byte)(unsafe.Pointer(&r.name)), Namelen: unix.SizeofSockaddrInet4, Iov: &r.vector, Control: &r.oob[0]}
	r.header.SetIovlen(1)
	r.header.SetControllen(len(r.oob))
	n, _, errno := unix.RawSyscall(unix.SYS_RECVMSG, fd, uintptr(unsafe.Pointer(&r.header)), unix.MSG_DONTWAIT)
	if errno != 0 {
		return errno // never EINTR, since it does not wait
	}
	port := (*[2]byte)(unsafe.Pointer(&r.name.Port))
	r.last = received{
		data: r.data[:n], control: r.oob[:r.header.Controllen], flags: int(r.header.Flags),
		from: netip.AddrPortFrom(netip.AddrFrom4(r.name.Addr), binary.BigEndian.Uint16(port[:])),
	}
	r.got.Add(1)
	r.handle(&r.last)
	return nil
}
