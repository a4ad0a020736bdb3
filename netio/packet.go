package netio

import (
	"encoding/binary"
	"fmt"
	"net"
	"os"
	"syscall"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// packetSocket sends and receives packets of one protocol on one interface, without their Ethernet headers. It is kept open:
// closing one takes about 17 ms (the kernel waits for an RCU grace period), which a take-over cannot spare. It keeps no copy of
// the interface's Ethernet address, which may change at any time (a bond that fails over, `ip link set address`): it asks the
// kernel with each packet.
type packetSocket struct {
	syscall.RawConn
	file     *os.File
	index    int    // of the interface
	protocol uint16 // in the byte order of the network
}

// packet is what a packetSocket sends.
type packet interface {
	// appendFrom appends it as an interface with an Ethernet address sends it.
	appendFrom(b []byte, own hardwareAddr) []byte
}

// openPacketSocket opens a socket for a protocol (ETH_P_…), which receives what the filter passes; without one, everything. It
// needs CAP_NET_RAW.
func openPacketSocket(index int, protocol uint16, filter []bpf.Instruction) (s packetSocket, err error) {
	s.index, s.protocol = index, htons(protocol)
	// The socket receives nothing before it is bound, and so nothing that the filter would drop.
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return s, fmt.Errorf("open a packet socket (needs CAP_NET_RAW): %w", err)
	}
	if len(filter) > 0 {
		err = setFilter(fd, filter)
	}
	if err == nil {
		if err = unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: s.protocol, Ifindex: index}); err != nil {
			err = fmt.Errorf("bind the packet socket: %w", withLinkDown(err))
		}
	}
	if err == nil {
		_, err = ownHardwareAddr(fd)
	}
	if err != nil {
		unix.Close(fd)
		return s, err
	}
	s.file = os.NewFile(uintptr(fd), "packets")
	if s.RawConn, err = s.file.SyscallConn(); err != nil {
		s.file.Close()
		return s, fmt.Errorf("hand the packet socket to the runtime: %w", err)
	}
	return s, nil
}

// htons puts a number into the byte order of the network.
func htons(v uint16) uint16 {
	var b [2]byte
	binary.BigEndian.PutUint16(b[:], v)
	return binary.NativeEndian.Uint16(b[:])
}

// to is an Ethernet address as a destination.
func (s packetSocket) to(destination hardwareAddr) *unix.SockaddrLinklayer {
	to := &unix.SockaddrLinklayer{Protocol: s.protocol, Ifindex: s.index, Halen: uint8(len(destination))}
	copy(to.Addr[:], destination[:])
	return to
}

// send sends packets of this interface to an Ethernet address.
func (s packetSocket) send(destination hardwareAddr, packets ...packet) error {
	to := s.to(destination)
	var result error
	if err := s.Write(func(fd uintptr) bool {
		var own hardwareAddr
		if own, result = ownHardwareAddr(int(fd)); result != nil {
			return true
		}
		for _, p := range packets {
			if result = sendFrame(int(fd), p.appendFrom(nil, own), to); result != nil {
				return true
			}
		}
		return true // do not wait while the queue is full: a late announcement would be wrong
	}); err != nil {
		return net.ErrClosed // RawConn has no other error, but another name for it
	}
	return withLinkDown(result)
}

func sendFrame(fd int, frame []byte, to unix.Sockaddr) error {
	err := unix.Sendto(fd, frame, 0, to)
	if err == unix.ENETDOWN {
		// The link may be up again: when it goes down, the kernel leaves an error on
		// the socket for the next call, however late that comes.
		err = unix.Sendto(fd, frame, 0, to)
	}
	return err
}

// listen reads until the socket is closed. A read that fails (the interface went down or was deleted) is tried again after a
// while; it then blocks or succeeds. read handles one packet, or returns EAGAIN if there is none.
func (s packetSocket) listen(closed <-chan struct{}, read func(fd uintptr) error) {
	var result error
	once := func(fd uintptr) bool {
		result = read(fd)
		return result != unix.EAGAIN
	}
	next := func() error {
		if s.Read(once) != nil {
			return net.ErrClosed // RawConn has no other error, but another name for it
		}
		return result
	}
	readUntilClosed(closed, next, func() {})
}

// ownHardwareAddr asks the kernel for the current Ethernet address of the interface of a packet socket. There
// is none while the interface is gone.
func ownHardwareAddr(fd int) (own hardwareAddr, err error) {
	name, err := unix.Getsockname(fd)
	if err != nil {
		return own, fmt.Errorf("ask for the interface's Ethernet address: %w", err)
	}
	link, ok := name.(*unix.SockaddrLinklayer)
	switch {
	case !ok || link.Hatype == 0: // that is what packet_getname returns if the interface is gone
		return own, unix.ENODEV
	case int(link.Halen) != len(own):
		return own, fmt.Errorf("its hardware address %q is not an Ethernet address: set `interface` to an Ethernet or Wi-Fi interface",
			net.HardwareAddr(link.Addr[:min(int(link.Halen), len(link.Addr))]))
	}
	return hardwareAddr(link.Addr[:len(own)]), nil
}
