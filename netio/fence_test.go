package netio

import (
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
	b.fence = b.newFence(t, kind)
	b.cover(t, "eth0")
	for _, addr := range []netip.Addr{testVIP, b.addr} {
		b.serve(t, addr)
	}
	return b
}

// newFence makes a fence on the board, which ends with the test.
func (b *board) newFence(t *testing.T, kind FenceKind) *kernelFence {
	t.Helper()
	f, err := on(b, func() (*kernelFence, error) { return newFence([]netip.Addr{testVIP}, kind) })
	must(t, err)
	t.Cleanup(func() { must(t, f.Close()) })
	return f
}

func (b *fencedBoard) cover(t *testing.T, names ...string) {
	t.Helper()
	var indexes []int
	for _, name := range names {
		indexes = append(indexes, b.link(t, name).Index)
	}
	b.do(t, func() error { return b.fence.Cover(indexes) })
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
	conn, err := on(b.client, func() (net.Conn, error) { return net.Dial("udp", at.String()) })
	must(t, err)
	t.Cleanup(func() { conn.Close() })
	b.services[addr], b.answers[addr] = conn, service
}

// silence is how long the client waits for an answer before it takes the board for silent.
const silence = 20 * time.Millisecond

func (b *fencedBoard) answersARP(t *testing.T, addr netip.Addr) bool {
	t.Helper()
	return b.asks.hasOwner(t, addr, 1, silence)
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
				for _, step := range []struct {
					when     string
					done     func() bool
					answered bool
				}{
					{"nothing to release", func() bool { return true }, true},
					{"no end", func() bool { f.Begin(NoEnd); return true }, true},
					{"at the end", func() bool {
						end := Now() + 50*time.Millisecond
						extended := extend(f, end)
						until(end)
						return extended
					}, false},
					// That it is over does not count as fired, and nobody has ended it.
					{"extended late", func() bool { return !f.Fired() && extend(f, Now()+longLease) }, true},
					{"shut", f.Shut, false},
					{"released", func() bool { closes := f.Closes(); f.Released(); return closes }, true},
					{"fired by the holder", func() bool { f.Begin(NoEnd); f.put(leaseFired); return true }, false},
					{"extended too late", func() bool { return f.Fired() && !extend(f, NoEnd) && !extend(f, Now()+longLease) }, false},
					{"without it", func() bool { return f.Close() == nil }, true},
				} {
					assert.Is(t, true, step.done(), "%s: done", step.when)
					b.wantAnswers(t, step.when, step.answered)
				}
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
		assert.Is(t, passes, b.sends.Announce(testVIP) == nil, "the announcement was sent")
		time.Sleep(silence)
		assert.Is(t, passes, len(announced) > 0, "the client hears the announcement")
	})
}

// TestFenceCoversLaterInterfaces has interfaces appear and vanish.
func TestFenceCoversLaterInterfaces(t *testing.T) {
	eachFence(t, func(t *testing.T, kind FenceKind) {
		b := newFencedBoard(t, kind, HoldLifetime)
		attached := slices.Clone(b.fence.attached[b.link(t, "eth0").Index])
		b.cover(t, "eth0")
		assert.Equal(t, attached, b.fence.attached[b.link(t, "eth0").Index], "what is attached when it is covered again")
		err := b.in(func() error { return b.fence.Cover([]int{b.link(t, "eth0").Index, 4711}) })
		assert.ErrorIs(t, err, nil, "an interface that is gone")
		must(t, b.in(func() error { return b.fence.Cover(nil) }))
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
		err := b.fence.keep(nil, func(...int) {})
		answered <- good && err == nil
	}()
	select {
	case good := <-answered:
		assert.Is(t, true, good, "it is a fence")
	case <-time.After(time.Second):
		t.Fatal("the leader has to wait for the kernel")
	}
	b.fence.wanted = append(b.fence.wanted, 4711)
	b.fence.uncovered()
	if _, problem := b.fence.State(); b.fence.Closes() || problem == "" {
		t.Errorf("an interface is to be covered; closes %t, it says %q", b.fence.Closes(), problem)
	}
	b.fence.covered(4711, nil, nil)
	assert.Is(t, true, b.fence.Closes(), "it closes where the interface is gone")
}

// TestFenceOfAnother: two programs of XDP cannot be on one interface.
func TestFenceOfAnother(t *testing.T) {
	eachFence(t, func(t *testing.T, kind FenceKind) {
		b := newFencedBoard(t, kind, HoldLifetime)
		second := b.newFence(t, kind)
		eth0 := b.link(t, "eth0")
		err := b.in(func() error { return second.Cover([]int{eth0.Index}) })
		got, problem := second.State()
		if got != kind || second.Closes() != (kind == FenceTCX) {
			t.Errorf("it is a %v, closes: %t", got, second.Closes())
		}
		if kind == FenceXDP && (err == nil || !strings.Contains(problem, "another program is there")) {
			t.Errorf("got %v; it says %q", err, problem)
		}
		must(t, b.fence.Close())
		must(t, b.in(func() error { return second.Cover([]int{eth0.Index}) }))
		assert.Is(t, true, second.Closes(), "it closes when the other one is gone")
	})
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
	f := board.newFence(t, FenceTCX)
	outbound := f.outbound
	f.outbound = -1
	eth0 := board.link(t, "eth0").Index
	board.do(t, func() error {
		if f.Cover([]int{eth0}) == nil || f.Closes() {
			t.Errorf("half of a fence: closes %t", f.Closes())
		}
		f.outbound = outbound
		return f.Cover([]int{eth0})
	})
	if len(f.attached[eth0]) != 2 || !f.Closes() {
		t.Errorf("attached %v, closes %t", f.attached, f.Closes())
	}
}
