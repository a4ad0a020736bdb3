package netns

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"net"
	"net/netip"
	"os"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"topdog/internal/lab/assert"
)

const (
	port    = 9254
	packets = 3000
)

// TestWhoHearsWhom has all hosts say something to each other while the switch has the filters of the step. A
// text that was lost must not arrive later: the next one to arrive is what was said afterwards.
func TestWhoHearsWhom(t *testing.T) {
	l := newLAN(t, 4)
	one, two, three, four := l.Board(1), l.Board(2), l.Board(3), l.Board(4)
	all := []*Host{one, two, three, four, l.Client()}
	ears := map[*Host]*net.UDPConn{}
	for _, h := range all {
		ears[h] = listen(t, h)
	}
	everybody := func(_, _ *Host) bool { return true }
	nobody := func(_, _ *Host) bool { return false }
	without := func(h *Host) func(from, to *Host) bool {
		return func(from, to *Host) bool { return from != h && to != h }
	}
	// onOneSide is for a switch that has fallen in two halves.
	onOneSide := func(side ...*Host) func(from, to *Host) bool {
		half := map[*Host]bool{}
		for _, h := range side {
			half[h] = true
		}
		return func(from, to *Host) bool { return half[from] == half[to] }
	}
	half := []*Host{one, two, l.Client()}
	for _, step := range []struct {
		name    string
		filters []Filter
		hears   func(from, to *Host) bool
	}{
		// Everybody learns everybody's hardware address first, so that ARP holds nothing back.
		{"at first", nil, everybody},
		{"cut", Cut(two.Port()), without(two)},
		{"healed", nil, everybody},
		{"deaf", []Filter{{To: Ports(one)}}, func(_, to *Host) bool { return to != one }},
		{"deaf and mute", []Filter{{To: Ports(one)}, {From: Ports(one)}}, without(one)},
		{"mute", []Filter{{From: Ports(one)}}, func(from, _ *Host) bool { return from != one }},
		{"one way", []Filter{{From: Ports(one, two), To: Ports(three)}}, func(from, to *Host) bool { return to != three || from != one && from != two }},
		{"halted", []Filter{{}}, nobody},
		{"resumed", nil, everybody},
		{"split", Apart(Ports(half...), Ports(three, four)), onOneSide(half...)},
		{"three sides", append(Apart(Ports(half...), Ports(three, four)), Apart(Ports(three), Ports(four))...), func(from, to *Host) bool {
			return onOneSide(half...)(from, to) && (from != three || to != four) && (from != four || to != three)
		}},
		{"joined", nil, everybody},
		{"nobody cut", append(Cut(), Filter{From: Ports()}), everybody},
		{"only multicasts", []Filter{{Multicast: true}}, everybody},
	} {
		must(t, l.Filter(step.filters...))
		for _, h := range all {
			assert.Is(t, true, running(t, h), "%s: %s has a carrier", step.name, h.Name)
		}
		for _, from := range all {
			for _, to := range all {
				if from == to {
					continue
				}
				want := fmt.Sprintf("%s: hello %s from %s", step.name, to.Name, from.Name)
				say(t, from, to.Addr.Addr(), want)
				if !step.hears(from, to) {
					continue
				}
				if got, sender := hear(t, ears[to]); got != want || sender != from.Addr.Addr() {
					t.Fatalf("heard %q from %v, want %q from %v", got, sender, want, from.Addr.Addr())
				}
			}
		}
	}
}

// A port whose interface was gone meanwhile is filtered as before.
func TestFilterOfANewInterface(t *testing.T) {
	l := newLAN(t, 4)
	deleted, with := l.Board(2), l.Board(3)
	must(t, deleted.DeleteInterface())
	must(t, l.Filter(Apart(Ports(l.Board(1), l.Board(4)), Ports(deleted, with))...))
	must(t, deleted.CreateInterface())
	ear := listen(t, with)
	for _, b := range []*Host{l.Board(4), deleted} {
		say(t, b, with.Addr.Addr(), b.Name)
	}
	got, _ := hear(t, ear)
	assert.Is(t, deleted.Name, got, "heard")
}

// The change of a filter is quick: how quick the machine was is told, and that it is no matter of its timers is judged.
func TestFilterIsQuick(t *testing.T) {
	l := newLAN(t, 5)
	var least [2]time.Duration
	for range 20 {
		for i, filters := range [][]Filter{Cut(l.Board(1).Port()), nil} {
			began := time.Now()
			must(t, l.Filter(filters...))
			if took := time.Since(began); least[i] == 0 || took < least[i] {
				least[i] = took
			}
		}
	}
	t.Logf("a cut took %v at least, and its end %v", least[0], least[1])
	if max(least[0], least[1]) > 5*time.Millisecond {
		t.Error("the kernel waited for something")
	}
}

// group is any multicast group that a switch could prune.
var group = netip.MustParseAddr("239.7.7.7")

// ways are three ways from one board to another.
var ways = []struct {
	name string
	to   func(*Host) netip.Addr
}{
	{"unicast", func(h *Host) netip.Addr { return h.Addr.Addr() }},
	{"broadcast", func(*Host) netip.Addr { return netip.MustParseAddr("10.77.0.255") }},
	{"multicast", func(*Host) netip.Addr { return group }},
}

// newEar hears numbers that come on all ways, in the order in which they come.
func newEar(t *testing.T, h *Host) *receiver {
	t.Helper()
	r := newReceiver(t, h, port)
	must(t, h.Do(func() error {
		raw, err := r.conn.SyscallConn()
		if err != nil {
			return err
		}
		var joinErr error
		err = raw.Control(func(fd uintptr) {
			own := h.Addr.Addr().As4()
			joinErr = unix.SetsockoptIPMreq(int(fd), unix.IPPROTO_IP, unix.IP_ADD_MEMBERSHIP, &unix.IPMreq{Multiaddr: group.As4(), Interface: own})
		})
		if err != nil {
			return err
		}
		return joinErr
	}))
	return r
}

// sendFrom sends a number from a board's own address.
func sendFrom(t *testing.T, from *Host, to netip.Addr, number uint32) {
	t.Helper()
	must(t, from.Do(func() error {
		conn, err := net.ListenUDP("udp4", net.UDPAddrFromAddrPort(netip.AddrPortFrom(from.Addr.Addr(), 0)))
		if err != nil {
			return err
		}
		defer conn.Close()
		raw, err := conn.SyscallConn()
		if err != nil {
			return err
		}
		var optionErr error
		err = raw.Control(func(fd uintptr) {
			if optionErr = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_BROADCAST, 1); optionErr == nil {
				optionErr = unix.SetsockoptInet4Addr(int(fd), unix.IPPROTO_IP, unix.IP_MULTICAST_IF, from.Addr.Addr().As4())
			}
		})
		if err == nil {
			err = optionErr
		}
		if err == nil {
			_, err = conn.WriteToUDPAddrPort(binary.BigEndian.AppendUint32(nil, number), netip.AddrPortFrom(to, port))
		}
		return err
	}))
}

// TestKindsOfFrames sends a frame on each way between two boards while one of them loses
// some kind of frames.
func TestKindsOfFrames(t *testing.T) {
	l := newLAN(t, 3)
	one, two := l.Board(1), l.Board(2)
	ears := map[*Host]*receiver{one: newEar(t, one), two: newEar(t, two)}
	next := uint32(0) // number of a frame: what a board says to all it hears itself, too
	// through says which ways are open from one board to another.
	through := func(from, to *Host) (open []string) {
		t.Helper()
		first := next
		for _, way := range ways {
			sendFrom(t, from, way.to(to), next)
			next++
		}
		// The board's own last word, which no switch can drop, comes after all others.
		sendFrom(t, to, to.Addr.Addr(), next)
		if !ears[to].read(t, next, timeout) {
			t.Fatalf("%s does not hear itself", to.Name)
		}
		next++
		for i, way := range ways {
			if ears[to].seen[first+uint32(i)] {
				open = append(open, way.name)
			}
		}
		return open
	}
	all := []string{"unicast", "broadcast", "multicast"}
	check := func(what string, from, to *Host, want []string) {
		t.Helper()
		if got := through(from, to); !slices.Equal(got, want) {
			t.Errorf("%s: from %s to %s pass %v, want %v", what, from.Name, to.Name, got, want)
		}
	}
	for range 2 {
		check("nothing dropped", one, two, all)
		check("nothing dropped", two, one, all)
		for _, c := range []struct {
			name     string
			filter   Filter
			in, from []string // what passes to board 1, and from it
		}{
			{"deaf", Filter{To: Ports(one, l.Board(3))}, nil, all},
			{"mute", Filter{From: Ports(one, l.Board(3))}, all, nil},
			{"no multicast", Filter{To: Ports(one), Multicast: true}, all[:2], all},
			{"no multicast anywhere", Filter{Multicast: true}, all[:2], all[:2]},
		} {
			must(t, l.Filter(c.filter))
			check(c.name, two, one, c.in)
			check(c.name, one, two, c.from)
		}
		must(t, l.Filter())
	}
}

// receiver counts which numbers arrive at a port of a board.
type receiver struct {
	conn *net.UDPConn
	seen map[uint32]bool
}

func newReceiver(t *testing.T, h *Host, port uint16) *receiver {
	t.Helper()
	r := &receiver{seen: make(map[uint32]bool)}
	must(t, h.Do(func() (err error) {
		r.conn, err = net.ListenUDP("udp4", &net.UDPAddr{Port: int(port)})
		if err == nil {
			err = r.conn.SetReadBuffer(1 << 22)
		}
		return err
	}))
	t.Cleanup(func() { r.conn.Close() })
	return r
}

// read notes all numbers until last has arrived, which is not counted, or
// reports that it has not.
func (r *receiver) read(t *testing.T, last uint32, wait time.Duration) (arrived bool) {
	t.Helper()
	must(t, r.conn.SetReadDeadline(time.Now().Add(wait)))
	var buf [4]byte
	for {
		_, err := r.conn.Read(buf[:])
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return false
		}
		must(t, err)
		n := binary.BigEndian.Uint32(buf[:])
		if n == last {
			return true
		}
		r.seen[n] = true
	}
}

func send(t *testing.T, from *Host, to netip.AddrPort, first, count uint32) {
	t.Helper()
	must(t, from.Do(func() error {
		conn, err := net.ListenUDP("udp4", nil)
		if err != nil {
			return err
		}
		defer conn.Close()
		for n := first; n < first+count; n++ {
			if _, err := conn.WriteToUDPAddrPort(binary.BigEndian.AppendUint32(nil, n), to); err != nil {
				return err
			}
		}
		return nil
	}))
}

// measure sends packets and returns the share that got lost on the way to each
// of two boards, and how often both agreed on whether one got through.
func measure(t *testing.T, l *LAN, rs []*receiver, first uint32) (lost [2]float64, same float64) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), timeout)
	defer cancel()
	for i, r := range rs {
		to := netip.AddrPortFrom(l.Board(i+2).Addr.Addr(), port)
		send(t, l.Board(1), to, first, packets)
		// The end is sent again until it gets through.
		end := first + packets + uint32(i)
		for arrived := false; !arrived; {
			must(t, ctx.Err())
			send(t, l.Board(1), to, end, 1)
			arrived = r.read(t, end, 50*time.Millisecond)
		}
	}
	var agree int
	for n := first; n < first+packets; n++ {
		for i, r := range rs {
			if !r.seen[n] {
				lost[i] += 1. / packets
			}
		}
		if rs[0].seen[n] == rs[1].seen[n] {
			agree++
		}
	}
	return lost, float64(agree) / packets
}

func TestLoss(t *testing.T) {
	l := newLAN(t, 3)
	rs := []*receiver{newReceiver(t, l.Board(2), port), newReceiver(t, l.Board(3), port)}
	first := uint32(0)
	for _, share := range []float64{0.4, 0.05, 0, 0.2} {
		var filters []Filter
		if share > 0 { // no share is all
			filters = []Filter{{To: Ports(l.Board(2), l.Board(3)), Traffic: Traffic{unix.IPPROTO_UDP, port}, Share: share}}
		}
		must(t, l.Filter(filters...))
		lost, same := measure(t, l, rs, first)
		first += packets + 2
		for i, got := range lost {
			// Four and a half standard deviations of 3000 draws are 4 %.
			if got < share-0.04 || got > share+0.04 || share == 0 && got > 0 {
				t.Errorf("board %d lost %.1f %%, not %.0f %%", i+2, 100*got, 100*share)
			}
		}
		// Independent receivers agree on what arrives as chance has it.
		if want := share*share + (1-share)*(1-share); same < want-0.05 || same > want+0.05 {
			t.Errorf("with a loss of %.0f %% both agree on %.1f %% of the packets, not on %.1f %%", 100*share, 100*same, 100*want)
		}
	}
}

// What is not asked for does not get lost.
func TestOtherTraffic(t *testing.T) {
	l := newLAN(t, 3)
	other := newReceiver(t, l.Board(2), port+1)
	must(t, l.Filter(
		Filter{To: Ports(l.Board(2)), Traffic: Traffic{unix.IPPROTO_UDP, port}},
		Filter{To: Ports(l.Board(3)), Traffic: Traffic{Protocol: 112}, Share: 1}))
	to := netip.AddrPortFrom(l.Board(2).Addr.Addr(), port+1)
	send(t, l.Board(1), to, 0, 101)
	if !other.read(t, 100, timeout) || len(other.seen) != 100 {
		t.Errorf("%d of 100 packets to another port arrived", len(other.seen))
	}
	third := newReceiver(t, l.Board(3), port)
	send(t, l.Board(1), netip.AddrPortFrom(l.Board(3).Addr.Addr(), port), 0, 101)
	if !third.read(t, 100, timeout) || len(third.seen) != 100 {
		t.Errorf("%d of 100 packets of another protocol arrived", len(third.seen))
	}
}

func TestMistakes(t *testing.T) {
	l := newLAN(t, 1)
	for _, wrong := range []Filter{{Share: -0.1}, {Share: 1.1}, {Share: math.NaN()}, {Traffic: Traffic{112, 1}}, {Traffic: Traffic{Port: 1}}} {
		if l.Filter(wrong) == nil {
			t.Errorf("%+v was accepted", wrong)
		}
	}
}
