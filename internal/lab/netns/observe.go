package netns

import (
	"fmt"
	"net"
	"net/netip"
	"time"

	"golang.org/x/sys/unix"

	"topdog/internal/lab/observe"
)

// questionBuffer is the client's socket send buffer. While the address has no
// owner the kernel keeps questions until ARP is resolved, at most
// net.ipv4.neigh.*.unres_qlen_bytes (212,992) of them, and then drops the
// oldest. With a send buffer no larger than that, writing would block instead.
const questionBuffer = 1 << 20

// Ask starts asking at an address of the LAN's subnet from the client, once every
// interval, usually a millisecond. The client's kernel does its usual ARP: it goes on
// sending to a dead board until it hears an announcement or gives up by itself.
// The asking ends with the Asker's Close or with the LAN.
func (l *LAN) Ask(addr netip.Addr, interval time.Duration) (*observe.Asker, error) {
	fail := func(err error) (*observe.Asker, error) {
		return nil, fmt.Errorf("netns: start to ask at %s: %w", addr, err)
	}
	if interval <= 0 {
		return fail(fmt.Errorf("interval %s: must be positive", interval))
	}
	if !l.client.Addr.Masked().Contains(addr) {
		return fail(fmt.Errorf("the client (%s) has no route to it", l.client.Addr))
	}
	if err := l.answerOnce(); err != nil {
		return fail(err)
	}
	a, err := l.AskBy(func(conn *net.UDPConn) observe.Line {
		return observe.OverUDP(conn, netip.AddrPortFrom(addr, observe.Port))
	}, interval)
	if err != nil {
		return fail(err)
	}
	return a, nil
}

// AskBy starts asking by a line that begins at a socket of the client. It ends as Ask does.
func (l *LAN) AskBy(from func(*net.UDPConn) observe.Line, interval time.Duration) (*observe.Asker, error) {
	conn, err := l.listenAtClient()
	if err != nil {
		return nil, err
	}
	line := from(conn)
	if err := l.whileOpen(func() error { l.atEnd(func() { line.Close() }); return nil }); err != nil {
		conn.Close()
		return nil, err
	}
	return observe.StartAsker(line, interval), nil
}

// listenAtClient opens the socket from which the client asks.
func (l *LAN) listenAtClient() (*net.UDPConn, error) {
	return Within(l.client, func() (*net.UDPConn, error) {
		return observe.Listen(netip.AddrPortFrom(netip.IPv4Unspecified(), 0), unix.SO_SNDBUFFORCE, questionBuffer)
	})
}

// answer makes every board answer at all of its addresses.
func (l *LAN) answer() error {
	for _, h := range l.boards {
		conn, err := Within(h, observe.ListenEverywhere)
		if err != nil {
			return fmt.Errorf("%s: %w", h.Name, err)
		}
		answerer := observe.StartAnswerer(conn, h.number, nil)
		l.atEnd(func() { answerer.Close() })
	}
	return nil
}
