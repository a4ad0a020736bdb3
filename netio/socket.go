package netio

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"

	"golang.org/x/net/bpf"
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
func openSocket(o Options, index int, bind netip.AddrPort, path Path) (*net.UDPConn, error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, unix.IPPROTO_UDP)
	if err != nil {
		return nil, fmt.Errorf("open a UDP socket: %w", err)
	}
	// FilePacketConn works on a duplicate, so this descriptor is closed on every path.
	file := os.NewFile(uintptr(fd), "udp "+bind.String())
	defer file.Close()

	if err := configure(fd, o, path, index); err != nil {
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
	return packets.(*net.UDPConn), nil
}

// configure sets the options of a socket before it can receive anything.
func configure(fd int, o Options, path Path, index int) error {
	if err := bindToInterface(fd, o, path, index); err != nil {
		return err
	}
	if err := unix.SetsockoptIPMreqn(fd, unix.IPPROTO_IP, unix.IP_MULTICAST_IF, &unix.IPMreqn{Ifindex: int32(index)}); err != nil {
		return fmt.Errorf("choose the interface for multicast: %w", withLinkDown(err))
	}
	// Without CAP_NET_ADMIN the buffer is as large as the system allows.
	if unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, receiveBuffer) != nil {
		_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUF, receiveBuffer)
	}
	for _, option := range socketOptions(o, path) {
		if err := option.set(fd); err != nil {
			return err
		}
	}
	return nil
}

// socketOption is an option whose value is a number.
type socketOption struct {
	name                 string
	level, option, value int
}

func (s socketOption) set(fd int) error {
	if err := unix.SetsockoptInt(fd, s.level, s.option, s.value); err != nil {
		return fmt.Errorf("set %s to %d: %w", s.name, s.value, err)
	}
	return nil
}

// socketOptions are the options of the socket of a path, in the order in which they are set.
func socketOptions(o Options, path Path) []socketOption {
	const ip, socket = unix.IPPROTO_IP, unix.SOL_SOCKET
	all := []socketOption{
		// Otherwise a socket also gets the groups that other processes joined.
		{"IP_MULTICAST_ALL", ip, unix.IP_MULTICAST_ALL, 0},
		{"IP_TTL", ip, unix.IP_TTL, wire.TTL},
		{"IP_MULTICAST_TTL", ip, unix.IP_MULTICAST_TTL, wire.TTL},
		{"IP_MULTICAST_LOOP", ip, unix.IP_MULTICAST_LOOP, 0},
		{"IP_RECVTTL", ip, unix.IP_RECVTTL, 1},
		// IP_TOS resets SO_PRIORITY, so it comes first.
		{"IP_TOS", ip, unix.IP_TOS, tosNetworkControl},
		{"SO_PRIORITY", socket, unix.SO_PRIORITY, priorityControl},
	}
	if o.Shared {
		all = append(all, socketOption{"IP_MULTICAST_LOOP", ip, unix.IP_MULTICAST_LOOP, 1})
	}
	if o.replaces {
		all = append(all, reusePort(1))
	}
	switch {
	case path == PathFloating:
		// This board will hold the address only when it leads, and must not have to open a socket then.
		all = append(all, socketOption{"IP_FREEBIND", ip, unix.IP_FREEBIND, 1})
	case path == PathUnicast: // this socket sends everything
		all = append(all, socketOption{"SO_BROADCAST", socket, unix.SO_BROADCAST, 1},
			// All boards are on the link, whatever their addresses are. Beyond a gateway none would accept the
			// packet: its TTL would be too low.
			socketOption{"SO_DONTROUTE", socket, unix.SO_DONTROUTE, 1})
	case o.Shared:
		all = append(all, socketOption{"SO_REUSEADDR", socket, unix.SO_REUSEADDR, 1})
	}
	return all
}

// reusePort says whether other sockets may be bound to the same address, 1 or 0. The kernel wants both sockets to allow
// it, and to belong to the same user.
func reusePort(allowed int) socketOption {
	return socketOption{"SO_REUSEPORT", unix.SOL_SOCKET, unix.SO_REUSEPORT, allowed}
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

// htonl puts a number into the byte order of the network.
func htonl(v uint32) uint32 {
	var b [4]byte
	binary.BigEndian.PutUint32(b[:], v)
	return binary.NativeEndian.Uint32(b[:])
}

// join adds the socket to the group on the interface, and leave undoes it.
// Both go by the interface's index, which is the only name that never
// silently comes to mean another interface.
func join(conn *net.UDPConn, group netip.Addr, index int) error {
	return setMembership(conn, unix.IP_ADD_MEMBERSHIP, group, index)
}

func leave(conn *net.UDPConn, group netip.Addr, index int) error {
	return setMembership(conn, unix.IP_DROP_MEMBERSHIP, group, index)
}

func setMembership(conn *net.UDPConn, option int, group netip.Addr, index int) error {
	raw, err := conn.SyscallConn()
	if err != nil {
		return err
	}
	member := unix.IPMreqn{Multiaddr: group.As4(), Ifindex: int32(index)}
	closed := raw.Control(func(fd uintptr) { err = unix.SetsockoptIPMreqn(int(fd), unix.IPPROTO_IP, option, &member) })
	return errors.Join(closed, err)
}

// ttl finds the TTL that a datagram arrived with in its control messages, or
// -1 if there is none. It does not allocate.
func ttl(control []byte) int {
	for len(control) >= unix.SizeofCmsghdr {
		header, data, rest, err := unix.ParseOneSocketControlMessage(control)
		if err != nil {
			return -1
		}
		if header.Level == unix.IPPROTO_IP && header.Type == unix.IP_TTL && len(data) >= 4 {
			return int(binary.NativeEndian.Uint32(data))
		}
		control = rest
	}
	return -1
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
