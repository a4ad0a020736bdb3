package netio

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"

	"golang.org/x/net/bpf"
	"golang.org/x/net/ipv4"
	"golang.org/x/sys/unix"

	"topdog/wire"
)

const (
	// tosNetworkControl is DSCP CS6, "network control" (RFC 4594 section 3.1):
	// Wi-Fi access points and managed switches carry it in their fast queue.
	tosNetworkControl = 0xc0

	// receiveBuffer is the size of a socket's buffer in bytes, half of what the kernel then allows. A packet takes 768
	// bytes of it, and the longest one 2,304. The buffer is needed while this process does not read: in 200 ms, 400
	// packets of strangers and as many of boards may arrive.
	receiveBuffer = 512 << 10

	// priorityControl is the highest SO_PRIORITY that needs no capability
	// (TC_PRIO_INTERACTIVE). The host's own queue then sends heartbeats first.
	priorityControl = 6
)

// ErrLinkDown says that there is no link, address or route at the moment:
// the cable is out, the interface is down or gone, or it has lost its address. That is
// not a fault; try again when [Watch] reports a change.
var ErrLinkDown = errors.New("the link is down")

// isLinkDown tells which errno mean ErrLinkDown. They come when an interface is
// down or has lost the address that the socket is bound to (ENETUNREACH,
// ENETDOWN, and EADDRNOTAVAIL from bind), or was deleted (ENODEV, ENXIO).
func isLinkDown(err error) bool {
	for _, errno := range []unix.Errno{
		unix.ENETUNREACH, unix.ENETDOWN, unix.ENODEV, unix.ENXIO, unix.EADDRNOTAVAIL, unix.EHOSTUNREACH,
	} {
		if errors.Is(err, errno) {
			return true
		}
	}
	return false
}

// withLinkDown makes err match ErrLinkDown if that is what it means.
func withLinkDown(err error) error {
	if err == nil || !isLinkDown(err) {
		return err
	}
	return fmt.Errorf("%w (%w)", ErrLinkDown, err)
}

// openSocket opens one UDP socket bound to bind. The net package could not do
// it: given a group address, it binds to the wildcard address instead, and the
// socket then hears every group and every unicast packet on the port.
func openSocket(o Options, index int, bind netip.AddrPort, path Path) (conn *net.UDPConn, err error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, unix.IPPROTO_UDP)
	if err != nil {
		return nil, fmt.Errorf("open a UDP socket: %w", err)
	}
	// FilePacketConn works on a duplicate, so this descriptor is closed on every path.
	file := os.NewFile(uintptr(fd), "udp "+bind.String())
	defer file.Close()

	if err := beforeBind(fd, o, path, index); err != nil {
		return nil, err
	}
	err = unix.Bind(fd, &unix.SockaddrInet4{Port: int(bind.Port()), Addr: bind.Addr().As4()})
	switch {
	case errors.Is(err, unix.EADDRINUSE):
		return nil, fmt.Errorf("bind to %s: %w: another topdog, or another program, has this port, see `ss -ulnp`; "+
			"stop it or choose another port", bind, err)
	case err != nil:
		return nil, fmt.Errorf("bind to %s: %w", bind, withLinkDown(err))
	}

	packets, err := net.FilePacketConn(file)
	if err != nil {
		return nil, fmt.Errorf("hand the socket for %s to the runtime: %w", bind, err)
	}
	conn = packets.(*net.UDPConn)
	if err := tune(conn, o, index); err != nil {
		conn.Close()
		return nil, err
	}
	return conn, nil
}

// beforeBind sets the options that must be set before the socket receives anything.
func beforeBind(fd int, o Options, path Path, index int) error {
	if err := bindToInterface(fd, o, path, index); err != nil {
		return err
	}
	// Without CAP_NET_ADMIN the buffer is as large as the system allows.
	if unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, receiveBuffer) != nil {
		_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUF, receiveBuffer)
	}
	if o.replaces || o.Tag != 0 {
		if err := setReusePort(fd, true); err != nil {
			return err
		}
	}
	// Without this, a socket also gets the groups that other processes joined.
	if err := unix.SetsockoptInt(fd, unix.IPPROTO_IP, unix.IP_MULTICAST_ALL, 0); err != nil {
		return fmt.Errorf("switch IP_MULTICAST_ALL off: %w", err)
	}
	switch {
	case path == PathFloating:
		// This board will hold the address only when it leads, and must not have to
		// open a socket then.
		if err := unix.SetsockoptInt(fd, unix.IPPROTO_IP, unix.IP_FREEBIND, 1); err != nil {
			return fmt.Errorf("switch IP_FREEBIND on: %w", err)
		}
	case path != PathUnicast && o.Shared:
		if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1); err != nil {
			return fmt.Errorf("switch SO_REUSEADDR on: %w", err)
		}
	case path == PathUnicast: // this socket sends everything
		if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_BROADCAST, 1); err != nil {
			return fmt.Errorf("switch SO_BROADCAST on: %w", err)
		}
		// All boards are on the link, whatever their addresses are. Beyond a gateway none
		// would accept the packet: its TTL would be too low.
		if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_DONTROUTE, 1); err != nil {
			return fmt.Errorf("switch SO_DONTROUTE on: %w", err)
		}
	}
	return nil
}

// bindToInterface has a socket send and receive by the interface only. The sockets for datagrams to this board alone
// do that by an option and a filter, so that Conn.ByAnyInterface can change from where they receive.
func bindToInterface(fd int, o Options, path Path, index int) error {
	if path == PathUnicast || path == PathFloating {
		if err := unix.SetsockoptInt(fd, unix.IPPROTO_IP, unix.IP_UNICAST_IF, int(htonl(uint32(index)))); err != nil {
			return fmt.Errorf("IP_UNICAST_IF: %w", withLinkDown(err))
		}
		return setFilter(fd, byInterface(index))
	}
	if o.Tag != 0 {
		if err := setFilter(fd, byTag(o.Tag)); err != nil {
			return err
		}
	}
	err := unix.BindToDevice(fd, o.Interface)
	// Kernels before 5.7 want CAP_NET_RAW for this. The demo runs without privileges on loopback,
	// where there is no other link to hear.
	if err != nil && !(o.Shared && errors.Is(err, unix.EPERM)) {
		return fmt.Errorf("SO_BINDTODEVICE: %w", withLinkDown(err))
	}
	return nil
}

// byInterface passes what has arrived by an interface.
func byInterface(index int) []bpf.Instruction {
	return []bpf.Instruction{
		bpf.LoadExtension{Num: bpf.ExtInterfaceIndex},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: uint32(index), SkipFalse: 1},
		bpf.RetConstant{Val: pass},
		bpf.RetConstant{Val: 0},
	}
}

// byTag passes the packets of a group. The kernel gives what is sent to all boards to the sockets of all groups.
func byTag(tag wire.GroupTag) []bpf.Instruction {
	return []bpf.Instruction{
		bpf.LoadAbsolute{Off: udpBytes + wire.GroupTagEnd - 2, Size: 2},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: uint32(tag), SkipFalse: 1},
		bpf.RetConstant{Val: pass},
		bpf.RetConstant{Val: 0},
	}
}

// setInterfaceTold sets whether the socket tells by which interface a datagram has come.
func setInterfaceTold(fd int, told bool) error {
	value := 0
	if told {
		value = 1
	}
	if err := unix.SetsockoptInt(fd, unix.IPPROTO_IP, unix.IP_PKTINFO, value); err != nil {
		return fmt.Errorf("set IP_PKTINFO to %d: %w", value, err)
	}
	return nil
}

// htonl puts a number into the byte order of the network.
func htonl(v uint32) uint32 {
	var b [4]byte
	binary.BigEndian.PutUint32(b[:], v)
	return binary.NativeEndian.Uint32(b[:])
}

// setReusePort sets whether other sockets may be bound to the same address. The kernel wants both sockets to allow it,
// and to belong to the same user.
func setReusePort(fd int, allowed bool) error {
	value := 0
	if allowed {
		value = 1
	}
	if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEPORT, value); err != nil {
		return fmt.Errorf("set SO_REUSEPORT to %d: %w", value, err)
	}
	return nil
}

// tune sets how the socket sends, and that it tells the TTL of what it
// receives. Until then datagrams come without a TTL, and are dropped.
func tune(conn *net.UDPConn, o Options, index int) error {
	p := ipv4.NewPacketConn(conn)
	if err := p.SetMulticastInterface(&net.Interface{Index: index}); err != nil {
		return fmt.Errorf("choose the interface for multicast: %w", withLinkDown(err))
	}
	if err := errors.Join(
		p.SetTTL(wire.TTL),
		p.SetMulticastTTL(wire.TTL),
		p.SetMulticastLoopback(o.Shared),
		p.SetControlMessage(ipv4.FlagTTL, true),
		// IP_TOS resets SO_PRIORITY, so it comes first.
		p.SetTOS(tosNetworkControl),
		setPriority(conn, priorityControl),
	); err != nil {
		return fmt.Errorf("set the options of a socket: %w", err)
	}
	return nil
}

func setPriority(conn *net.UDPConn, priority int) error {
	raw, err := conn.SyscallConn()
	if err != nil {
		return err
	}
	var result error
	if err := raw.Control(func(fd uintptr) {
		result = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_PRIORITY, priority)
	}); err != nil {
		return err
	}
	return result
}

// join adds the socket to the group on the interface, and leave undoes it.
// Both go by the interface's index, which is the only name that never
// silently comes to mean another interface.
func join(conn *net.UDPConn, group netip.Addr, index int) error {
	return ipv4.NewPacketConn(conn).JoinGroup(&net.Interface{Index: index}, &net.UDPAddr{IP: group.AsSlice()})
}

func leave(conn *net.UDPConn, group netip.Addr, index int) error {
	return ipv4.NewPacketConn(conn).LeaveGroup(&net.Interface{Index: index}, &net.UDPAddr{IP: group.AsSlice()})
}

// ttlAndInterface finds the TTL that a datagram arrived with in its control messages, or
// -1 if there is none, and the index of the interface by which it arrived, or 0. It does not allocate, which ipv4.ControlMessage does.
func ttlAndInterface(control []byte) (ttl, index int) {
	ttl = -1
	for len(control) >= unix.SizeofCmsghdr {
		header, data, rest, err := unix.ParseOneSocketControlMessage(control)
		if err != nil {
			break
		}
		if header.Level == unix.IPPROTO_IP && len(data) >= 4 {
			switch header.Type {
			case unix.IP_TTL:
				ttl = int(binary.NativeEndian.Uint32(data))
			case unix.IP_PKTINFO:
				index = int(binary.NativeEndian.Uint32(data)) // in_pktinfo begins with it
			}
		}
		control = rest
	}
	return ttl, index
}

// pass is a filter's verdict to let a packet through: more bytes than any packet has.
const pass = 1 << 18

// setFilter attaches a filter to a socket. The kernel runs it for each packet that the socket would get. A packet that
// it drops does not wake this process.
func setFilter(fd int, program []bpf.Instruction) error {
	raw, err := bpf.Assemble(program)
	if err != nil {
		return fmt.Errorf("assemble a packet filter: %w", err)
	}
	filters := make([]unix.SockFilter, len(raw))
	for i, r := range raw {
		filters[i] = unix.SockFilter{Code: r.Op, Jt: r.Jt, Jf: r.Jf, K: r.K}
	}
	err = unix.SetsockoptSockFprog(fd, unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, &unix.SockFprog{
		Len: uint16(len(filters)), Filter: &filters[0],
	})
	if err != nil {
		return fmt.Errorf("attach a packet filter: %w", err)
	}
	return nil
}
