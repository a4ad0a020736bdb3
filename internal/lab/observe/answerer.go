package observe

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
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
	oob := make([]byte, unix.CmsgSpace(unix.SizeofInet4Pktinfo))
	for {
		n, oobn, _, from, err := a.conn.ReadMsgUDPAddrPort(buf, oob)
		switch {
		case errors.Is(err, net.ErrClosed):
			return
		case err != nil, n != questionLen, reachable != nil && !reachable(), !replyFrom(oob[:oobn]):
			continue // A problem with one packet is a question without an answer.
		}
		binary.BigEndian.PutUint16(buf[questionLen:], board)
		// This fails if the address has just left the board: no answer.
		_, _, _ = a.conn.WriteMsgUDPAddrPort(buf, oob[:oobn], from)
	}
}

// replyFrom turns the control message of a received packet into that of its reply, in place:
// the same address as the source, and any interface, since the address may be on another one
// than that to which the packet came. A socket without such messages is bound to one address.
func replyFrom(oob []byte) bool {
	if len(oob) == 0 {
		return true
	}
	hdr, data, _, err := unix.ParseOneSocketControlMessage(oob)
	if err != nil || hdr.Level != unix.IPPROTO_IP || hdr.Type != unix.IP_PKTINFO || len(data) < unix.SizeofInet4Pktinfo {
		return false
	}
	info := (*unix.Inet4Pktinfo)(unsafe.Pointer(&data[0]))
	info.Ifindex = 0
	info.Spec_dst = info.Addr
	return true
}

// ListenEverywhere opens the socket of an Answerer that answers at every address that its
// board has or will have, at Port: the kernel tells to which one each question was sent (ip(7),
// IP_PKTINFO).
func ListenEverywhere() (*net.UDPConn, error) {
	return listen(netip.AddrPortFrom(netip.IPv4Unspecified(), Port), unix.IPPROTO_IP, unix.IP_PKTINFO)
}

// ListenAt opens the socket of an Answerer that answers at one address. Several boards can:
// then the kernel as a rule gives the questions to the socket that was bound last.
func ListenAt(at netip.AddrPort) (*net.UDPConn, error) {
	return listen(at, unix.SOL_SOCKET, unix.SO_REUSEADDR)
}

// listen opens a socket with an option that is set before it is bound.
func listen(at netip.AddrPort, level, option int) (*net.UDPConn, error) {
	var optionErr error
	config := net.ListenConfig{Control: func(_, _ string, raw syscall.RawConn) error {
		err := raw.Control(func(fd uintptr) { optionErr = unix.SetsockoptInt(int(fd), level, option, 1) })
		return errors.Join(err, optionErr)
	}}
	conn, err := config.ListenPacket(context.Background(), "udp4", at.String())
	if err != nil {
		return nil, fmt.Errorf("answer at %v: %w", at, err)
	}
	return conn.(*net.UDPConn), nil
}
