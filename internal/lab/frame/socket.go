package frame

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Socket sends and hears whole frames through an interface. One goroutine reads, and any may send.
type Socket struct {
	MAC   net.HardwareAddr // of the interface
	Index int              // of the interface

	file         *os.File
	raw          syscall.RawConn
	buf, control []byte
}

// Open opens a socket in the namespace of the calling thread. It hears frames of one EtherType that the interface gets; with
// ETH_P_ALL all that it gets or sends, and with 0 nothing.
func Open(name string, etherType uint16) (s *Socket, err error) {
	link, err := net.InterfaceByName(name)
	if err != nil {
		return nil, err
	}
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("open a packet socket on %s: %w", name, err)
	}
	s = &Socket{
		MAC: link.HardwareAddr, Index: link.Index,
		file: os.NewFile(uintptr(fd), name), buf: make([]byte, 2048), control: make([]byte, 128),
	}
	protocol := binary.NativeEndian.Uint16(binary.BigEndian.AppendUint16(nil, etherType))
	err = errors.Join(
		os.NewSyscallError("SO_RCVBUFFORCE", unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, 4<<20)),
		os.NewSyscallError("SO_TIMESTAMPNS", unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TIMESTAMPNS, 1)),
		os.NewSyscallError("bind", unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: protocol, Ifindex: s.Index})),
	)
	if err == nil {
		s.raw, err = s.file.SyscallConn()
	}
	if err != nil {
		s.file.Close()
		return nil, fmt.Errorf("open a packet socket on %s: %w", name, err)
	}
	return s, nil
}

// Close ends a blocked Read.
func (s *Socket) Close() error { return s.file.Close() }

// SyscallConn is for what only a system call can do.
func (s *Socket) SyscallConn() syscall.RawConn { return s.raw }

// Send sends a frame. A link that is down sends nothing, which is no error of everybody's.
func (s *Socket) Send(frame []byte) error {
	_, err := s.file.Write(frame)
	return err
}

// Read waits for the next frame. The error is os.ErrClosed when the socket is closed.
func (s *Socket) Read() (f Frame, err error) {
	var n, controls int
	var from unix.Sockaddr
	var failed error
	err = s.raw.Read(func(fd uintptr) bool {
		// With MSG_TRUNC the kernel says how long the frame was.
		n, controls, _, from, failed = unix.Recvmsg(int(fd), s.buf, s.control, unix.MSG_TRUNC)
		return !errors.Is(failed, unix.EAGAIN) && !errors.Is(failed, unix.EINTR)
	})
	switch {
	case err != nil:
		return f, fmt.Errorf("%w: %w", os.ErrClosed, err)
	case errors.Is(failed, unix.ENETDOWN): // said once when the interface goes down; it may come up again
		return s.Read()
	case failed != nil:
		return f, os.NewSyscallError("recvmsg", failed)
	}
	station, _ := from.(*unix.SockaddrLinklayer)
	return Frame{
		Bytes: s.buf[:min(n, len(s.buf))], Length: n,
		Outgoing: station != nil && station.Pkttype == unix.PACKET_OUTGOING,
		At:       arrival(s.control[:controls]),
	}, nil
}

// arrival is when the kernel had a frame, with a reading of the monotonic clock, however late this process reads it.
func arrival(control []byte) time.Time {
	now := time.Now()
	messages, err := unix.ParseSocketControlMessage(control)
	if err != nil {
		return now
	}
	for _, m := range messages {
		if m.Header.Level == unix.SOL_SOCKET && m.Header.Type == unix.SO_TIMESTAMPNS && len(m.Data) >= 16 {
			seconds, nanos := binary.NativeEndian.Uint64(m.Data), binary.NativeEndian.Uint64(m.Data[8:])
			return now.Add(-now.Round(0).Sub(time.Unix(int64(seconds), int64(nanos))))
		}
	}
	return now
}
