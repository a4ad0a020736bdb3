package daemon

import (
	"net"
	"net/netip"
	"testing"
	"time"

	"topdog/internal/config"
	"topdog/netio"
)

// on is an address of a board.
func on(device, prefix string) netio.LocalAddr {
	return netio.LocalAddr{Prefix: netip.MustParsePrefix(prefix), Index: 2, Device: device}
}

// TestStrayAddress: somebody has added the floating address by hand, on a follower or on the leader. That board says how to get rid of it.
func TestStrayAddress(t *testing.T) {
	inBubble(t, func(t *testing.T, l *fakeLAN) {
		one, _, three := l.three()
		for _, test := range []struct {
			name  string
			board *fakeBoard
			local []netio.LocalAddr
			want  string // "" for no problem
		}{
			{"on a follower", one, []netio.LocalAddr{on("eth0", "10.0.0.100/24")}, "10.0.0.100/24 is on eth0, and topdog has not put it there, so this board answers for it whoever leads: ip addr del 10.0.0.100/24 dev eth0"},
			{"taken away", one, nil, ""},
			{"on a follower's loopback", one, []netio.LocalAddr{on("lo", "10.0.0.100/32")}, "ip addr del 10.0.0.100/32 dev lo"},
			{"taken away", one, nil, ""},
			{"topdog's on the leader", three, []netio.LocalAddr{on("nothing", "10.0.0.100/32")}, ""},
			{"beside topdog's on the leader", three, []netio.LocalAddr{on("nothing", "10.0.0.100/32"), on("eth0", "10.0.0.100/24")}, "ip addr del 10.0.0.100/24 dev eth0"},
			{"of another subnet", one, []netio.LocalAddr{on("eth0", "10.0.0.1/24")}, ""},
		} {
			test.board.change(func(s *netio.Snapshot) { s.Local = test.local })
			pass(time.Second)
			if test.want != "" {
				test.board.wantNoProblem(t) // it may be about to go
			}
			pass(3 * time.Second)
			if test.want == "" {
				test.board.wantNoProblem(t)
			} else {
				test.board.wantProblem(t, test.want)
				test.board.wantLogged(t, test.want, 1)
			}
			l.wantHolders(3)
			if t.Failed() {
				t.Fatal(test.name)
			}
			if test.board == three {
				three.change(func(s *netio.Snapshot) { s.Local = nil })
				pass(time.Second)
			}
		}
	})
}

// TestNamesProxy: the leader names a machine that answers for its address: by its Ethernet address, and by what the kernel knows of it.
func TestNamesProxy(t *testing.T) {
	inBubble(t, func(t *testing.T, l *fakeLAN) {
		_, _, three := l.three()
		pass(2 * time.Minute)
		router := net.HardwareAddr{2, 0, 0, 0, 1, 0} // as fakeNeighbours has it
		for range 2 {
			three.claimed(router)
			pass(2 * time.Minute)
		}
		three.claimed(router)
		pass(time.Millisecond)
		three.wantProblem(t, "02:00:00:00:01:00, which is 10.0.0.254, answers for 10.0.0.100 as well, which this board holds: find that machine, and take the address from it, or switch its proxy ARP off")
	})
}

// TestOwnAddressIsFloating: the floating address that was chosen is the only address of this board.
func TestOwnAddressIsFloating(t *testing.T) {
	inBubble(t, func(t *testing.T, l *fakeLAN) {
		one := l.board(1, func(_ *config.Config, b *fakeBoard) {
			b.state.Link.Addrs = []netip.Prefix{netip.MustParsePrefix("10.0.0.100/24")}
		})
		pass(time.Second)
		one.wantProblem(t, "10.0.0.100 is this board's own address on eth0, and a floating address is one that no machine has for itself: choose another one, on all boards")
		l.wantHolders()
	})
}
