package netio

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"

	"golang.org/x/sys/unix"
)

const (
	// linkTTL is the TTL of everything that topdog sends, and the only one it
	// accepts. A router lowers it, so 255 proves that the sender is on this very
	// link (GTSM, RFC 5082 section 3; VRRP does the same, RFC 9568 section 5.1.1.3).
	linkTTL = 255

	// tosNetworkControl is DSCP CS6, "network control" (RFC 4594 section 3.1):
	// Wi-Fi access points and managed switches carry it in their fast queue.
	tosNetworkControl = 0xc0

	// priorityControl is the highest SO_PRIORITY that needs no capability
	// (TC_PRIO_INTERACTIVE). The host's own queue then sends heartbeats first.
	priorityControl = 6
)

// ErrLinkDown says that the link, its address or its route is away just now:
// the cable is out, the interface is down or gone, or it lost its address. It
// is the weather, not a fault; try again when [Watch] reports a change.
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
// socket then hears every group and every unicast packet on the port. It must
// run in the right namespace.
func openSocket(o Options, index int, bind netip.AddrPort, reuse bool) (conn *net.UDPConn, err error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, unix.IPPROTO_UDP)
	if err != nil {
		return nil, fmt.Errorf("open a UDP socket: %w", err)
	}
	// FilePacketConn works on a duplicate, so this descriptor is closed on every path.
	file := os.NewFile(uintptr(fd), "udp "+bind.String())
	defer file.Close()

	if err := setOptions(fd, o, index, reuse); err != nil {
		return nil, err
	}
	err = unix.Bind(fd, &unix.SockaddrInet4{Port: int(bind.Port()), Addr: bind.Addr().As4()})
	switch {
	case errors.Is(err, unix.EADDRINUSE):
		return nil, fmt.Errorf("bind to %s: %w: another topdog, or another program, has this port; stop it or choose another port", bind, err)
	case err != nil:
		return nil, fmt.Errorf("bind to %s: %w", bind, withLinkDown(err))
	}

	packets, err := net.FilePacketConn(file)
	if err != nil {
		return nil, fmt.Errorf("hand the socket for %s to the runtime: %w", bind, err)
	}
	return packets.(*net.UDPConn), nil
}

// setOptions sets everything that has to be set before bind, in an order that
// matters in one place: IP_TOS resets SO_PRIORITY, so it comes first.
func setOptions(fd int, o Options, index int, reuse bool) error {
	err := unix.BindToDevice(fd, o.Interface)
	// Kernels before 5.7 want CAP_NET_RAW for this. The demo runs on loopback
	// without any privilege, and there is no other link to hear there.
	if err != nil && !(o.Shared && errors.Is(err, unix.EPERM)) {
		return fmt.Errorf("SO_BINDTODEVICE: %w", withLinkDown(err))
	}
	options := []struct {
		name                 string
		level, option, value int
	}{
		{"IP_TOS", unix.IPPROTO_IP, unix.IP_TOS, tosNetworkControl},
		{"SO_PRIORITY", unix.SOL_SOCKET, unix.SO_PRIORITY, priorityControl},
		{"IP_TTL", unix.IPPROTO_IP, unix.IP_TTL, linkTTL},
		{"IP_MULTICAST_TTL", unix.IPPROTO_IP, unix.IP_MULTICAST_TTL, linkTTL},
		{"IP_MULTICAST_LOOP", unix.IPPROTO_IP, unix.IP_MULTICAST_LOOP, boolint(o.Shared)},
		// Without this, a socket also gets the groups that other processes joined.
		{"IP_MULTICAST_ALL", unix.IPPROTO_IP, unix.IP_MULTICAST_ALL, 0},
		{"IP_RECVTTL", unix.IPPROTO_IP, unix.IP_RECVTTL, 1},
		{"SO_REUSEADDR", unix.SOL_SOCKET, unix.SO_REUSEADDR, boolint(reuse)},
	}
	for _, s := range options {
		if err := unix.SetsockoptInt(fd, s.level, s.option, s.value); err != nil {
			return fmt.Errorf("set %s to %d: %w", s.name, s.value, err)
		}
	}
	mreq := unix.IPMreqn{Ifindex: int32(index)}
	if err := unix.SetsockoptIPMreqn(fd, unix.IPPROTO_IP, unix.IP_MULTICAST_IF, &mreq); err != nil {
		return fmt.Errorf("set IP_MULTICAST_IF: %w", withLinkDown(err))
	}
	return nil
}

// join adds the socket to the group on the interface, and leave undoes it.
// Both go by the interface's index, which is the only name that never
// silently comes to mean another interface.
func join(conn *net.UDPConn, group netip.Addr, index int) error {
	return membership(conn, unix.IP_ADD_MEMBERSHIP, group, index)
}

func leave(conn *net.UDPConn, group netip.Addr, index int) error {
	return membership(conn, unix.IP_DROP_MEMBERSHIP, group, index)
}

func membership(conn *net.UDPConn, option int, group netip.Addr, index int) error {
	raw, err := conn.SyscallConn()
	if err != nil {
		return err
	}
	mreq := unix.IPMreqn{Multiaddr: group.As4(), Ifindex: int32(index)}
	var result error
	if err := raw.Control(func(fd uintptr) {
		result = unix.SetsockoptIPMreqn(int(fd), unix.IPPROTO_IP, option, &mreq)
	}); err != nil {
		return err
	}
	return result
}

// ttl finds the TTL that a datagram arrived with in its control messages, or
// -1 if there is none. It does not allocate, which ipv4.ControlMessage does.
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

func boolint(b bool) int {
	if b {
		return 1
	}
	return 0
}
