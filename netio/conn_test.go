package netio

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"topdog/internal/lab/assert"
	"topdog/wire"
)

const testPort = 9254

var testGroup = wire.DefaultGroup

func TestOptionsValidate(t *testing.T) {
	good := Options{Interface: "eth0", Local: netip.MustParseAddr("10.0.0.1"), Group: testGroup}
	tests := []struct {
		name   string
		change func(*Options)
		want   string // part of the error
	}{
		{"good", func(*Options) {}, ""},
		{"IPv4 in IPv6 form", func(o *Options) { o.Local = netip.MustParseAddr("::ffff:10.0.0.1") }, ""},
		{"no interface", func(o *Options) { o.Interface = "" }, "no interface"},
		{"no address", func(o *Options) { o.Local = netip.Addr{} }, "own address must be an IPv4 address"},
		{"IPv6 address", func(o *Options) { o.Local = netip.MustParseAddr("fe80::1") }, `not "fe80::1"`},
		{"unicast group", func(o *Options) { o.Group = netip.MustParseAddrPort("10.0.0.2:9254") }, "10.0.0.2 is not an IPv4 multicast address"},
		{"no port", func(o *Options) { o.Group = netip.AddrPortFrom(testGroup.Addr(), 0) }, "0 is not a UDP port"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			o := good
			test.change(&o)
			err := o.validate()
			assert.ErrorContains(t, err, test.want, "")
		})
	}
}

// inbox collects what a Conn delivers.
type inbox struct {
	*Conn
	name string
	got  chan string
}

// pathNames are for what an inbox has heard.
var pathNames = [...]string{
	PathUnicast: "unicast", PathMulticast: "multicast", PathBroadcast: "broadcast", PathFloating: "floating",
}

// openInbox opens a Conn on a board and serves it until the test ends.
func openInbox(t testing.TB, name string, b *board, o Options) *inbox {
	t.Helper()
	c, err := b.open(o)
	must(t, err)
	return inboxOf(t, name, c)
}

// inbox opens the group's sockets of the board.
func (b *board) inbox(t testing.TB, floating ...netip.Addr) *inbox {
	t.Helper()
	return openInbox(t, b.addr.String(), b, b.options(floating...))
}

// elsewhere says whether a datagram has come by another interface.
func elsewhere(d Datagram) string {
	if d.Elsewhere {
		return " by another interface"
	}
	return ""
}

// inboxOf hears what comes by a Conn, which is closed in the end.
func inboxOf(t testing.TB, name string, c *Conn) *inbox {
	t.Helper()
	in := &inbox{Conn: c, name: name, got: make(chan string, 100)}
	ended := make(chan struct{}) // when nobody looks into the inbox any more, which may be full
	serve(t, c, func(d Datagram) {
		select {
		case in.got <- fmt.Sprintf("%s %q from %s", pathNames[d.Path], d.Data, d.From) + elsewhere(d):
		case <-ended:
		}
	})
	t.Cleanup(func() { close(ended) })
	return in
}

// serve has a Conn deliver what it hears until the test ends.
func serve(t testing.TB, c *Conn, deliver func(Datagram)) {
	t.Helper()
	var serving sync.WaitGroup
	serving.Go(func() { assert.ErrorIs(t, c.Serve(deliver), nil, "Serve of %v", c.self) })
	t.Cleanup(func() {
		must(t, c.Close())
		serving.Wait()
	})
}

func (in *inbox) expect(t testing.TB, want string) {
	t.Helper()
	assert.Is(t, want, receive(t, in.name+" to hear "+want, in.got), "%s hears", in.name)
}

// The demo: several boards in one process on loopback, with no privilege. They share the port for broadcasts as well.
func TestLoopback(t *testing.T) {
	var boards []*inbox
	for _, o := range onLoopback(3) {
		boards = append(boards, openInbox(t, o.Local.String(), nil, o))
	}
	a, b, c := boards[0], boards[1], boards[2]
	must(t, a.Multicast([]byte("hello")))
	b.expect(t, fmt.Sprintf(`multicast "hello" from %s`, a.self))
	c.expect(t, fmt.Sprintf(`multicast "hello" from %s`, a.self))
	must(t, b.Multicast([]byte("all")))
	// Had a heard its own hello, that would have been the first thing.
	a.expect(t, fmt.Sprintf(`multicast "all" from %s`, b.self))
	c.expect(t, fmt.Sprintf(`multicast "all" from %s`, b.self)) // and once only
	must(t, b.Unicast([]byte("hi"), a.self))
	a.expect(t, fmt.Sprintf(`unicast "hi" from %s`, b.self))
	must(t, a.Broadcast([]byte("to all")))
	b.expect(t, fmt.Sprintf(`broadcast "to all" from %s`, a.self))
	c.expect(t, fmt.Sprintf(`broadcast "to all" from %s`, a.self))
	must(t, b.Broadcast([]byte("back")))
	a.expect(t, fmt.Sprintf(`broadcast "back" from %s`, b.self))
}

// loopbackPair opens two Conns on loopback, which are closed in the end.
func loopbackPair(t testing.TB) (a, b *Conn) {
	t.Helper()
	var pair [2]*Conn
	for i, o := range onLoopback(len(pair)) {
		c, err := Open(o)
		must(t, err)
		t.Cleanup(func() { c.Close() })
		pair[i] = c
	}
	return pair[0], pair[1]
}

// onLoopback makes the options of n boards on loopback. Their port is a random
// one: other tests, and a demo, may be running on this machine at the same time.
func onLoopback(n int) (all []Options) {
	group := netip.AddrPortFrom(testGroup.Addr(), uint16(20_000+rand.N(10_000)))
	for i := range n {
		local := netip.AddrFrom4([4]byte{127, 77, 0, byte(i + 1)})
		all = append(all, Options{Interface: "lo", Local: local, Group: group, Shared: true})
	}
	return all
}

func TestSecondDaemon(t *testing.T) {
	l := newLAN(t, 1)
	o := l.boards[0].options()
	first, err := l.boards[0].open(o)
	must(t, err)
	defer first.Close()
	_, err = l.boards[0].open(o)
	assert.ErrorIs(t, err, unix.EADDRINUSE, "the second daemon")
	assert.ErrorContains(t, err, "another topdog", "the second daemon")
	// Nor may one with another address on the same link: it would hear the
	// group, and both would answer for this host.
	second := netip.MustParsePrefix("10.77.0.50/24")
	l.boards[0].addAddr(t, "eth0", second)
	other := o
	other.Local = second.Addr()
	_, err = l.boards[0].open(other)
	assert.ErrorIs(t, err, unix.EADDRINUSE, "a second daemon with another address")
	must(t, first.Close())
	l.boards[0].inbox(t) // that is possible again
}

// warmUp sends until the bridge forwards, and then takes in everything that was sent.
func warmUp(t testing.TB, from *inbox, to ...*inbox) {
	t.Helper()
	for _, in := range to {
		eventually(t, "the bridge forwards", func() bool {
			must(t, from.Multicast([]byte("hello")))
			return len(in.got) > 0
		})
	}
	must(t, from.Multicast([]byte("ready")))
	for _, in := range to {
		for !strings.Contains(receive(t, "the bridge to be ready", in.got), `"ready"`) {
		}
	}
}

// wantDropped wants a Conn to count this, and nothing else, of what is sent to it.
func wantDropped(t testing.TB, c *Conn, want Drops, send func()) {
	t.Helper()
	before := c.Drops()
	send()
	eventually(t, "the packet is counted", func() bool { return c.Drops() != before })
	want.WrongTTL += before.WrongTTL
	want.Short += before.Short
	want.Truncated += before.Truncated
	want.OtherGroup += before.OtherGroup
	want.LocalUser += before.LocalUser
	assert.Equal(t, want, c.Drops(), "drops")
}

func TestOnTheWire(t *testing.T) {
	l := newLAN(t, 2)
	a, b := l.boards[0].inbox(t), l.boards[1].inbox(t)
	const fromA = "from 10.77.0.1:9254"

	warmUp(t, a, b)
	must(t, a.Unicast([]byte("you"), b.self))
	b.expect(t, `unicast "you" `+fromA)

	t.Run("dropped", func(t *testing.T) {
		tests := []struct {
			name string
			ttl  int
			size int
			to   netip.AddrPort
			want Drops
		}{
			{"lower TTL to the group", 254, 7, testGroup, Drops{WrongTTL: 1}},
			{"lower TTL to the board", 64, 7, b.self, Drops{WrongTTL: 1}},
			{"too long", 64, wire.MaxPacket + 1, b.self, Drops{Truncated: 1}},
		}
		for _, test := range tests {
			t.Run(test.name, func(t *testing.T) {
				foreign := openForeign(t, l.boards[0])
				wantDropped(t, b.Conn, test.want, func() { send(t, foreign, test.ttl, make([]byte, test.size), test.to) })
				must(t, a.Multicast([]byte("end")))
				b.expect(t, `multicast "end" `+fromA)
			})
		}
	})

	// The neighbour group has our port, and even another process here that joined it.
	t.Run("other group", func(t *testing.T) {
		other := netip.MustParseAddr("224.0.0.253")
		joiner := openForeign(t, l.boards[1])
		must(t, join(joiner, other, l.boards[1].link(t, "eth0").Index))
		send(t, openForeign(t, l.boards[0]), 255, []byte("foreign"), netip.AddrPortFrom(other, testPort))
		// Packets of one socket are delivered in order, so the foreign one would come first.
		must(t, a.Multicast([]byte("end")))
		b.expect(t, `multicast "end" `+fromA)
	})

	t.Run("rejoin", func(t *testing.T) {
		must(t, leave(b.multicast, testGroup.Addr(), b.index))
		must(t, a.Multicast([]byte("lost")))
		must(t, b.Rejoin())
		must(t, a.Multicast([]byte("back")))
		b.expect(t, `multicast "back" `+fromA)
		must(t, b.Rejoin()) // being a member already is fine
		must(t, a.Multicast([]byte("again")))
		b.expect(t, `multicast "again" `+fromA)
	})

	t.Run("too long to send", func(t *testing.T) {
		assert.ErrorContains(t, a.Multicast(make([]byte, wire.MaxPacket+1)), "1473 bytes", "")
		must(t, a.Multicast(bytes.Repeat([]byte("x"), wire.MaxPacket)))
		b.expect(t, fmt.Sprintf(`multicast "%s" `+fromA, strings.Repeat("x", wire.MaxPacket)))
	})
}

// Every bad turn that the link can take gives ErrLinkDown, and the reader lives through them.
func TestLinkDown(t *testing.T) {
	l := newLAN(t, 2)
	board := l.boards[0]
	o := board.options()
	in := board.inbox(t)
	other := l.boards[1].inbox(t)
	eth0 := l.link(board.handle, "eth0")
	check := func(when string) {
		t.Helper()
		for _, err := range []error{in.Multicast([]byte("x")), in.Unicast([]byte("x"), other.self)} {
			assert.ErrorIs(t, err, ErrLinkDown, "%s, sending", when)
		}
	}

	must(t, board.handle.LinkSetDown(eth0))
	check("while the interface is switched off")
	must(t, board.handle.LinkSetUp(eth0))
	eventually(t, "packets arrive again", func() bool {
		must(t, other.Multicast([]byte("x")))
		return len(in.got) > 0
	})

	board.delAddr(t, "eth0", netip.PrefixFrom(board.addr, 24))
	check("without our address")
	_, err := board.open(o)
	assert.ErrorIs(t, err, ErrLinkDown, "opening without our address")

	must(t, board.handle.LinkDel(eth0))
	check("after the interface was deleted")
	assert.ErrorIs(t, in.Rejoin(), ErrLinkDown, "rejoining after the interface was deleted")
	_, err = board.open(o)
	assert.ErrorIs(t, err, ErrLinkDown, "opening without the interface")

	l.plug(board)
	must(t, in.Close())
	fresh := board.inbox(t)
	eventually(t, "packets arrive on the new interface", func() bool {
		must(t, other.Multicast([]byte("new")))
		return len(fresh.got) > 0
	})
}

// Neither direction allocates. The receiving goroutine's allocations are part
// of what AllocsPerRun counts, since it counts the whole process.
func TestNoAllocations(t *testing.T) {
	a, b := loopbackPair(t)
	received := make(chan struct{}, 10)
	serve(t, b, func(Datagram) { received <- struct{}{} })

	// Waiting with a deadline each time would itself allocate.
	watchdog := time.AfterFunc(testTimeout, func() { panic("packets got lost on loopback") })
	defer watchdog.Stop()
	packet := make([]byte, 40)
	send := func() {
		if a.Multicast(packet) != nil || a.Unicast(packet, b.self) != nil {
			t.Error("sending failed")
		}
		<-received
		<-received
	}
	send()
	assert.Is(t, 0.0, testing.AllocsPerRun(100, send), "allocations of a multicast and a unicast packet there and back")
}

func BenchmarkDatagram(b *testing.B) {
	from, to := loopbackPair(b)
	to.admission.inKernel = true // nothing limits what one board says
	received := make(chan struct{}, 1)
	serve(b, to, func(Datagram) { received <- struct{}{} })
	packet := make([]byte, 40)
	b.ReportAllocs()
	for b.Loop() {
		must(b, from.Multicast(packet))
		<-received
	}
}

// listen opens a plain socket on the board, as any other program might.
// TestHeardByTheOtherInterface: a board has cable and Wi-Fi in one network, and a neighbour believes that the address of the cable is at
// the Wi-Fi, since Linux answers ARP by both. What is sent to that address is heard, by the holder's sockets too, and is limited.
func TestHeardByTheOtherInterface(t *testing.T) {
	for _, held := range []bool{false, true} {
		l := newLAN(t, 2)
		b, neighbour := l.boards[0], l.boards[1]
		l.addSecond(t, b, "wlan0")
		b.addAddr(t, "wlan0", netip.MustParsePrefix("10.77.0.201/24"))
		must(t, neighbour.handle.NeighSet(&netlink.Neigh{
			LinkIndex: neighbour.link(t, "eth0").Index, IP: b.addr.AsSlice(), HardwareAddr: b.link(t, "wlan0").HardwareAddr,
			State: netlink.NUD_PERMANENT,
		}))
		var in *inbox
		if held {
			guard := b.startGuard(t, HoldLifetime)
			t.Cleanup(func() { guard.close() })
			in = inboxOf(t, "board", b.openSockets(t, guard))
		} else {
			in = b.inbox(t)
		}
		sender := neighbour.inbox(t)
		must(t, in.ByAnyInterface(true))
		to := netip.AddrPortFrom(b.addr, testGroup.Port())
		packet := make([]byte, wire.MinPacket)
		eventually(t, "the bridge forwards", func() bool {
			must(t, sender.Unicast(packet, to))
			return len(in.got) > 0
		})
		must(t, in.Unicast([]byte("the answer"), netip.AddrPortFrom(neighbour.addr, testGroup.Port())))
		if got, want := receive(t, "the answer", sender.got), heardAs("unicast", []byte("the answer"), b.addr); !strings.HasPrefix(got, want) {
			t.Errorf("the neighbour has heard %s, want %s", got, want)
		}
		last := bytes.Repeat([]byte{1}, wire.MinPacket)
		must(t, sender.Unicast(last, to))
		got := ""
		for !strings.HasPrefix(got, heardAs("unicast", last, neighbour.addr)) {
			got = receive(t, "the last one", in.got)
		}
		if !strings.HasSuffix(got, elsewhere(Datagram{Elsewhere: true})) {
			t.Errorf("it has come by the other interface, and is heard as %s", got)
		}
		must(t, in.ByAnyInterface(false))
		must(t, sender.Unicast(packet, to))
		must(t, sender.Multicast([]byte("later")))
		if got := receive(t, "what comes after it", in.got); !strings.HasPrefix(got, "multicast") {
			t.Errorf("%s is heard although it came by the other interface", got)
		}
		must(t, in.ByAnyInterface(true))
		eventually(t, "a flood is limited", func() bool {
			for range admissionBurst {
				must(t, sender.Unicast(packet, to))
			}
			for len(in.got) > 0 {
				<-in.got
			}
			return in.Drops().OverRate > 0
		})
	}
}

func (b *board) listen(t testing.TB, at netip.AddrPort) *net.UDPConn {
	t.Helper()
	conn, err := on(b, func() (*net.UDPConn, error) { return net.ListenUDP("udp", net.UDPAddrFromAddrPort(at)) })
	must(t, err)
	t.Cleanup(func() { conn.Close() })
	return conn
}

// openForeign opens such a socket at any port.
func openForeign(t testing.TB, b *board) *net.UDPConn {
	t.Helper()
	return b.listen(t, netip.AddrPortFrom(b.addr, 0))
}

// send says something by a plain socket, with this TTL.
func send(t testing.TB, c *net.UDPConn, ttl int, data []byte, to netip.AddrPort) {
	t.Helper()
	option := unix.IP_TTL
	if to.Addr().IsMulticast() {
		option = unix.IP_MULTICAST_TTL
	}
	raw, err := c.SyscallConn()
	must(t, err)
	must(t, raw.Control(func(fd uintptr) { must(t, unix.SetsockoptInt(int(fd), unix.IPPROTO_IP, option, ttl)) }))
	_, err = c.WriteToUDPAddrPort(data, to)
	must(t, err)
}

// TestSendsToTheLinkOnly: what is for an address elsewhere does not reach the gateway, and a board of
// another subnet that is on the link does hear it.
func TestSendsToTheLinkOnly(t *testing.T) {
	l := newLAN(t, 2)
	a, gateway := l.boards[0], l.boards[1]
	other := netip.MustParsePrefix("10.78.0.5/24")
	gateway.addAddr(t, "eth0", other)
	must(t, a.handle.RouteAdd(&netlink.Route{LinkIndex: a.link(t, "eth0").Index, Gw: gateway.addr.AsSlice()}))
	conn := a.inbox(t)
	heard := openInbox(t, "the other subnet", gateway, Options{Interface: "eth0", Local: other.Addr(), Group: testGroup})
	warmUp(t, conn, heard)
	passing := listenIPv4(t, gateway)

	must(t, conn.Unicast([]byte("far"), netip.MustParseAddrPort("8.8.8.8:9254")))
	must(t, conn.Unicast([]byte("near"), heard.self))
	heard.expect(t, `unicast "near" from 10.77.0.1:9254`)
	// Both would have come by the same queue, in their order.
	for {
		switch to := passing(); to {
		case heard.self.Addr():
			return
		case netip.MustParseAddr("8.8.8.8"):
			t.Error("the gateway got what was for 8.8.8.8")
		}
	}
}

// listenIPv4 returns a function that waits for the next IPv4 packet at a board, and returns its destination.
func listenIPv4(t testing.TB, b *board) func() netip.Addr {
	t.Helper()
	fd, err := on(b, func() (int, error) {
		return unix.Socket(unix.AF_PACKET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, int(htons(unix.ETH_P_IP)))
	})
	must(t, err)
	t.Cleanup(func() { unix.Close(fd) })
	patience := unix.NsecToTimeval(int64(testTimeout))
	must(t, unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &patience))
	return func() netip.Addr {
		var header [20]byte
		_, _, err := unix.Recvfrom(fd, header[:], 0)
		must(t, err)
		return netip.AddrFrom4([4]byte(header[16:20]))
	}
}
