package observe

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// Port is where boards answer on a LAN of their own. It is that of the echo service
// (RFC 862), which no program on a board of ours uses.
const Port = 7

// A question is the client's own mark and a number, both of 32 bits. The answer is the
// question followed by the number of the board, 16 bits. All are big-endian.
const (
	markLen     = 4
	questionLen = markLen + 4
	answerLen   = questionLen + 2
)

// Answerer is the service that the users of a board want: it answers every question with the
// number of the board. It belongs to this process, so that nothing that is done to a daemon
// kills or freezes it; but it shares the board's network with all that happens to that.
type Answerer struct {
	conn *net.UDPConn
	wg   sync.WaitGroup
}

// StartAnswerer starts to answer on a socket, which it closes in the end. A board for which reachable
// is false hears no question; nil means that it always does.
func StartAnswerer(conn *net.UDPConn, board int, reachable func() bool) *Answerer {
	a := &Answerer{conn: conn}
	// The kernel tells to which address each question was sent (ip(7), IP_PKTINFO; ipv6(7), IPV6_RECVPKTINFO, which a socket
	// of IPv4 refuses). Nothing else fails but on a closed socket.
	if raw, err := conn.SyscallConn(); err == nil {
		_ = raw.Control(func(fd uintptr) {
			if unix.SetsockoptInt(int(fd), unix.SOL_IPV6, unix.IPV6_RECVPKTINFO, 1) != nil {
				_ = unix.SetsockoptInt(int(fd), unix.SOL_IP, unix.IP_PKTINFO, 1)
			}
		})
	}
	a.wg.Go(func() { a.run(uint16(board), reachable) })
	return a
}

// Close ends the answering.
func (a *Answerer) Close() error {
	err := a.conn.Close()
	a.wg.Wait()
	return err
}

func (a *Answerer) run(board uint16, reachable func() bool) {
	buf, control := make([]byte, answerLen), make([]byte, unix.CmsgSpace(unix.SizeofInet6Pktinfo))
	for {
		n, controls, _, from, err := a.conn.ReadMsgUDPAddrPort(buf, control)
		switch {
		case errors.Is(err, net.ErrClosed):
			return
		case err != nil, n != questionLen, reachable != nil && !reachable():
			continue // A problem with one packet is a question without an answer.
		}
		binary.BigEndian.PutUint16(buf[questionLen:], board)
		// This fails if the address has just left the board: no answer.
		_, _, _ = a.conn.WriteMsgUDPAddrPort(buf, fromWhereAsked(control[:controls]), from)
	}
}

// fromWhereAsked makes of what the kernel says of a question what it wants to know for the answer: the answer comes from the
// address that was asked, by any interface, since the address may be on another one than that to which the question came. If
// the kernel has said nothing it decides itself.
func fromWhereAsked(control []byte) []byte {
	_, info, _, err := unix.ParseOneSocketControlMessage(control)
	switch {
	case err != nil:
		return nil
	case len(info) == unix.SizeofInet4Pktinfo:
		clear(info[:4]) // its first field
	case len(info) == unix.SizeofInet6Pktinfo:
		clear(info[16:]) // its last field, behind the address
	}
	return control
}

// ListenEverywhere opens the socket of an Answerer that answers at every address that its
// board has or will have, at Port.
func ListenEverywhere() (*net.UDPConn, error) {
	return net.ListenUDP("udp", &net.UDPAddr{Port: Port})
}

// ListenAt opens the socket of an Answerer that answers at one address. Several boards can:
// then the kernel as a rule gives the questions to the socket that was bound last.
func ListenAt(at netip.AddrPort) (*net.UDPConn, error) { return Listen(at, unix.SO_REUSEADDR, 1) }

// Listen opens a socket with an option of all sockets that is set before it is bound.
func Listen(at netip.AddrPort, option, value int) (*net.UDPConn, error) {
	var optionErr error
	config := net.ListenConfig{Control: func(_, _ string, raw syscall.RawConn) error {
		err := raw.Control(func(fd uintptr) { optionErr = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, option, value) })
		return errors.Join(err, optionErr)
	}}
	network := "udp4"
	if at.Addr().Is6() {
		network = "udp6"
	}
	conn, err := config.ListenPacket(context.Background(), network, at.String())
	if err != nil {
		return nil, fmt.Errorf("listen at %v: %w", at, err)
	}
	return conn.(*net.UDPConn), nil
}

// udp asks the Answerers at an address.
type udp struct {
	conn   *net.UDPConn
	target netip.AddrPort
	mark   [markLen]byte
	buf    [answerLen + 1]byte // of the goroutine that receives
}

// OverUDP returns a line from a socket to an address at which Answerers may be.
func OverUDP(conn *net.UDPConn, target netip.AddrPort) Line {
	l := &udp{conn: conn, target: target}
	rand.Read(l.mark[:])
	return l
}

func (l *udp) Ask(number uint32) error {
	question := binary.BigEndian.AppendUint32(l.mark[:markLen:markLen], number)
	_, err := l.conn.WriteToUDPAddrPort(question, l.target)
	return err
}

func (l *udp) Answer() (board int, err error) {
	for {
		n, from, err := l.conn.ReadFromUDPAddrPort(l.buf[:])
		if err != nil {
			return 0, err
		}
		// An answer from elsewhere helps no user.
		from = netip.AddrPortFrom(from.Addr().Unmap(), from.Port())
		if n == answerLen && from == l.target && [markLen]byte(l.buf[:markLen]) == l.mark {
			return int(binary.BigEndian.Uint16(l.buf[questionLen:])), nil
		}
	}
}

func (l *udp) Close() error { return l.conn.Close() }
