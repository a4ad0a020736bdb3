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
	if !l.client.Addr.Masked().Contains(addr) && !(l.client.Addr6.IsValid() && l.client.Addr6.Masked().Contains(addr)) {
		return fail(fmt.Errorf("the client (%s) has no route to it", l.client.Addr))
	}
	if err := l.answerOnce(); err != nil {
		return fail(err)
	}
	conn, err := l.listenAtClient(addr)
	if err != nil {
		return fail(err)
	}
	a, err := l.askThrough(observe.OverUDP(conn, netip.AddrPortFrom(addr, observe.Port)), interval)
	if err != nil {
		return fail(err)
	}
	return a, nil
}

// AskBy starts asking at an IPv4 address by a line that begins at a socket of the client. It ends as Ask does.
func (l *LAN) AskBy(from func(*net.UDPConn) observe.Line, interval time.Duration) (*observe.Asker, error) {
	conn, err := l.listenAtClient(l.client.Addr.Addr())
	if err != nil {
		return nil, err
	}
	return l.askThrough(from(conn), interval)
}

func (l *LAN) askThrough(line observe.Line, interval time.Duration) (*observe.Asker, error) {
	if err := l.whileOpen(func() error { l.atEnd(func() { line.Close() }); return nil }); err != nil {
		line.Close()
		return nil, err
	}
	return observe.StartAsker(line, interval), nil
}

// listenAtClient opens the socket from which the client asks at an address.
func (l *LAN) listenAtClient(addr netip.Addr) (*net.UDPConn, error) {
	any := netip.IPv4Unspecified()
	if addr.Is6() {
		any = netip.IPv6Unspecified()
	}
	return Within(l.client, func() (*net.UDPConn, error) {
		return observe.Listen(netip.AddrPortFrom(any, 0), unix.SO_SNDBUFFORCE, questionBuffer)
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
