package netio

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"topdog/internal/lab/assert"
)

// testedFences are the kinds of fences that this kernel has, the best first.
func testedFences(t testing.TB) (kinds []FenceKind) {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("a fence needs root")
	}
	for _, kind := range []FenceKind{FenceTCX, FenceXDP} {
		f, err := newFence([]netip.Addr{testVIP}, kind)
		must(t, err)
		if got, why := f.State(); got == kind {
			kinds = append(kinds, kind)
		} else {
			t.Logf("this kernel has no %v: %s", kind, why)
		}
		must(t, f.Close())
	}
	if len(kinds) == 0 {
		t.Skip("this kernel has no fence")
	}
	return kinds
}

func eachFence(t *testing.T, test func(t *testing.T, kind FenceKind)) {
	for _, kind := range testedFences(t) {
		t.Run(kind.String(), func(t *testing.T) { test(t, kind) })
	}
}

// fencedBoard is a board with a fence that holds the address for ever, and a client that uses it.
type fencedBoard struct {
	*board
	client   *board
	fence    *kernelFence
	asks     *Announcer              // of the client
	sends    *Announcer              // of the board
	services map[netip.Addr]net.Conn // of the client to the board
	answers  map[netip.Addr]net.PacketConn
	asked    int // by datagrams
}

func newFencedBoard(t *testing.T, kind FenceKind, method HoldMethod) *fencedBoard {
	t.Helper()
	if method == HoldTUN {
		needTUN(t)
	}
	l := newLAN(t, 2)
	b := &fencedBoard{board: l.boards[0], client: l.boards[1], services: map[netip.Addr]net.Conn{}, answers: map[netip.Addr]net.PacketConn{}}
	must(t, openFloating(t, b.board, FloatingOptions{Method: method, lifetime: longLease}).Acquire())
	b.asks, b.sends = openTestAnnouncer(t, b.client), openTestAnnouncer(t, b.board)
	var err error
	b.fence, err = on(b.board, func() (*kernelFence, error) { return newFence([]netip.Addr{testVIP}, kind) })
	must(t, err)
	t.Cleanup(func() { must(t, b.fence.Close()) })
	b.cover(t, "eth0")
	for _, addr := range []netip.Addr{testVIP, b.addr} {
		b.serve(t, addr)
	}
	return b
}

func (b *fencedBoard) cover(t *testing.T, names ...string) {
	t.Helper()
	var indexes []int
	for _, name := range names {
		indexes = append(indexes, b.link(t, name).Index)
	}
	b.do(t, func() error { return b.fence.Cover(indexes, indexes[0]) })
}

// serve has the board answer datagrams at one of its addresses.
func (b *fencedBoard) serve(t *testing.T, addr netip.Addr) {
	t.Helper()
	const port = 7777
	at := netip.AddrPortFrom(addr, port)
	service := b.listen(t, at)
	go func() {
		buffer := make([]byte, 100)
		for {
			n, from, err := service.ReadFrom(buffer)
			if err != nil {
				return
			}
			service.WriteTo(buffer[:n], from)
		}
	}()
	conn, err := on(b.client, func() (net.Conn, error) { return net.Dial("udp4", at.String()) })
	must(t, err)
	t.Cleanup(func() { conn.Close() })
	b.services[addr], b.answers[addr] = conn, service
}

// silence is how long the client waits for an answer before it takes the board for silent.
const silence = 20 * time.Millisecond

func (b *fencedBoard) answersARP(t *testing.T, addr netip.Addr) bool {
	t.Helper()
	_, found, err := b.asks.Probe(context.Background(), addr, 1, silence)
	must(t, err)
	return found
}

func (b *fencedBoard) answersIP(t *testing.T, addr netip.Addr) bool {
	t.Helper()
	conn := b.services[addr]
	must(t, conn.SetDeadline(time.Now().Add(silence)))
	b.asked++
	question := fmt.Sprint("hello ", b.asked)
	if _, err := conn.Write([]byte(question)); err != nil {
		return false // the neighbour was not found, for the datagram before
	}
	return hears(conn, question)
}

// hears waits for a text until the deadline of the connection. Others before it were late.
func hears(conn net.Conn, text string) bool {
	buffer := make([]byte, 100)
	for {
		n, err := conn.Read(buffer)
		if err != nil || string(buffer[:n]) == text {
			return err == nil
		}
	}
}

// wantAnswers wants the address to be answered, or not, and the board's own to be in any case.
func (b *fencedBoard) wantAnswers(t *testing.T, when string, want bool) {
	t.Helper()
	if want {
		// The first answer may come late: the neighbours have to be found.
		eventually(t, when+": the address is answered", func() bool { return b.answersIP(t, testVIP) && b.answersARP(t, testVIP) })
	} else if b.answersARP(t, testVIP) || b.answersIP(t, testVIP) {
		t.Errorf("%s: the address is answered", when)
	}
	eventually(t, when+": the board's own address is answered", func() bool { return b.answersIP(t, b.addr) && b.answersARP(t, b.addr) })
}

// until waits for a moment.
func until(end time.Duration) {
	for Now() <= end {
		time.Sleep(time.Millisecond)
	}
}

// TestFence holds when the address is answered: the lease alone decides, and nobody runs for it.
func TestFence(t *testing.T) {
	for _, kind := range testedFences(t) {
		for _, method := range []HoldMethod{HoldLifetime, HoldTUN} {
			t.Run(kind.String()+" "+method.String(), func(t *testing.T) {
				b := newFencedBoard(t, kind, method)
				f := b.fence
				b.wantAnswers(t, "nothing to release", true)
				f.Begin(NoEnd)
				b.wantAnswers(t, "no end", true)
				end := Now() + 50*time.Millisecond
				if !extend(f, end) {
					t.Fatal("the lease cannot be extended")
				}
				until(end)
				b.wantAnswers(t, "at the end", false)
				if f.Fired() {
					t.Error("that the lease is over counts as fired")
				}
				if !extend(f, Now()+longLease) {
					t.Error("a lease that nobody has ended cannot be extended")
				}
				b.wantAnswers(t, "extended late", true)
				if !f.Shut() {
					t.Error("the lease was ended")
				}
				b.wantAnswers(t, "shut", false)
				if !f.Closes() {
					t.Error("it does not close")
				}
				f.Released()
				b.wantAnswers(t, "released", true)
				f.Begin(NoEnd)
				f.put(leaseFired) // by the holder
				b.wantAnswers(t, "fired", false)
				if !f.Fired() || extend(f, NoEnd) || extend(f, Now()+longLease) {
					t.Error("what was fired can be opened again")
				}
				b.wantAnswers(t, "fired, and extended too late", false)
				must(t, f.Close())
				b.wantAnswers(t, "without it", true)
			})
		}
	}
}

// TestFenceOutbound: what the kernel still sends from the address does not leave either.
func TestFenceOutbound(t *testing.T) {
	eachFence(t, func(t *testing.T, kind FenceKind) {
		b := newFencedBoard(t, kind, HoldLifetime)
		b.wantAnswers(t, "nothing to release", true)
		sent := b.services[testVIP].LocalAddr()
		heard := func() bool {
			must(t, b.services[testVIP].SetDeadline(time.Now().Add(silence)))
			b.asked++
			text := fmt.Sprint("unasked ", b.asked)
			_, err := b.answers[testVIP].WriteTo([]byte(text), sent)
			must(t, err)
			return hears(b.services[testVIP], text)
		}
		announced := make(chan string, 100)
		b.asks.Rivals([]netip.Addr{testVIP}, func(_ netip.Addr, mac net.HardwareAddr) { announced <- mac.String() })
		eventually(t, "the client hears it", heard)
		must(t, b.sends.Announce(testVIP))
		receive(t, "the announcement", announced)
		b.fence.Shut()
		passes := kind == FenceXDP // it sees only what comes in
		assert.Is(t, passes, heard(), "the client hears it")
		for len(announced) > 0 {
			<-announced
		}
		if err := b.sends.Announce(testVIP); (err == nil) != passes {
			t.Errorf("the announcement was sent with %v", err)
		}
		time.Sleep(silence)
		if heard := len(announced) > 0; heard != passes {
			t.Errorf("the client hears the announcement: %t, want %t", heard, passes)
		}
	})
}

// TestFenceCoversLaterInterfaces has interfaces appear and vanish.
func TestFenceCoversLaterInterfaces(t *testing.T) {
	eachFence(t, func(t *testing.T, kind FenceKind) {
		b := newFencedBoard(t, kind, HoldLifetime)
		attached := slices.Clone(b.fence.attached[b.link(t, "eth0").Index])
		b.cover(t, "eth0")
		if again := b.fence.attached[b.link(t, "eth0").Index]; !slices.Equal(again, attached) {
			t.Errorf("it was attached again: %v, before %v", again, attached)
		}
		err := b.in(func() error { return b.fence.Cover([]int{b.link(t, "eth0").Index, 4711}, 4711) })
		assert.ErrorIs(t, err, nil, "an interface that is gone")
		must(t, b.in(func() error { return b.fence.Cover(nil, 0) }))
		b.fence.Shut()
		eventually(t, "the address is answered where there is no fence", func() bool { return b.answersARP(t, testVIP) })
		b.cover(t, "eth0")
		b.wantAnswers(t, "covered later", false)
	})
}

// TestFenceDuringCover asks for what a leader asks for at each heartbeat, while another goroutine waits for the
// kernel: somebody makes a container, say. Until the interface is covered, the fence does not close.
func TestFenceDuringCover(t *testing.T) {
	b := newFencedBoard(t, testedFences(t)[0], HoldLifetime)
	b.fence.covering.Lock()
	defer b.fence.covering.Unlock()
	answered := make(chan bool, 1)
	go func() {
		_, problem := b.fence.State()
		good := b.fence.Closes() && problem == ""
		_ = b.fence.share(nil, func(bundle int) error {
			answered <- good && bundle >= 0
			return nil
		})
	}()
	select {
	case good := <-answered:
		if !good {
			t.Error("it is no fence")
		}
	case <-time.After(time.Second):
		t.Fatal("the leader has to wait for the kernel")
	}
	b.fence.wanted = append(b.fence.wanted, 4711)
	b.fence.uncovered()
	if _, problem := b.fence.State(); b.fence.Closes() || problem == "" {
		t.Errorf("an interface is to be covered; closes %t, it says %q", b.fence.Closes(), problem)
	}
	b.fence.covered(4711, nil, nil)
	if !b.fence.Closes() {
		t.Error("the interface is gone, and the fence does not close")
	}
}

// TestFenceOfAnother: two programs of XDP cannot be on one interface.
func TestFenceOfAnother(t *testing.T) {
	eachFence(t, func(t *testing.T, kind FenceKind) {
		b := newFencedBoard(t, kind, HoldLifetime)
		second, err := on(b.board, func() (*kernelFence, error) { return newFence([]netip.Addr{testVIP}, kind) })
		must(t, err)
		defer second.Close()
		eth0 := b.link(t, "eth0")
		err = b.in(func() error { return second.Cover([]int{eth0.Index}, eth0.Index) })
		got, problem := second.State()
		if got != kind || second.Closes() != (kind == FenceTCX) {
			t.Errorf("it is a %v, closes: %t", got, second.Closes())
		}
		if kind == FenceXDP && (err == nil || !strings.Contains(problem, "another program is there")) {
			t.Errorf("got %v; it says %q", err, problem)
		}
		must(t, b.fence.Close())
		must(t, b.in(func() error { return second.Cover([]int{eth0.Index}, eth0.Index) }))
		if !second.Closes() {
			t.Error("it does not close when the other one is gone")
		}
	})
}

// TestNoFence has a kernel with nothing that is asked for: the lease works all the same.
func TestNoFence(t *testing.T) {
	f, err := newFence([]netip.Addr{testVIP}, FenceKind(0))
	must(t, err)
	defer f.Close()
	f.Begin(NoEnd)
	if !extend(f, Now()+longLease) || !f.Shut() || f.Fired() {
		t.Error("the lease does not work")
	}
	f.Released()
}

// BenchmarkExtend is what a heartbeat pays for the lease: moving its end, in memory that the
// kernel's programs read as well, or that only the holder does, and the holder's timer.
func BenchmarkExtend(b *testing.B) {
	for _, kind := range append(testedFences(b), FenceNone) {
		b.Run(kind.String(), func(b *testing.B) {
			f, err := newFence([]netip.Addr{testVIP}, kind)
			must(b, err)
			defer f.Close()
			f.Begin(NoEnd)
			b.Run("with timer", func(b *testing.B) {
				for b.Loop() {
					extend(f, Now()+longLease)
				}
			})
			b.Run("memory alone", func(b *testing.B) {
				extend(f, NoEnd)
				for b.Loop() {
					extend(f, NoEnd)
				}
			})
		})
	}
}

// An interface that gets only one of the programs is not covered. What could not be attached is attached when that is tried again.
func TestFenceHalfAttached(t *testing.T) {
	if testedFences(t)[0] != FenceTCX {
		t.Skip("the other kind has one program")
	}
	board := newLAN(t, 1).boards[0]
	f, err := on(board, func() (*kernelFence, error) { return newFence([]netip.Addr{testVIP}, FenceTCX) })
	must(t, err)
	defer func() { must(t, f.Close()) }()
	outbound := f.outbound
	f.outbound = -1
	eth0 := board.link(t, "eth0").Index
	board.do(t, func() error {
		if f.Cover([]int{eth0}, eth0) == nil || f.Closes() {
			t.Errorf("half of a fence: closes %t", f.Closes())
		}
		f.outbound = outbound
		return f.CoverAgain()
	})
	if len(f.attached[eth0]) != 2 || !f.Closes() {
		t.Errorf("attached %v, closes %t", f.attached, f.Closes())
	}
}
