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

// Raw is a socket of a family that package net does not have, with the control messages of the kernel. One goroutine reads,
// and holds no thread while it waits.
type Raw struct {
	file         *os.File
	conn         syscall.RawConn
	buf, control []byte
}

// OpenRaw opens a socket in the namespace of the calling thread, with room for so many bytes that nobody has read yet, and
// with an option of some level switched on.
func OpenRaw(family, protocol int, at unix.Sockaddr, room, level, option int) (*Raw, error) {
	fd, err := unix.Socket(family, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, protocol)
	if err != nil {
		return nil, os.NewSyscallError("socket", err)
	}
	s := &Raw{file: os.NewFile(uintptr(fd), "socket"), buf: make([]byte, 64<<10), control: make([]byte, 128)}
	err = errors.Join(
		os.NewSyscallError("SO_RCVBUFFORCE", unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, room)),
		os.NewSyscallError("setsockopt", unix.SetsockoptInt(fd, level, option, 1)),
		os.NewSyscallError("bind", unix.Bind(fd, at)),
	)
	if err == nil {
		s.conn, err = s.file.SyscallConn()
	}
	if err != nil {
		s.file.Close()
		return nil, err
	}
	return s, nil
}

// Close ends a blocked Receive.
func (s *Raw) Close() error { return s.file.Close() }

// SyscallConn is for what only a system call can do.
func (s *Raw) SyscallConn() syscall.RawConn { return s.conn }

// Message is what a Raw socket has received. Its bytes are valid until the next one.
type Message struct {
	Bytes   []byte
	Length  int // also of what did not fit
	From    unix.Sockaddr
	Control []unix.SocketControlMessage
}

// Receive waits for the next message. The error is os.ErrClosed when the socket is closed.
func (s *Raw) Receive() (m Message, err error) {
	var controls int
	var failed error
	err = s.conn.Read(func(fd uintptr) bool {
		m.Length, controls, _, m.From, failed = unix.Recvmsg(int(fd), s.buf, s.control, unix.MSG_TRUNC)
		return !errors.Is(failed, unix.EAGAIN) && !errors.Is(failed, unix.EINTR)
	})
	switch {
	case err != nil:
		return m, fmt.Errorf("%w: %w", os.ErrClosed, err)
	case failed != nil:
		return m, os.NewSyscallError("recvmsg", failed)
	}
	m.Bytes = s.buf[:min(m.Length, len(s.buf))]
	m.Control, err = unix.ParseSocketControlMessage(s.control[:controls])
	return m, err
}

// Socket sends and hears whole frames through an interface. Any goroutine may send.
type Socket struct {
	*Raw
	MAC   net.HardwareAddr // of the interface
	Index int              // of the interface
}

// Open opens a socket in the namespace of the calling thread. It hears frames of one EtherType that the interface gets; with
// ETH_P_ALL all that it gets or sends, and with 0 nothing.
func Open(name string, etherType uint16) (*Socket, error) {
	link, err := net.InterfaceByName(name)
	if err != nil {
		return nil, err
	}
	protocol := binary.NativeEndian.Uint16(binary.BigEndian.AppendUint16(nil, etherType))
	at := &unix.SockaddrLinklayer{Protocol: protocol, Ifindex: link.Index}
	raw, err := OpenRaw(unix.AF_PACKET, 0, at, 4<<20, unix.SOL_SOCKET, unix.SO_TIMESTAMPNS)
	if err != nil {
		return nil, fmt.Errorf("open a packet socket on %s: %w", name, err)
	}
	return &Socket{Raw: raw, MAC: link.HardwareAddr, Index: link.Index}, nil
}

// Send sends a frame. A link that is down sends nothing, which is no error of everybody's.
func (s *Socket) Send(frame []byte) error {
	_, err := s.file.Write(frame)
	return err
}

// Read waits for the next frame. The error is os.ErrClosed when the socket is closed.
func (s *Socket) Read() (Frame, error) {
	m, err := s.Receive()
	for errors.Is(err, unix.ENETDOWN) { // said once when the interface goes down; it may come up again
		m, err = s.Receive()
	}
	if err != nil {
		return Frame{}, err
	}
	station, _ := m.From.(*unix.SockaddrLinklayer)
	return Frame{
		Bytes: m.Bytes, Length: m.Length,
		Outgoing: station != nil && station.Pkttype == unix.PACKET_OUTGOING,
		At:       arrival(m.Control),
	}, nil
}

// arrival is when the kernel had a frame, with a reading of the monotonic clock, however late this process reads it.
func arrival(control []unix.SocketControlMessage) time.Time {
	now := time.Now()
	for _, m := range control {
		if m.Header.Level == unix.SOL_SOCKET && m.Header.Type == unix.SO_TIMESTAMPNS && len(m.Data) >= 16 {
			seconds, nanos := binary.NativeEndian.Uint64(m.Data), binary.NativeEndian.Uint64(m.Data[8:])
			return now.Add(-now.Round(0).Sub(time.Unix(int64(seconds), int64(nanos))))
		}
	}
	return now
}
