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

	"golang.org/x/net/ipv4"
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
	conn *ipv4.PacketConn
	wg   sync.WaitGroup
}

// StartAnswerer starts to answer on a socket, which it closes in the end. A board for which reachable
// is false hears no question; nil means that it always does.
func StartAnswerer(conn *net.UDPConn, board int, reachable func() bool) *Answerer {
	a := &Answerer{conn: ipv4.NewPacketConn(conn)}
	// The kernel tells to which address each question was sent (ip(7), IP_PKTINFO). It refuses only for a closed socket.
	_ = a.conn.SetControlMessage(ipv4.FlagDst, true)
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
	buf := make([]byte, answerLen)
	for {
		n, asked, from, err := a.conn.ReadFrom(buf)
		switch {
		case errors.Is(err, net.ErrClosed):
			return
		case err != nil, n != questionLen, reachable != nil && !reachable():
			continue // A problem with one packet is a question without an answer.
		}
		binary.BigEndian.PutUint16(buf[questionLen:], board)
		var by *ipv4.ControlMessage
		if asked != nil { // else nobody knows where it came from, and the kernel decides
			// By any interface, since the address may be on another one than that to which the question came.
			by = &ipv4.ControlMessage{Src: asked.Dst}
		}
		// This fails if the address has just left the board: no answer.
		_, _ = a.conn.WriteTo(buf, by, from)
	}
}

// ListenEverywhere opens the socket of an Answerer that answers at every address that its
// board has or will have, at Port.
func ListenEverywhere() (*net.UDPConn, error) {
	return net.ListenUDP("udp4", &net.UDPAddr{Port: Port})
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
	conn, err := config.ListenPacket(context.Background(), "udp4", at.String())
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
