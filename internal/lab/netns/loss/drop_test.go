package loss

import (
	"encoding/binary"
	"net"
	"net/netip"
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"topdog/internal/lab/assert"
	"topdog/internal/lab/netns"
)

// group is any multicast group that a switch could prune.
var group = netip.MustParseAddr("239.7.7.7")

// ways are three ways from one board to another.
var ways = []struct {
	name string
	to   func(*netns.Host) netip.Addr
}{
	{"unicast", func(h *netns.Host) netip.Addr { return h.Addr.Addr() }},
	{"broadcast", func(*netns.Host) netip.Addr { return netip.MustParseAddr("10.77.0.255") }},
	{"multicast", func(*netns.Host) netip.Addr { return group }},
}

// newEar hears numbers that come on all ways, in the order in which they come.
func newEar(t *testing.T, h *netns.Host) *receiver {
	t.Helper()
	r := newReceiver(t, h, port)
	assert.NoError(t, h.Do(func() error {
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
func sendFrom(t *testing.T, from *netns.Host, to netip.Addr, number uint32) {
	t.Helper()
	assert.NoError(t, from.Do(func() error {
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

// TestDrop sends a frame on each way between two boards while one of them loses
// some kind of frames.
func TestDrop(t *testing.T) {
	l := newLAN(t)
	one, two := l.Board(1), l.Board(2)
	d, err := NewDropper(one)
	assert.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, d.Close()) })
	ears := map[*netns.Host]*receiver{one: newEar(t, one), two: newEar(t, two)}
	next := uint32(0) // number of a frame: what a board says to all it hears itself, too
	// through says which ways are open from one board to another.
	through := func(from, to *netns.Host) (open []string) {
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
	check := func(what string, from, to *netns.Host, want []string) {
		t.Helper()
		if got := through(from, to); !slices.Equal(got, want) {
			t.Errorf("%s: from %s to %s pass %v, want %v", what, from.Name, to.Name, got, want)
		}
	}
	for range 2 {
		check("nothing dropped", one, two, all)
		check("nothing dropped", two, one, all)
		for _, c := range []struct {
			kind     Frames
			in, from []string // what passes to board 1, and from it
		}{
			{ToHost, nil, all},
			{FromHost, all, nil},
			{MulticastToHost, all[:2], all},
		} {
			assert.NoError(t, d.Drop(c.kind, one, l.Board(3)))
			check(string(c.kind), two, one, c.in)
			check(string(c.kind), one, two, c.from)
			assert.NoError(t, d.Drop(c.kind, one))
			assert.NoError(t, d.Pass(c.kind, one, l.Board(3)))
			check(string(c.kind)+" still", two, one, c.in)
			check(string(c.kind)+" still", one, two, c.from)
			assert.NoError(t, d.Pass(c.kind, one))
			if d.Pass(c.kind, one) == nil {
				t.Errorf("%s: what is not dropped passes once more", c.kind)
			}
		}
	}
}
