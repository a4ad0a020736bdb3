package daemon

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"topdog/internal/config"
	"topdog/internal/console"
	"topdog/internal/lab/assert"
	"topdog/netio"
)

// withBoth gives a board a floating address of IPv6 too, in front of the other, and one of its own.
func withBoth(c *config.Config, b *fakeBoard) {
	c.Addresses = []config.Address{{IP: floating6}, {IP: floating}}
	own := netip.MustParsePrefix(fmt.Sprintf("fd00::%d/64", b.number))
	b.state.Link.Addrs = append(b.state.Link.Addrs, own)
	b.state.Local = append(b.state.Local, netio.LocalAddr{Prefix: own, Index: b.state.Link.Index, Device: "eth0"})
}

// threeWithBoth starts three boards, of which the third leads.
func (l *fakeLAN) threeWithBoth(t *testing.T) (one, two, three *fakeBoard) {
	t.Helper()
	one, two, three = l.board(1, withBoth), l.board(2, withBoth), l.board(3, withBoth)
	pass(2 * time.Second)
	l.wantBoth(3)
	return one, two, three
}

// wantBoth wants these boards, and no others, to hold both addresses.
func (l *fakeLAN) wantBoth(want ...int) {
	l.t.Helper()
	l.wantHolders(want...)
	assert.Equal(l.t, want, l.holders6(), "who holds the address of IPv6")
}

// TestBothFamiliesMove: the addresses of both families are where the leader is, from the start over a takeover and a handover to
// the end.
func TestBothFamiliesMove(t *testing.T) {
	inBubble(t, func(t *testing.T, l *fakeLAN) {
		l.hosts = append(l.hosts, netip.MustParseAddr("fd00::99"))
		one, two, three := l.threeWithBoth(t)
		three.get(func() {
			assert.Equal(t, []netip.Addr{floating6, floating}, three.announcer.ours, "what is announced")
			assert.Is(t, 1, three.announced, "announced as they were acquired")
		})
		for _, b := range []*fakeBoard{one, two, three} {
			s := b.mustStatus(t)
			assert.Equal(t, []string{"fd00::100/64", "10.0.0.100/24"}, s.Addresses, "the addresses of board %d", b.number)
			assert.Is(t, fmt.Sprint("10.0.0.", b.number), s.Board.Address, "its own one")
			assert.Is(t, "10.0.0.3", s.HeldBy, "who holds them")
			for _, other := range s.Boards {
				assert.Equal(t, []string{"10.0.0.100", "fd00::100"}, other.Floating, "the addresses of %s, as it has told board %d", other.Name, b.number)
			}
			b.wantNoProblem(t)
		}
		three.wantLog(t, "holds fd00::100/64, 10.0.0.100/24", 1)

		three.Kill()
		pass(time.Second)
		l.wantBoth(2)
		two.get(func() {
			last := two.told[len(two.told)-1]
			assert.Equal(t, []string{"fd00::100/64", "10.0.0.100/24"}, last.Addresses, "what the hooks of the successor are told")
		})
		two.wantTold(t, console.ProblemAskLAN, "")
		if asked := two.asked(); slices.ContainsFunc(asked, func(q string) bool { return strings.HasPrefix(q, "fd00:") }) {
			t.Errorf("the heir has asked for an IPv6 address by ARP: %v", asked)
		}
		_, err := two.Resign(t.Context())
		assert.NoError(t, err)
		pass(time.Second)
		l.wantBoth(1)
		one.end()
		pass(time.Second)
		l.wantBoth(2)
		two.end()
		pass(time.Second)
		l.wantBoth()
	})
}

// TestIPv6CannotBeAdded: the kernel of the leader refuses the address of IPv6, from the start or later. It leads on with the
// other, says so while that lasts, and no longer.
func TestIPv6CannotBeAdded(t *testing.T) {
	const problem = "add fd00::100 to nothing: IPv6 is switched off"
	inBubble(t, func(t *testing.T, l *fakeLAN) {
		_, two, three := l.threeWithBoth(t)
		may := func(so bool) {
			three.get(func() { three.noIPv6, three.holding6 = !so, three.holding6 && so; three.announced = 0 })
			pass(time.Second)
		}
		for range 2 {
			may(false)
			l.wantHolders(3)
			assert.Equal(t, []int(nil), l.holders6(), "who holds the address of IPv6")
			three.wantTold(t, console.ProblemAddressNotHeld, problem)
			s := three.mustStatus(t)
			assert.Is(t, true, s.Holding && s.Held(), "it is held")
			if title := headline(t, s); !strings.HasPrefix(title, "some of fd00::100 and 10.0.0.100 are held by this board") {
				t.Errorf("the status begins with %q", title)
			}
			may(true)
			l.wantBoth(3)
			three.wantNoProblem(t)
			three.get(func() { assert.Is(t, 1, three.announced, "announced when both were there") })
		}
		assert.Is(t, 0, three.mustStatus(t).Counters.AddressRestored, "how often somebody has deleted it")

		may(false)
		three.Resign(t.Context())
		pass(time.Second)
		l.wantBoth(2)
		three.wantNoProblem(t)
		two.wantNoProblem(t)
		two.Resign(t.Context())
		pass(time.Second)
		l.wantHolders(3)
		three.wantTold(t, console.ProblemAddressNotHeld, problem)
		three.wantLog(t, "holds some of fd00::100/64, 10.0.0.100/24", 1)
	})
}

// TestIPv6Deleted: somebody deletes the address of IPv6 alone, and it is put back.
func TestIPv6Deleted(t *testing.T) {
	inBubble(t, func(t *testing.T, l *fakeLAN) {
		_, _, three := l.threeWithBoth(t)
		three.get(func() { three.holding6, three.announced = false, 0 })
		three.change(func(*netio.Snapshot) {})
		pass(time.Millisecond)
		l.wantBoth(3)
		three.get(func() { assert.Is(t, 1, three.announced, "announced as it was put back") })
		assert.Is(t, 1, three.mustStatus(t).Counters.AddressRestored, "the counter")
	})
}

// TestIPv6CannotBeProbed: a board without IPv6 does not keep the IPv4 address from everybody. It says why it has not asked.
func TestIPv6CannotBeProbed(t *testing.T) {
	inBubble(t, func(t *testing.T, l *fakeLAN) {
		one := l.board(1, func(c *config.Config, b *fakeBoard) {
			withBoth(c, b)
			b.noProbe6, b.noIPv6 = errors.New("probe for fd00::100: no such protocol"), true
		})
		pass(3 * time.Second)
		l.wantHolders(1)
		one.wantLog(t, "probe for fd00::100: no such protocol", 1)
		one.wantTold(t, console.ProblemAddressNotHeld, "IPv6 is switched off")
	})
}

// TestProbeAnswers: which of the answers for all addresses counts.
func TestProbeAnswers(t *testing.T) {
	mac, failed := net.HardwareAddr{2, 0, 0, 0, 0, 9}, errors.New("no")
	found := func(addr netip.Addr) probeAnswer { return probeAnswer{addr, mac, true, nil} }
	fails := func(addr netip.Addr) probeAnswer { return probeAnswer{addr, nil, false, failed} }
	free := func(addr netip.Addr) probeAnswer { return probeAnswer{addr: addr} }
	inOrder := []probeAnswer{{}, fails(floating6), fails(floating), found(floating6)}
	for i := range inOrder[1:] {
		if a, b := inOrder[i].weight(), inOrder[i+1].weight(); a >= b {
			t.Errorf("%v weighs %d, and %v weighs %d", inOrder[i], a, inOrder[i+1], b)
		}
	}
	for _, test := range []struct {
		answer probeAnswer
		inUse  bool
	}{
		{free(floating), false}, {free(floating6), false}, {found(floating), true}, {found(floating6), true},
		{fails(floating), true}, {fails(floating6), false}, {probeAnswer{err: failed}, true},
	} {
		assert.Is(t, test.inUse, test.answer.inUse(), "%v: in use", test.answer)
	}
}

// TestDefendsIPv6: a machine that speaks as the address of IPv6 is answered, as often as one that speaks as the other, and both
// together no more often.
func TestDefendsIPv6(t *testing.T) {
	inBubble(t, func(t *testing.T, l *fakeLAN) {
		_, _, three := l.threeWithBoth(t)
		mac := net.HardwareAddr{0xde, 0xad, 0xbe, 0xef, 0, 6}
		for _, test := range []struct {
			name   string
			claims []netip.Addr
			every  time.Duration
			want   int
		}{
			{"one a second", slices.Repeat([]netip.Addr{floating6}, 30), time.Second, 30},
			{"a burst", slices.Repeat([]netip.Addr{floating6}, 20), 0, 5},
			{"a burst for both", slices.Repeat([]netip.Addr{floating6, floating}, 10), 0, 5},
			{"a flood for both", slices.Repeat([]netip.Addr{floating6, floating}, 1500), 10 * time.Millisecond, 64}, // for 30 s
		} {
			pass(70 * time.Second)
			three.get(func() { three.announced = 0 })
			for _, addr := range test.claims {
				three.hearsClaim(addr, mac)
				pass(test.every)
			}
			pass(time.Millisecond)
			three.get(func() { assert.Is(t, test.want, three.announced, "%s: claims that were answered", test.name) })
			l.wantBoth(3)
		}
		pass(70 * time.Second)
		three.hearsClaim(floating6, mac)
		pass(time.Millisecond)
		three.wantProblem(t, "de:ad:be:ef:00:06 answers for fd00::100 as well, which this board holds: find that machine, and take the address from it, or switch its proxy for Neighbor Discovery off")
	})
}

// TestStrayIPv6: an address of IPv6 that topdog has not put there is told like one of IPv4, and where nobody is answered for it, that
// is not claimed.
func TestStrayIPv6(t *testing.T) {
	inBubble(t, func(t *testing.T, l *fakeLAN) {
		one, _, three := l.threeWithBoth(t)
		for _, test := range []struct {
			board        *fakeBoard
			device, says string
		}{
			{one, "eth0", "fd00::100/64 is on eth0, and topdog has not put it there, so this board answers for it whoever leads: ip addr del fd00::100/64 dev eth0"},
			{one, "lo", "fd00::100/64 is on lo, and topdog has not put it there, so this board itself never reaches the leader there: ip addr del fd00::100/64 dev lo"},
			{three, "nothing", ""},
		} {
			length := map[bool]string{true: "/128", false: "/64"}[test.says == ""]
			test.board.change(func(s *netio.Snapshot) { s.Local = []netio.LocalAddr{on(test.device, "fd00::100"+length)} })
			pass(4 * time.Second)
			test.board.wantTold(t, console.ProblemStrayAddress, test.says)
			test.board.change(func(s *netio.Snapshot) { s.Local = nil })
			pass(time.Second)
		}
	})
}

// TestAddressesDiffer: a board without the address of IPv6 is told of, on all boards. While it leads, nobody says that it has that.
func TestAddressesDiffer(t *testing.T) {
	inBubble(t, func(t *testing.T, l *fakeLAN) {
		one, _, three := l.board(1, withBoth), l.board(2, withBoth), l.board(3, nil)
		pass(5 * time.Second)
		l.wantHolders(3)
		one.wantProblem(t, `pi3 (10.0.0.3) has address = "10.0.0.100" where the others have ["10.0.0.100", "fd00::100"]`)
		three.wantProblem(t, `this board has address = "10.0.0.100" where the others have ["10.0.0.100", "fd00::100"]`)
		assert.Is(t, "nobody holds all of fd00::100 and 10.0.0.100: pi3 (10.0.0.3) leads, and its configuration has 10.0.0.100", headline(t, one.mustStatus(t)), "the first line")
	})
}

// TestIPv6WithoutNetwork: where the interface has no network of IPv6, the address stands alone.
func TestIPv6WithoutNetwork(t *testing.T) {
	inBubble(t, func(t *testing.T, l *fakeLAN) {
		one := l.board(1, func(c *config.Config, _ *fakeBoard) { c.Addresses = append(c.Addresses, config.Address{IP: floating6}) })
		pass(3 * time.Second)
		l.wantBoth(1)
		assert.Equal(t, []string{"10.0.0.100/24", "fd00::100/128"}, one.mustStatus(t).Addresses, "the addresses")
	})
}

// TestIPv6AndThenNothingHeld: the address of IPv6 was missing when a renewal of all failed. That is the problem then, and stays so.
func TestIPv6AndThenNothingHeld(t *testing.T) {
	inBubble(t, func(t *testing.T, l *fakeLAN) {
		_, _, three := l.threeWithBoth(t)
		three.get(func() { three.noIPv6, three.holding6 = true, false })
		pass(time.Second)
		three.wantTold(t, console.ProblemAddressNotHeld, "IPv6 is switched off")
		three.get(func() { three.acquireFails = errNoPermission })
		three.onLoop(t, func() {
			three.address.renewed(three.address.acquired, false, errNoPermission)
		})
		pass(2 * time.Second)
		l.wantBoth(2)
		three.wantTold(t, console.ProblemAddressNotHeld, errNoPermission.Error())
	})
}

// TestOnlyIPv6 is refused: the election has no address to ask for.
func TestOnlyIPv6(t *testing.T) {
	_, err := New(&config.Config{Addresses: []config.Address{{IP: floating6}}}, Platform{}, Options{})
	assert.Is(t, true, err != nil && strings.Contains(err.Error(), "no floating IPv4 address is configured"), "%v", err)
}
