package netio

import (
	"encoding/binary"
	"net"
	"net/netip"
	"sync"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// What a daemon asks of the kernel with every heartbeat never waits in the kernel: it reads, sends and sets a timer. So it is
// asked by RawSyscall, of which the Go runtime knows nothing. Before any other system call the runtime wakes its monitor
// thread, which then sleeps and wakes several times until it has seen that all is quiet. These were half the wake-ups of
// an idle daemon.

// setTimer sets a timerfd. It fails only for an invalid descriptor or time.
func setTimer(fd int, flags uintptr, t time.Duration) {
	value := unix.ItimerSpec{Value: unix.NsecToTimespec(int64(t))}
	_, _, _ = unix.RawSyscall6(unix.SYS_TIMERFD_SETTIME, uintptr(fd), flags, uintptr(unsafe.Pointer(&value)), 0, 0, 0)
}

// receiveNetlink receives what is there for a netlink socket, and returns its length, which may be more than fits, and the port that
// has sent it, which is 0 for the kernel.
func receiveNetlink(fd uintptr, message []byte) (n int, from uint32, errno unix.Errno) {
	var name unix.RawSockaddrNetlink
	size := uint32(unix.SizeofSockaddrNetlink)
	length, _, errno := unix.RawSyscall6(unix.SYS_RECVFROM, fd, uintptr(unsafe.Pointer(unsafe.SliceData(message))), uintptr(len(message)),
		unix.MSG_TRUNC|unix.MSG_DONTWAIT, uintptr(unsafe.Pointer(&name)), uintptr(unsafe.Pointer(&size)))
	if errno != 0 {
		return 0, 0, errno
	}
	return int(length), name.Pid, 0
}

// headerOf returns the header of a message in one piece, which the vector describes, with its control messages.
func headerOf(vector *unix.Iovec, message, control []byte) unix.Msghdr {
	vector.Base = unsafe.SliceData(message)
	vector.SetLen(len(message))
	header := unix.Msghdr{Iov: vector, Control: unsafe.SliceData(control)}
	header.SetIovlen(1)
	header.SetControllen(len(control))
	return header
}

// sendQuickly sends a message with control messages, either of which may be empty. It does not wait for room.
func sendQuickly(fd int, message, control []byte) error {
	var vector unix.Iovec
	header := headerOf(&vector, message, control)
	_, _, errno := unix.RawSyscall(unix.SYS_SENDMSG, uintptr(fd), uintptr(unsafe.Pointer(&header)), unix.MSG_NOSIGNAL|unix.MSG_DONTWAIT)
	if errno != 0 {
		return errno
	}
	return nil
}

// hasMessage reports whether there is a message at a socket, or its end.
func hasMessage(fd uintptr) bool {
	var first byte
	_, _, errno := unix.RawSyscall6(unix.SYS_RECVFROM, fd, uintptr(unsafe.Pointer(&first)), 1, unix.MSG_PEEK|unix.MSG_DONTWAIT, 0, 0)
	return errno != unix.EAGAIN
}

// receiveQuickly receives a message and what comes with it. It does not wait.
func receiveQuickly(fd int, message, control []byte) (n, controls, flags int, err error) {
	var vector unix.Iovec
	header := headerOf(&vector, message, control)
	length, _, errno := unix.RawSyscall(unix.SYS_RECVMSG, uintptr(fd), uintptr(unsafe.Pointer(&header)), unix.MSG_CMSG_CLOEXEC|unix.MSG_DONTWAIT)
	if errno != 0 {
		return 0, 0, 0, errno
	}
	return int(length), int(header.Controllen), int(header.Flags), nil
}

// writer sends by one UDP socket.
type writer struct {
	socket syscall.RawConn
	send   func(fd uintptr) (done bool) // made once, since a closure allocates

	mu    sync.Mutex // held until a datagram is sent
	data  []byte
	name  unix.RawSockaddrInet4
	errno unix.Errno
}

func newWriter(socket syscall.RawConn) *writer {
	w := &writer{socket: socket, name: unix.RawSockaddrInet4{Family: unix.AF_INET}}
	w.send = func(fd uintptr) bool {
		_, _, w.errno = unix.RawSyscall6(unix.SYS_SENDTO, fd, uintptr(unsafe.Pointer(unsafe.SliceData(w.data))), uintptr(len(w.data)),
			unix.MSG_DONTWAIT, uintptr(unsafe.Pointer(&w.name)), unix.SizeofSockaddrInet4)
		return w.errno != unix.EAGAIN
	}
	return w
}

// write sends a datagram, and waits while there is no room for it.
func (w *writer) write(data []byte, to netip.AddrPort) error {
	if !to.Addr().Is4() {
		return unix.EAFNOSUPPORT
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.data, w.name.Addr = data, to.Addr().As4()
	binary.BigEndian.PutUint16((*[2]byte)(unsafe.Pointer(&w.name.Port))[:], to.Port())
	err := w.socket.Write(w.send)
	w.data = nil
	if err != nil {
		return net.ErrClosed // RawConn has no other error, but another name for it
	}
	if w.errno != 0 {
		return w.errno
	}
	return nil
}
