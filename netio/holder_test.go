package netio

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"topdog/internal/lab/assert"
	"topdog/internal/lab/judge"
	"topdog/internal/lab/netns"
	"topdog/wire"
)

// holderWord on its command line makes the test binary a holder.
const holderWord = "holder"

var holderCommand = []string{"/proc/self/exe", holderWord}

// attend is the test binary as a holder, which removes addresses sooner than the kernel. It returns its exit status.
func attend() int {
	if err := attendHolder(longLease); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// testResign is any datagram: netio does not look into it. It has bytes that JSON would not carry as they are.
var testResign = []byte("the RESIGN \x00\xff\xfe\n")

// longLease is longer than any test.
const longLease = time.Hour

// heardAs is how an inbox says which datagram it has heard, but for the sender's port.
func heardAs(way string, datagram []byte, from netip.Addr) string {
	return fmt.Sprintf("%s %q from %s:", way, datagram, from)
}

// guardedBoard is a board with a daemon in this process, whose holder has the address, and a neighbour that hears what
// becomes of it.
type guardedBoard struct {
	*board
	*guard
	conn      *inbox
	neighbour *inbox
}

// newGuardedBoard makes a board that holds the address, with a lifetime so long that only a holder removes it. Its
// lease has no end.
func newGuardedBoard(t testing.TB, method HoldMethod) *guardedBoard {
	t.Helper()
	if method == HoldTUN {
		needTUN(t)
	}
	l := newLAN(t, 2)
	b := &guardedBoard{board: l.boards[0]}
	other := l.boards[1]
	b.neighbour = other.inbox(t)
	b.guard = b.startGuard(t, method)
	t.Cleanup(func() { b.close() })
	conn := b.openSockets(t, b.guard)
	b.conn = inboxOf(t, "board", conn)
	b.untilHeard(t, conn)
	must(t, b.prepare(testResign))
	b.arm()
	must(t, b.floating.Acquire())
	return b
}

func (b *board) openSockets(t testing.TB, g *guard) *Conn {
	t.Helper()
	conn, err := on(b, func() (*Conn, error) {
		return g.OpenSockets(b.options(testVIP))
	})
	must(t, err)
	return conn
}

// untilHeard waits until the neighbour hears the board, and has heard all that was said to find out.
func (b *guardedBoard) untilHeard(t testing.TB, conn *Conn) {
	t.Helper()
	said := ""
	eventually(t, "the neighbour hears the board", func() bool {
		if len(b.neighbour.got) == 0 {
			said += "."
			must(t, conn.Multicast([]byte(said)))
		}
		return len(b.neighbour.got) > 0
	})
	for last := heardAs("multicast", []byte(said), b.addr); ; {
		if strings.HasPrefix(receive(t, "the last one", b.neighbour.got), last) {
			return
		}
	}
}

// prepare has the holder know what to send to the group and to the neighbour.
func (b *guardedBoard) prepare(datagram []byte) error {
	return b.Prepare(PreparedResign{Datagram: datagram, To: []netip.AddrPort{testGroup, b.neighbour.self}})
}

// guard is a holder as a daemon has it.
type guard struct {
	*Holder
	fence    *HeldFence
	floating *HeldAddresses
}

// startGuard starts a holder on the board, and has it prepare to hold the address.
func (b *board) startGuard(t testing.TB, method HoldMethod) *guard {
	t.Helper()
	g, err := on(b, func() (*guard, error) { return startGuard(method) })
	must(t, err)
	return g
}

func startGuard(method HoldMethod) (g *guard, err error) {
	g = &guard{}
	if g.Holder, err = StartHolder(holderCommand, HolderOptions{
		Interface: "eth0", Floating: []netip.Addr{testVIP}, Group: testGroup, Method: method,
	}); err != nil {
		return nil, err
	}
	return g, g.prepare()
}

// prepare opens what a daemon needs to lead.
func (g *guard) prepare() (err error) { return g.prepareTo(testVIP) }

func (g *guard) prepareTo(hold netip.Addr) (err error) {
	if g.fence, err = g.OpenFence(); err != nil {
		return err
	}
	g.floating, err = g.OpenFloating("eth0", []netip.Prefix{netip.PrefixFrom(hold, 32)})
	return err
}

// extend has a lease end then, and the holder look then.
func extend(f interface {
	Extend(end, wake time.Duration) bool
}, end time.Duration) bool {
	return f.Extend(end, end)
}

func (g *guard) arm()                          { g.fence.Begin(NoEnd) }
func (g *guard) extend(end time.Duration) bool { return extend(g.fence, end) }
func (g *guard) fired() bool                   { return g.fence.Fired() }

// disarm is what a daemon does that releases the addresses, but for the release.
func (g *guard) disarm() (inTime bool) {
	inTime = g.fence.Shut()
	g.fence.Released()
	return inTime
}

func (g *guard) close() error {
	err := g.Close()
	return errors.Join(err, g.fence.Close())
}

// wantResign wants the neighbour to hear the RESIGN both ways before anything else.
func (b *guardedBoard) wantResign(t testing.TB) {
	t.Helper()
	missing := map[string]bool{
		heardAs("multicast", testResign, b.addr): true,
		heardAs("unicast", testResign, b.addr):   true,
	}
	for len(missing) > 0 {
		got := receive(t, "the RESIGN", b.neighbour.got)
		before, port, _ := strings.Cut(got, b.addr.String()+":")
		switch what := before + b.addr.String() + ":"; {
		case port == strconv.Itoa(int(testGroup.Port())):
			t.Fatalf("heard %s: a RESIGN must leave the port of the group free", got)
		case what != heardAs("multicast", testResign, b.addr) && what != heardAs("unicast", testResign, b.addr):
			t.Fatalf("heard %s, want the RESIGN", got)
		default:
			delete(missing, what)
		}
	}
	assert.Is(t, 0, b.neighbour.Drops().WrongTTL, "datagrams with another TTL than 255")
}

// wantQuiet wants the neighbour to have heard nothing of a holder that has ended.
func (b *guardedBoard) wantQuiet(t testing.TB) {
	t.Helper()
	marker := []byte("nothing came before this")
	must(t, b.conn.Multicast(marker))
	if got := receive(t, "the marker", b.neighbour.got); !strings.HasPrefix(got, heardAs("multicast", marker, b.addr)) {
		t.Errorf("the neighbour heard %s", got)
	}
}

func (b *guardedBoard) holds(t testing.TB) bool { return b.has(t, "", testVIP) }

// wantHeld wants that the lease has not run out, and that the address is there.
func (b *guardedBoard) wantHeld(t testing.TB) {
	t.Helper()
	assert.Is(t, false, b.fired(), "the lease has run out")
	assert.Is(t, true, b.holds(t), "the address is there")
}

// TestCloseTellsNobody: a daemon that has no lease when it closes its holder has told the others itself.
func TestCloseTellsNobody(t *testing.T) {
	eachMethod(t, func(t *judge.T, method HoldMethod) {
		b := newGuardedBoard(t, method)
		b.disarm()
		must(t, b.Close())
		must(t, b.Close()) // may be called twice
		receive(t, "the end of the holder", b.Lost())
		assert.Is(t, false, b.holds(t), "the address is there")
		b.wantQuiet(t)
	})
}

// TestMainConnectionNeverWaits: what takes long is refused where the dead man's switch would have to wait for it.
func TestMainConnectionNeverWaits(t *testing.T) { judge.RunTogether(t, testMainConnectionNeverWaits) }

func testMainConnectionNeverWaits(t *judge.T) {
	b := newGuardedBoard(t, HoldLifetime)
	for asked, body := range map[holderRequest]any{
		askProbe: probeRequest{testVIP, maxProbes, answerWithin}, askGateway: gatewayRequest{"eth0", maxGatewayWait},
		askCover: coverRequest{}, askRenew: nil, askPing: nil,
	} {
		_, err := b.ask(asked, body, nil, answerWithin)
		assert.ErrorContains(t, err, "another connection", "request %d on the connection of the loop", asked)
	}
	must(t, b.floating.Release()) // it goes on
}

// TestEndOfALease: whatever was before, the holder removes what it has added, and says what was prepared for this lease.
func TestEndOfALease(t *testing.T) {
	for _, test := range []struct {
		name   string
		method HoldMethod
		before func(t testing.TB, b *guardedBoard)
		quiet  bool // there is nobody to tell
	}{
		{"several RESIGNs were prepared at once", HoldLifetime, func(t testing.TB, b *guardedBoard) {
			for range 20 {
				must(t, b.prepare([]byte("a former RESIGN")))
			}
			must(t, b.prepare(testResign))
		}, false},
		{"no RESIGN", HoldTUN, func(t testing.TB, b *guardedBoard) { must(t, b.Prepare(PreparedResign{})) }, true},
		{"the RESIGN of a former lease", HoldTUN, func(t testing.TB, b *guardedBoard) {
			b.disarm()
			must(t, b.floating.Release())
			b.arm()
			must(t, b.floating.Acquire())
		}, true},
		{"somebody has removed the address", HoldLifetime, func(t testing.TB, b *guardedBoard) {
			must(t, removeAddress(b.handle, b.link(t, "eth0").Index, testVIP))
		}, false},
		// As a service manager tells every process, or a terminal. Only the daemon decides when to go.
		{"told to end", HoldLifetime, func(t testing.TB, b *guardedBoard) {
			for _, s := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGABRT, syscall.SIGPIPE} {
				must(t, syscall.Kill(b.PID(), s))
			}
		}, false},
	} {
		t.Run(test.name, judged(func(t *judge.T) {
			b := newGuardedBoard(t, test.method)
			test.before(t, b)
			b.extend(Now() + time.Millisecond)
			eventually(t, "the address is gone", func() bool { return !b.holds(t) })
			if !test.quiet {
				b.wantResign(t)
			}
			assert.Is(t, true, b.has(t, "eth0", b.addr), "the board has its own address")
			assert.Is(t, false, b.isLost(), "the holder has ended")
			must(t, b.Close())
			if test.quiet {
				b.wantQuiet(t)
			}
		}))
	}
}

func TestResignTooLong(t *testing.T) { judge.RunTogether(t, testResignTooLong) }

func testResignTooLong(t *judge.T) {
	b := newGuardedBoard(t, HoldLifetime)
	full := PreparedResign{Datagram: make([]byte, wire.MaxPacket)}
	for n := range 256 {
		full.To = append(full.To, netip.AddrPortFrom(netip.AddrFrom4([4]byte{192, 168, 254, byte(n)}), 65535))
	}
	assert.ErrorIs(t, b.Prepare(full), nil, "a full group")
	full.Datagram = make([]byte, maxRequestBytes)
	err := b.Prepare(full)
	assert.ErrorContains(t, err, "too long for the holder (at most 16383)", "too much")
	assert.Is(t, true, !b.fired() && b.extend(Now()+longLease), "the lease lasts, and can be extended")
}

// TestHolderStandsStill has a holder sleep over the end of a lease that was extended meanwhile, and of one that was not.
func TestHolderStandsStill(t *testing.T) {
	const lease = 20 * time.Millisecond
	for _, extended := range []bool{true, false} {
		t.Run(fmt.Sprintf("extended=%t", extended), judged(func(t *judge.T) {
			b := newGuardedBoard(t, HoldLifetime)
			b.extend(Now() + longLease)
			freeze(t, b.PID())
			b.extend(Now() + lease)
			until(Now() + 2*lease)
			b.wantHeld(t)
			if extended {
				assert.Is(t, true, b.extend(Now()+longLease), "a lease that nobody has ended can be extended")
			}
			must(t, syscall.Kill(b.PID(), syscall.SIGCONT))
			if !extended {
				eventually(t, "the address is gone", func() bool { return !b.holds(t) })
				b.wantResign(t)
				return
			}
			until(Now() + lease)
			b.wantHeld(t)
		}))
	}
}

// TestMachineFrozen has both processes of a board stand still over the end of a lease, and go
// on at the same time: then the daemon is given a moment to extend it.
func TestMachineFrozen(t *testing.T) { judge.RunTogether(t, testMachineFrozen) }

func testMachineFrozen(t *judge.T) {
	const lease = 10 * time.Millisecond
	b := newGuardedBoard(t, HoldLifetime)
	extended := 0
	for round := range 20 {
		b.extend(Now() + longLease)
		freeze(t, b.PID())
		b.extend(Now() + lease)
		until(Now() + lease + 2*machineFrozenAfter)
		must(t, syscall.Kill(b.PID(), syscall.SIGCONT))
		// From the moment at which the holder goes on to when it waits.
		for until := Now() + time.Duration(round)*40*time.Microsecond; Now() < until; {
			runtime.Gosched()
		}
		if !b.extend(Now() + longLease) {
			// This process was slow: the machine is busy.
			eventually(t, "the address is gone", func() bool { return !b.holds(t) })
			b.disarm()
			b.arm()
			must(t, b.floating.Acquire())
			continue
		}
		extended++
		if round%4 == 0 {
			until(Now() + 2*daemonWakes)
		}
		b.wantHeld(t)
	}
	if extended == 0 {
		t.Error("the daemon never came in time")
	}
	t.Logf("came in time %d times", extended)
}

// announcingBoard returns a board that holds the address and announces it, and a function that counts how often the
// neighbour hears that while something is done, and in a tenth of a second afterwards.
func announcingBoard(t *judge.T) (b *guardedBoard, a *HeldAnnouncer, heard func(do ...func() error) int) {
	t.Helper()
	l := newLAN(t, 2)
	b = &guardedBoard{board: l.boards[0]}
	other := openTestAnnouncer(t, l.boards[1])
	claims := make(chan string, 64)
	other.Rivals([]netip.Addr{testVIP}, func(_ netip.Addr, mac net.HardwareAddr) { claims <- mac.String() })
	b.guard = b.startGuard(t, HoldLifetime)
	t.Cleanup(func() { b.close() })
	must(t, b.openSockets(t, b.guard).Close())
	a, err := b.OpenAnnouncer(b.link(t, "eth0").Index)
	must(t, err)
	b.arm()
	must(t, b.floating.Acquire())
	eventually(t, "the bridge forwards", func() bool {
		a.AnnounceAnew()
		return len(claims) > 0
	})
	heard = func(do ...func() error) (n int) {
		t.Helper()
		for len(claims) > 0 {
			<-claims
		}
		for _, do := range do {
			must(t, do())
		}
		for wait := time.After(100 * time.Millisecond); ; {
			select {
			case <-claims:
				n++
			case <-wait:
				return n
			}
		}
	}
	heard() // what is still on its way
	return b, a, heard
}

// heardOnce is how many packets an announcement has.
var heardOnce = len(announcements(testVIP))

// TestAcquiringAnnounces: the neighbours hear of an address that was acquired without a request for it, and of none that was
// released.
func TestAcquiringAnnounces(t *testing.T) {
	t.Parallel()
	judge.RunTogether(t, testAcquiringAnnounces)
}

func testAcquiringAnnounces(t *judge.T) {
	b, a, heard := announcingBoard(t)
	announce := func() error { a.AnnounceAnew(); return nil }
	acquire, release := b.floating.Acquire, b.floating.Release
	type does []func() error
	for what, c := range map[string]struct {
		do   does
		want int
	}{
		"announced":                    {does{announce}, heardOnce},
		"acquired":                     {does{acquire}, heardOnce},
		"acquired, announced":          {does{acquire, announce}, 2 * heardOnce},
		"acquired, released, acquired": {does{acquire, release, acquire}, 2 * heardOnce},
		"released, announced":          {does{release, announce}, 0},
	} {
		assert.Is(t, c.want, heard(c.do...), "%s: how often the neighbour hears it", what)
		heard(acquire) // so that each begins with an address that is held
	}
	_, err := b.OpenAnnouncer(b.link(t, "eth0").Index)
	must(t, err)
	assert.Is(t, heardOnce, heard(acquire), "how often the neighbour hears it on a link that came back")
}

// TestNothingWithoutALease: a daemon that may not answer for the address gets it neither added nor renewed nor announced,
// whatever it asks.
func TestNothingWithoutALease(t *testing.T) {
	for name, end := range map[string]func(b *guardedBoard){
		"released": func(b *guardedBoard) { b.disarm() },
		"ended":    func(b *guardedBoard) { b.fence.Shut() },
	} {
		t.Run(name, judged(func(t *judge.T) {
			b, a, heard := announcingBoard(t)
			announce := func() error { a.AnnounceAnew(); return nil }
			assert.Is(t, heardOnce, heard(announce), "how often the neighbour hears it")
			_, err := b.floating.Renew()
			must(t, err)
			end(b)
			assert.Is(t, 0, heard(announce), "how often the neighbour hears it without a lease")
			must(t, b.floating.Release())
			assert.ErrorIs(t, b.floating.Acquire(), ErrNotHeld, "acquired")
			_, err = b.floating.Renew()
			assert.ErrorIs(t, err, ErrNotHeld, "renewed")
			assert.Is(t, 0, heard(announce), "how often the neighbour hears it without the address")
			assert.Is(t, false, b.holds(t), "the address is there")
		}))
	}
}

// TestNoAnnouncementAfterTheLease: a lease that is over may go on. Until then the neighbours are told nothing, and then at
// once, without a request.
func TestNoAnnouncementAfterTheLease(t *testing.T) {
	judge.RunTogether(t, testNoAnnouncementAfterTheLease)
}

func testNoAnnouncementAfterTheLease(t *judge.T) {
	b, a, heard := announcingBoard(t)
	announce := func() error { a.AnnounceAnew(); return nil }
	b.fence.Extend(Now(), Now()+longLease)
	assert.Is(t, 0, heard(announce, b.floating.Acquire), "how often the neighbour hears it after the end of the lease")
	goesOn := func() error {
		assert.Is(t, true, b.extend(Now()+longLease), "a lease that nobody has ended can be extended")
		return nil
	}
	assert.Is(t, heardOnce, heard(goesOn), "how often the neighbour hears it when the lease goes on")
}

// ownSession is what a holder has, in this process, with these prefixes in its configuration.
func ownSession(prefixes ...netip.Prefix) *session {
	return newSession(HolderOptions{
		Interface: "eth0", Floating: []netip.Addr{testVIP}, Prefixes: prefixes, Group: testGroup, Method: HoldLifetime,
	}, new(boardSockets).of(0))
}

// prepares has it prepare an address as for a daemon that asks for that.
func (s *session) prepares(address netip.Prefix) error {
	_, err := s.openFloating(floatingRequest{"eth0", []netip.Prefix{address}})
	return err
}

// TestHolderRefuses: a daemon that somebody has taken over gets nothing done but what is configured.
func TestHolderRefuses(t *testing.T) { judge.RunTogether(t, testHolderRefuses) }

func testHolderRefuses(t *judge.T) {
	b := newGuardedBoard(t, HoldLifetime)
	eth0 := b.link(t, "eth0").Index
	other := netip.MustParseAddr("10.77.0.99")
	a, err := b.OpenAnnouncer(eth0)
	must(t, err)
	sockets := func(iface string, local netip.Addr) error {
		_, err := b.OpenSockets(Options{Interface: iface, Local: local, Group: testGroup})
		return err
	}
	floating := func(iface string, addr netip.Addr, bits int) error {
		_, err := b.OpenFloating(iface, []netip.Prefix{netip.PrefixFrom(addr, bits)})
		return err
	}
	do := func(request holderRequest, body string) error {
		_, files, err := b.main.call(request, []byte(body), answerWithin, nil)
		closeAll(files)
		return err
	}
	announcer := func(index int) error { _, err := b.OpenAnnouncer(index); return err }
	frames := func(index int) error { return a.Doubt(Doubt{Port: index}) }
	ask := func(addr string) error { return a.Ask([]ARPQuestion{{Addr: netip.MustParseAddr(addr)}}) }
	ignore := func(addr string) error {
		return a.Doubt(Doubt{Port: eth0, Ignored: []netip.Addr{netip.MustParseAddr(addr)}})
	}
	watch := func(addr netip.Addr, every time.Duration) error {
		return a.Watch(AddressWatch{Addr: addr, Every: every})
	}
	fence := func() error { _, err := b.OpenFence(); return err }
	probe := func(addr netip.Addr) error { _, _, err := a.Probe(t.Context(), addr, 1, time.Millisecond); return err }
	for want, err := range map[string]error{
		"the holder works on eth0 and not on lo":                 sockets("lo", netip.MustParseAddr("127.0.0.1")),
		"the holder works on eth0 and not on lo: restart":        announcer(loopback),
		"the holder works on eth0 and not on lo: restart topdog": frames(loopback),
		"the holder works on eth0":                               floating("lo", testVIP, 24),
		"is a floating address, and no board's own":              sockets("eth0", testVIP),
		"10.77.0.100 is a floating address":                      sockets("eth0", netip.AddrFrom16(testVIP.As16())),
		"eth0 has no address 10.77.0.99":                         sockets("eth0", other),
		"the holder does not hold 10.77.0.99":                    floating("eth0", other, 24),
		"10.77.0.100/24 is not what the holder":                  floating("eth0", testVIP, 24),
		"10.77.0.100/0 is not":                                   floating("eth0", testVIP, 0),
		"2001:db8::1 is no IPv4 address":                         ask("2001:db8::1"),
		"::ffff:10.77.0.2 is no IPv4 address":                    ask("::ffff:10.77.0.2"),
		"fe80::1%eth0 is no IPv4 address":                        a.Resolve(netip.MustParseAddr("fe80::1%eth0")),
		"2001:db8::2 is no IPv4 address":                         ignore("2001:db8::2"),
		"invalid IP is no IPv4 address":                          a.Ask([]ARPQuestion{{}}),
		"65 questions are too many (at most 64)":                 a.Ask(make([]ARPQuestion, maxQuestions+1)),
		"the holder does not probe for 10.77.0.99":               probe(other),
		"the holder does not watch 10.77.0.99":                   watch(other, 10*time.Millisecond),
		"the holder does not watch 10.77.0.100 every 1ms (2":     watch(testVIP, time.Millisecond),
		"the holder does not watch 10.77.0.100 every 11s":        watch(testVIP, 11*time.Second),
		"asking 01:02 for it by ARP is impossible":               a.Watch(AddressWatch{testVIP, net.HardwareAddr{1, 2}, time.Second}),
		"the fence was made already":                             fence(),
		"the holder knows no request 200":                        do(200, ""),
		"read a request to the holder: ParseAddr":                do(askLAN, `{"Resolve":"10.77"}`),
		"the link is down (no such interface)":                   announcer(4711),
		"0 files came with a side socket":                        do(askSideSocket, ""),
		"read a request to the holder: invalid character":        do(askResign, "x"),
	} {
		assert.ErrorContains(t, err, want, "")
	}
	assert.Is(t, false, b.isLost(), "the holder is lost by a refusal")
	b.wantHeld(t)
}

// TestOtherInterface: the address belongs to another interface now, so the daemon prepares it there. It goes from the first one.
func TestOtherInterface(t *testing.T) {
	eachMethod(t, func(t *judge.T, method HoldMethod) {
		l := newLAN(t, 1)
		b := l.boards[0]
		l.addSecond(t, b, "wlan0")
		b.addAddr(t, "wlan0", netip.MustParsePrefix("10.77.0.201/24"))
		floating := []netip.Prefix{netip.PrefixFrom(testVIP, 32)}
		h, err := on(b, func() (*Holder, error) {
			return StartHolder(holderCommand, HolderOptions{Floating: []netip.Addr{testVIP}, Group: testGroup, Method: method})
		})
		must(t, err)
		defer h.Close()
		fence, err := h.OpenFence()
		must(t, err)
		defer fence.Close()
		fence.Begin(NoEnd)
		var held *HeldAddresses
		for _, iface := range []string{"eth0", "wlan0"} {
			if held, err = h.OpenFloating(iface, floating); err != nil {
				t.Fatal(err)
			}
			assert.Is(t, false, b.has(t, "", testVIP), "there before it was acquired on %s", iface)
			must(t, held.Acquire())
			assert.Is(t, true, b.has(t, held.State().Device, testVIP), "on %s", held.State().Device)
			if method == HoldLifetime {
				assert.Is(t, iface, held.State().Device, "the device")
			}
		}
		_, err = h.OpenFloating("lo", floating)
		assert.ErrorContains(t, err, "the holder works on an interface whose subnet contains 10.77.0.100, which is not lo", "loopback")
		assert.Is(t, true, b.has(t, held.State().Device, testVIP), "there after the refusal")
		must(t, held.Release())
		assert.Is(t, false, b.has(t, "", testVIP), "there after the release")
	})
}

// TestSpeaksAfterTheSockets: before they are open, the holder knows no address of this board to speak as.
func TestSpeaksAfterTheSockets(t *testing.T) { judge.RunTogether(t, testSpeaksAfterTheSockets) }

func testSpeaksAfterTheSockets(t *judge.T) {
	b := newLAN(t, 1).boards[0]
	g := b.startGuard(t, HoldLifetime)
	t.Cleanup(func() { g.close() })
	eth0 := b.link(t, "eth0").Index
	_, err := g.OpenAnnouncer(eth0)
	assert.ErrorContains(t, err, "speaks ARP for nobody before the sockets of the group are open", "")
	must(t, b.openSockets(t, g).Close())
	a, err := g.OpenAnnouncer(eth0)
	must(t, err)
	must(t, a.Resolve(testVIP))
	must(t, a.Ask([]ARPQuestion{{Addr: testVIP}}))
	b.addAddr(t, "eth0", netip.MustParsePrefix("10.77.0.201/24"))
	o := b.options(testVIP)
	o.Local = netip.MustParseAddr("10.77.0.201")
	conn, err := on(b, func() (*Conn, error) { return g.OpenSockets(o) })
	must(t, err)
	must(t, conn.Close())
	assert.ErrorContains(t, a.Resolve(testVIP), "nothing reaches the neighbours", "in the name of an address that the board has left")
}

// TestPrefixesOfTheAddresses: the length of a prefix decides which route comes with an address, so a daemon gets only that of the
// configuration, and without one none.
func TestPrefixesOfTheAddresses(t *testing.T) {
	b := newLAN(t, 1).boards[0] // 10.77.0.1/24
	for _, test := range []struct {
		configured, asked int
		allowed           bool
	}{
		{0, 24, false}, {0, 32, true}, {0, 0, false}, {0, 1, false}, {0, 16, false}, {0, 31, false},
		{16, 16, true}, {16, 0, false}, {16, 24, false}, {16, 32, false},
	} {
		t.Run(fmt.Sprintf("%d of %d", test.asked, test.configured), func(t *testing.T) {
			var configured []netip.Prefix
			if test.configured > 0 {
				configured = append(configured, netip.PrefixFrom(testVIP, test.configured))
			}
			err := b.in(func() error {
				h := ownSession(configured...)
				defer h.close()
				return h.prepares(netip.PrefixFrom(testVIP, test.asked))
			})
			assert.Is(t, test.allowed, err == nil, "it is allowed (%v)", err)
		})
	}
}

// TestHolderKilled kills the holder: with a TUN device the address goes with it, and its daemon is told.
func TestHolderKilled(t *testing.T) {
	eachMethod(t, func(t *judge.T, method HoldMethod) {
		b := newGuardedBoard(t, method)
		must(t, b.in(func() error { return b.fence.Cover([]int{b.link(t, "eth0").Index}) }))
		must(t, syscall.Kill(b.PID(), syscall.SIGKILL))
		receive(t, "the end of the holder", b.Lost())
		assert.Is(t, true, !b.fired() && b.extend(Now()+longLease), "the lease lasts, and can be extended")
		assert.ErrorIs(t, b.prepare(testResign), errHolderLost, "preparing without a holder")
		b.fence.Shut()
		release := func() error { return b.in(b.floating.Release) }
		if method == HoldTUN {
			eventually(t, "the address is released", func() bool { return release() == nil })
		} else if err := release(); !errors.Is(err, errHolderLost) {
			t.Errorf("the address is there, and releasing it gives %v", err)
		}
		assert.Is(t, method == HoldLifetime, b.holds(t), "the address is there")
		must(t, b.Close())
		b.wantQuiet(t)
	})
}

// TestHolderFrozen: a holder that stands still is as good as none, and that is known before the address is gone.
func TestHolderFrozen(t *testing.T) {
	t.Parallel()
	judge.RunTogether(t, testHolderFrozen)
}

func testHolderFrozen(t *judge.T) {
	b := newGuardedBoard(t, HoldTUN)
	must(t, netns.Freeze(b.PID()))
	began := Now()
	_, err := b.floating.Renew()
	if after := Now() - began; !errors.Is(err, errHolderLost) || after > DefaultLifetime {
		t.Errorf("renewed after %v: %v", after, err)
	}
	receive(t, "the news of it", b.Lost())
	assert.ErrorIs(t, b.floating.Release(), errHolderLost, "releasing")
	must(t, b.Close()) // which kills it
	eventually(t, "the address is gone", func() bool { return !b.holds(t) })
}

// TestIdleHolderFrozen: no client notices that a holder stands still that has no address, so on a busy machine it may do so
// for a while. One that does not go on is lost.
func TestIdleHolderFrozen(t *testing.T) {
	t.Parallel()
	judge.RunTogether(t, func(t *judge.T) {
		b := newGuardedBoard(t, HoldTUN)
		must(t, b.floating.Release())
		must(t, netns.Freeze(b.PID()))
		goesOn := time.AfterFunc(idleWithin/2, func() { _ = syscall.Kill(b.PID(), syscall.SIGCONT) })
		defer goesOn.Stop()
		began := Now()
		must(t, b.prepare(testResign))
		if after := Now() - began; after < idleWithin/4 {
			t.Errorf("it was told after %v: it did not stand still", after)
		}
		must(t, b.floating.Acquire())
		must(t, b.floating.Release())
		must(t, netns.Freeze(b.PID()))
		began = Now()
		err := b.prepare(testResign)
		if after := Now() - began; !errors.Is(err, errHolderLost) || after > idleWithin+answerWithin {
			t.Errorf("told after %v: %v", after, err)
		}
		receive(t, "the news of it", b.Lost())
		must(t, b.Close())
	})
}

func TestHolderByHand(t *testing.T) {
	out, err := exec.Command(holderCommand[0], holderCommand[1:]...).CombinedOutput()
	const want = "this is a part of `topdog run`, which starts it: it is of no use by itself\n"
	if status, ok := errors.AsType[*exec.ExitError](err); !ok || status.ExitCode() != 1 || string(out) != want {
		t.Errorf("it says %q and ends with %v", out, err)
	}
}

func TestHolderCannotStart(t *testing.T) {
	before := settledFiles(t)
	_, err := StartHolder([]string{"/nonexistent/topdog", holderWord}, HolderOptions{})
	assert.ErrorContains(t, err, "start the holder", "")
	assert.ErrorIs(t, err, os.ErrNotExist, "")
	_, err = StartHolder([]string{"/bin/false"}, HolderOptions{})
	assert.ErrorIs(t, err, net.ErrClosed, "a holder that ends at once")
	assert.Is(t, before, openFiles(t), "open files")
}

// TestNothingLeaks starts and ends holders again and again, and opens things again and again by one. It is not judged,
// since the judge opens files too.
func TestNothingLeaks(t *testing.T) {
	b := newGuardedBoard(t, HoldTUN)
	fds := func() int {
		files, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", b.PID()))
		must(t, err)
		return len(files)
	}
	eth0 := b.link(t, "eth0").Index
	open := func() {
		must(t, b.prepare(testResign))
		must(t, b.openSockets(t, b.guard).Close())
		a, err := b.OpenAnnouncer(eth0)
		must(t, err)
		must(t, a.Doubt(Doubt{Port: eth0}))
		_, _, err = a.Heard()
		must(t, err)
		must(t, a.Calm())
		_, _, err = a.Heard()
		assert.ErrorContains(t, err, "no frames are counted", "after the doubt")
		must(t, a.Close())
		_, err = b.floating.Renew()
		must(t, err)
	}
	open()
	var theirs int
	eventually(t, "the holder has closed its packet sockets", func() bool { n := fds(); same := n == theirs; theirs = n; return same })
	before := settledFiles(t)
	for range 5 {
		open()
	}
	assert.Is(t, before, openFiles(t), "open files")
	eventually(t, "the holder has closed all", func() bool { return fds() <= theirs })

	use := func() { must(t, b.startGuard(t, HoldTUN).close()) }
	use()
	before = settledFiles(t)
	for range 3 {
		use()
	}
	assert.Is(t, before, openFiles(t), "open files")
}

func processState(t testing.TB, pid int) string {
	t.Helper()
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	must(t, err)
	_, rest, _ := strings.Cut(string(stat), ") ")
	state, _, _ := strings.Cut(rest, " ")
	return state
}

// glob returns the links that match a pattern and lead to a target.
func glob(t testing.TB, pattern, target string) (found []string) {
	t.Helper()
	links, err := filepath.Glob(pattern)
	must(t, err)
	for _, l := range links {
		if to, err := os.Readlink(l); err == nil && to == target {
			found = append(found, l)
		}
	}
	return found
}

// settledFiles counts the open files when those are closed that earlier tests have left to the collector.
func settledFiles(t testing.TB) int {
	t.Helper()
	last := -1
	eventually(t, "no file is closed any more", func() bool {
		runtime.GC()
		n := openFiles(t)
		same := n == last
		last = n
		return same
	})
	return last
}

func openFiles(t testing.TB) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	must(t, err)
	return len(entries)
}

// TestProgramText: what a holder drops must come back from the program's file as it was.
func TestProgramText(t *testing.T) {
	// The lines of proc_pid_smaps(5) that matter, of a position-independent program.
	const smaps = `01000000-01400000 r-xp 00001000 fe:00 1234    /usr/bin/topdog
Anonymous:             0 kB
THPeligible:           0
01400000-01600000 r--p 00401000 fe:00 1234    /usr/bin/topdog
Anonymous:          2048 kB
01600000-01700000 r--p 00601000 fe:00 1234    /usr/bin/topdog
Anonymous:             0 kB
01700000-01710000 rw-p 00701000 fe:00 1234    /usr/bin/topdog
Anonymous:             0 kB
40000000-40400000 ---p 00000000 00:00 0
Anonymous:             0 kB
7fff0000-7fff2000 r-xp 00000000 00:00 0       [vdso]
Anonymous:             0 kB
`
	want := []span{{0x01000000, 0x01400000}, {0x01600000, 0x01700000}}
	assert.Is(t, fmt.Sprintf("%x", want), fmt.Sprintf("%x", programText(smaps)), "would be dropped")
	own, err := os.ReadFile("/proc/self/smaps")
	must(t, err)
	if len(programText(string(own))) == 0 {
		t.Error("nothing of this program would be dropped")
	}
}
