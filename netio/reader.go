package netio

import (
	"encoding/binary"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"topdog/wire"
)

// controlSpace holds the one control message that is asked for (24 bytes for
// IP_TTL) with room to spare.
const controlSpace = 64

// drainMax bounds what is read from one socket at once: a flood must not keep the
// caller from what it wanted to do.
const drainMax = 64

// received is a datagram as the kernel hands it over. Its memory is used again.
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

	got    atomic.Uint64 // packets that were read
	lost   atomic.Uint32 // packets for which there was no room, as they were counted last
	before uint32        // what was lost before this reader

	mu     sync.Mutex // whoever reads hands on what was read before another one reads
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
	r.before = r.overflows()
	return r, nil
}

// overflows counts the packets for which the socket had no room. The kernel counts those whose
// checksum is wrong with them.
func (r *reader) overflows() uint32 {
	_ = r.socket.Control(r.count) // what is closed has lost what it had lost before
	return r.lost.Load() - r.before
}

// lostBy asks the kernel how many packets a socket has lost; 0 if it cannot say.
func lostBy(fd int) uint32 {
	var memory [skMemoryWords]uint32
	size := uint32(unsafe.Sizeof(memory))
	_, _, errno := unix.Syscall6(unix.SYS_GETSOCKOPT, uintptr(fd), unix.SOL_SOCKET, unix.SO_MEMINFO,
		uintptr(unsafe.Pointer(&memory)), uintptr(unsafe.Pointer(&size)), 0)
	if errno != 0 {
		return 0
	}
	return memory[skMemoryDrops]
}

// What SO_MEMINFO gives (linux/sock_diag.h).
const (
	skMemoryDrops = 8
	skMemoryWords = 9
)

// begin sets what becomes of what is read.
func (r *reader) begin(handle func(*received)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.handle = handle
}

// next waits for one datagram, and hands it on.
func (r *reader) next() error {
	if r.socket.Read(r.wait) != nil {
		return net.ErrClosed // the only error that RawConn has, by another name
	}
	return r.err
}

// drain hands on what has arrived, and waits for nothing. An error is left to next: it
// comes from a link that has gone, or the socket is closed.
func (r *reader) drain() { _ = r.socket.Control(r.empty) }

// read reads one datagram and hands it on, or returns EAGAIN if there is none.
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
	n, _, errno := unix.Syscall(unix.SYS_RECVMSG, fd, uintptr(unsafe.Pointer(&r.header)), unix.MSG_DONTWAIT)
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
