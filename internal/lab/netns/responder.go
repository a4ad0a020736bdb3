package netns

import (
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"
)

// responderPort is where the boards answer. It is that of the echo service
// (RFC 862), which no program on a board of ours uses.
const responderPort = 7

// A question is 8 bytes that the responder does not look into. The answer is
// the question followed by the number of the board, 16 bits, big-endian.
const (
	questionLen = 8
	answerLen   = questionLen + 2
)

// responders are the services that answer the Probers, one per board. They
// belong to this process, so that no test of a daemon can kill or freeze them;
// but they share the board's network with all that happens to it.
type responders struct {
	mu    sync.Mutex
	conns []*net.UDPConn
	wg    sync.WaitGroup
}

// start makes every board answer, if it doesn't yet.
func (r *responders) start(boards []*Host) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, h := range boards[len(r.conns):] {
		var conn *net.UDPConn
		err := h.Do(func() (err error) {
			conn, err = listenWithDestination(responderPort)
			return err
		})
		if err != nil {
			// The boards that have a responder by now keep it.
			return fmt.Errorf("start the responder of %s: %w", h.Name, err)
		}
		r.conns = append(r.conns, conn)
		r.wg.Go(func() { respond(conn, h.number) })
	}
	return nil
}

func (r *responders) close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range r.conns {
		c.Close()
	}
	r.wg.Wait()
}

// listenWithDestination opens a UDP socket on all addresses that reports to
// which one each packet was sent (IP_PKTINFO).
func listenWithDestination(port int) (*net.UDPConn, error) {
	conn, err := net.ListenUDP("udp4", &net.UDPAddr{Port: port})
	if err != nil {
		return nil, err
	}
	if err := setSocketOption(conn, unix.IPPROTO_IP, unix.IP_PKTINFO, 1); err != nil {
		conn.Close()
		return nil, fmt.Errorf("set IP_PKTINFO: %w", err)
	}
	return conn, nil
}

func setSocketOption(conn *net.UDPConn, level, option, value int) error {
	raw, err := conn.SyscallConn()
	if err != nil {
		return err
	}
	if ctlErr := raw.Control(func(fd uintptr) {
		err = unix.SetsockoptInt(int(fd), level, option, value)
	}); ctlErr != nil {
		return ctlErr
	}
	return err
}

// respond answers until the socket is closed.
func respond(conn *net.UDPConn, board int) {
	buf := make([]byte, answerLen)
	oob := make([]byte, unix.CmsgSpace(unix.SizeofInet4Pktinfo))
	for {
		n, oobn, _, from, err := conn.ReadMsgUDPAddrPort(buf, oob)
		if err != nil {
			if isClosed(err) {
				return
			}
			continue // Trouble with one packet is a question without an answer.
		}
		if n != questionLen || !replyFrom(oob[:oobn]) {
			continue
		}
		binary.BigEndian.PutUint16(buf[questionLen:], uint16(board))
		// This fails if the address has just left the board: no answer.
		_, _, _ = conn.WriteMsgUDPAddrPort(buf[:answerLen], oob[:oobn], from)
	}
}

// replyFrom turns the control message of a received packet into that of its
// reply, in place: the same address as the source, any interface as the way
// (the address may be on another one than that to which the packet came).
func replyFrom(oob []byte) bool {
	hdr, data, _, err := unix.ParseOneSocketControlMessage(oob)
	if err != nil || hdr.Level != unix.IPPROTO_IP || hdr.Type != unix.IP_PKTINFO || len(data) < unix.SizeofInet4Pktinfo {
		return false
	}
	info := (*unix.Inet4Pktinfo)(unsafe.Pointer(&data[0]))
	info.Ifindex = 0
	info.Spec_dst = info.Addr
	return true
}

// probeTarget is where questions to an address go.
func probeTarget(addr netip.Addr) netip.AddrPort { return netip.AddrPortFrom(addr, responderPort) }
