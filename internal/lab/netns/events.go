package netns

import (
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// groupAddr4 are the rtnetlink notifications of IPv4 addresses.
const groupAddr4 = 1 << (unix.RTNLGRP_IPV4_IFADDR - 1)

// switchNamespace is what event says of notifications from the switch itself.
const switchNamespace = -1

// errEventsLost means that the kernel had to drop notifications because the
// reader was too slow.
var errEventsLost = errors.New("netlink notifications were lost")

// eventSocket receives the notifications of all namespaces of a LAN through
// one socket (NETLINK_LISTEN_ALL_NSID) instead of one per namespace. So they
// arrive in the order in which the kernel acted: an address that left board 1
// before it came to board 2 is never seen on both, however late this process
// gets to read. With a socket per namespace the order would be a matter of
// scheduling, and a test would count overlaps that never happened.
type eventSocket struct {
	file *os.File
	raw  syscall.RawConn
	buf  []byte
	oob  []byte
}

// event is one notification.
type event struct {
	namespace int // number of the host, or switchNamespace
	at        time.Time
	syscall.NetlinkMessage
}

// subscribe opens an eventSocket for the notifications of groups.
func (f *fabric) subscribe(groups uint32) (s *eventSocket, err error) {
	err = f.do(func() error {
		s, err = newEventSocket(groups)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("subscribe to netlink notifications in the switch: %w", err)
	}
	return s, nil
}

func newEventSocket(groups uint32) (*eventSocket, error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, unix.NETLINK_ROUTE)
	if err != nil {
		return nil, err
	}
	file := os.NewFile(uintptr(fd), "rtnetlink")
	err = errors.Join(
		// Room for tens of thousands of notifications; the least is about 1 KiB each.
		os.NewSyscallError("SO_RCVBUFFORCE", unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, 64<<20)),
		os.NewSyscallError("NETLINK_LISTEN_ALL_NSID", unix.SetsockoptInt(fd, unix.SOL_NETLINK, unix.NETLINK_LISTEN_ALL_NSID, 1)),
		os.NewSyscallError("bind", unix.Bind(fd, &unix.SockaddrNetlink{Family: unix.AF_NETLINK, Groups: groups})),
	)
	if err != nil {
		file.Close()
		return nil, err
	}
	raw, err := file.SyscallConn()
	if err != nil {
		file.Close()
		return nil, err
	}
	return &eventSocket{file: file, raw: raw, buf: make([]byte, 64<<10), oob: make([]byte, 128)}, nil
}

// Close ends a blocked read.
func (s *eventSocket) Close() error { return s.file.Close() }

// read waits for the next notifications. They are valid until the next call.
// The error is errEventsLost, os.ErrDeadlineExceeded, or means that the socket is of no use
// any more.
func (s *eventSocket) read() ([]event, error) {
	var n, oobn int
	var recvErr error
	err := s.raw.Read(func(fd uintptr) bool {
		n, oobn, _, _, recvErr = unix.Recvmsg(int(fd), s.buf, s.oob, 0)
		return !errors.Is(recvErr, unix.EAGAIN) && !errors.Is(recvErr, unix.EINTR)
	})
	at := time.Now()
	switch {
	case err != nil:
		return nil, err
	case errors.Is(recvErr, unix.ENOBUFS):
		return nil, errEventsLost
	case recvErr != nil:
		return nil, os.NewSyscallError("recvmsg", recvErr)
	}
	from, err := namespaceOf(s.oob[:oobn])
	if err != nil {
		return nil, err
	}
	msgs, err := syscall.ParseNetlinkMessage(s.buf[:n])
	if err != nil {
		return nil, fmt.Errorf("parse a netlink notification: %w", err)
	}
	events := make([]event, len(msgs))
	for i, m := range msgs {
		events[i] = event{namespace: from, at: at, NetlinkMessage: m}
	}
	return events, nil
}

// namespaceOf reads the namespace id that the kernel attaches to
// notifications from other namespaces than the socket's own.
func namespaceOf(oob []byte) (int, error) {
	for len(oob) > 0 {
		hdr, data, rest, err := unix.ParseOneSocketControlMessage(oob)
		if err != nil {
			return 0, fmt.Errorf("parse a netlink control message: %w", err)
		}
		if hdr.Level == unix.SOL_NETLINK && hdr.Type == unix.NETLINK_LISTEN_ALL_NSID && len(data) >= 4 {
			return int(int32(nl.NativeEndian().Uint32(data))), nil
		}
		oob = rest
	}
	return switchNamespace, nil
}
