package netio

import (
	"net/netip"
	"sync/atomic"
	"testing"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"

	"topdog/internal/lab/assert"
	"topdog/wire"
)

// inheritAs opens the sockets as the daemon of a holder with that configuration does. The holder has kept some.
func (b *board) inheritAs(t testing.TB, kept *heldSockets, tag wire.GroupTag, floating ...netip.Addr) *Conn {
	t.Helper()
	conn, err := on(b, func() (*Conn, error) {
		s := newSession(HolderOptions{Interface: "eth0", Floating: floating, Group: testGroup, Tag: tag, Method: HoldLifetime}, kept)
		if _, err := s.openSockets(socketsRequest{"eth0", b.addr}); err != nil {
			return nil, err
		}
		s.sender.Close()
		var passed []int
		for _, file := range kept.files() {
			copied, err := unix.FcntlInt(uintptr(file), unix.F_DUPFD_CLOEXEC, 0)
			if err != nil {
				return nil, err
			}
			passed = append(passed, copied)
		}
		return takeOver(Options{Interface: "eth0", Local: b.addr, Group: testGroup, Floating: floating}, passed, kept.unlimited)
	})
	must(t, err)
	t.Cleanup(func() { conn.Close() })
	return conn
}

// wantHears waits until a daemon hears what another host says to its own address and to the group.
func wantHears(t testing.TB, conn *Conn, from *board, tag wire.GroupTag) {
	t.Helper()
	var heard [2]atomic.Int64
	go conn.Serve(func(d Datagram) {
		switch d.Path {
		case PathUnicast:
			heard[0].Add(1)
		case PathMulticast:
			heard[1].Add(1)
		}
	})
	sender := openForeign(t, from)
	for i, to := range []netip.AddrPort{conn.self, testGroup} {
		eventually(t, "the board hears what is said to "+to.String(), func() bool {
			send(t, sender, 255, ofGroup(tag, 40), to)
			return heard[i].Load() > 0
		})
	}
}

// TestSocketsOfAFormerDaemon: a holder keeps its sockets while the daemon starts anew. They are of no use if the group or
// an address is another one, and what a daemon that was taken over has set on them is not there for the next one.
func TestSocketsOfAFormerDaemon(t *testing.T) {
	second := netip.MustParseAddr("10.77.0.201")
	one, both := []netip.Addr{testVIP}, []netip.Addr{testVIP, second}
	leave := func(int) error { return nil }
	for name, test := range map[string]struct {
		spoil    func(fd int) error
		tag      wire.GroupTag // of the next one
		floating []netip.Addr
	}{
		"another group":    {leave, testTag + 1, one},
		"another address":  {leave, testTag, both[1:]},
		"one address more": {leave, testTag, both},
		"the same":         {leave, testTag, one},
		"a filter that is locked": {func(fd int) error {
			if err := setFilter(fd, []bpf.Instruction{bpf.RetConstant{Val: 0}}); err != nil {
				return err
			}
			return unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_LOCK_FILTER, 1)
		}, testTag, one},
		"connected to nobody": {func(fd int) error {
			return unix.Connect(fd, &unix.SockaddrInet4{Port: 9, Addr: [4]byte{10, 77, 0, 9}})
		}, testTag, one},
		"no TTL":  {func(fd int) error { return unix.SetsockoptInt(fd, unix.IPPROTO_IP, unix.IP_RECVTTL, 0) }, testTag, one},
		"its end": {func(fd int) error { return unix.Shutdown(fd, unix.SHUT_RDWR) }, testTag, one},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLAN(t, 2)
			b := l.boards[0]
			kept := new(boardSockets).of(0)
			t.Cleanup(kept.close)
			first := b.inheritAs(t, kept, testTag, testVIP)
			b.do(t, func() error {
				for _, file := range kept.sockets {
					_ = test.spoil(file) // not every socket can be spoiled in every way
				}
				return nil
			})
			must(t, first.Close())
			conn := b.inheritAs(t, kept, test.tag, test.floating...)
			for i, bind := range conn.binds() {
				assert.Is(t, bind.to.String(), conn.sockets[i].LocalAddr().String(), "a socket is bound to")
			}
			wantHears(t, conn, l.boards[1], test.tag)
		})
	}
}

// TestNobodyElseGetsThePort: while the sockets of one daemon are replaced by those of the next, another user tries
// to bind to the group's port, in every way that the kernel offers.
func TestNobodyElseGetsThePort(t *testing.T) {
	t.Parallel()
	b := newLAN(t, 1).boards[0]
	kept := new(boardSockets).of(0)
	t.Cleanup(kept.close)
	must(t, b.inheritAs(t, kept, testTag, testVIP).Close())
	const stranger = 4711
	stop, got := make(chan struct{}), make(chan int)
	go func() {
		n := 0
		_ = b.in(func() error {
			if _, _, failed := unix.RawSyscall(unix.SYS_SETRESUID, stranger, stranger, stranger); failed != 0 {
				return failed
			}
			for {
				select {
				case <-stop:
					return nil
				default:
					n += bindAs(b.addr)
				}
			}
		})
		got <- n
	}()
	for range 200 {
		must(t, b.inheritAs(t, kept, testTag, testVIP).Close())
	}
	close(stop)
	assert.Is(t, 0, receive(t, "the end of the stranger", got), "how often somebody else has got the port")
}

// bindAs tries to bind a socket of this thread's user, and returns how many could be.
func bindAs(addr netip.Addr) (bound int) {
	for options := range 4 {
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return bound
		}
		_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, options&1)
		_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEPORT, options>>1)
		if unix.Bind(fd, &unix.SockaddrInet4{Port: int(testGroup.Port()), Addr: addr.As4()}) == nil {
			bound++
		}
		unix.Close(fd)
	}
	return bound
}
