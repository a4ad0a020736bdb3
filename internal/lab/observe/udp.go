package observe

import (
	"crypto/rand"
	"encoding/binary"
	"net"
	"net/netip"
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
