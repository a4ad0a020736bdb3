package daemon

import (
	"net"
	"net/netip"
	"testing"
	"time"

	"topdog/internal/config"
	"topdog/internal/console"
	"topdog/internal/lab/assert"
	"topdog/netio"
)

// copied gives a board the own address of board 1.
func copied(_ *config.Config, b *fakeBoard) {
	b.state.Link.Addrs = []netip.Prefix{netip.MustParsePrefix("10.0.0.1/24")}
}

// TestCopiedCard: boards 1 and 2 have one own address, 10.0.0.1, since one's card is a copy of the other's. Neither hears the other. Both
// say so before anything fails, with the other's Ethernet address; and when the leader is cut off, one of them takes over and not both.
func TestCopiedCard(t *testing.T) {
	inBubble(t, func(t *testing.T, l *fakeLAN) {
		three := l.board(3, nil)
		pass(time.Second)
		one, two := l.board(1, copied), l.board(2, copied)
		pass(5 * time.Second)
		l.wantHolders(3)
		one.wantProblem(t, "02:00:00:00:00:02 has this board's own address 10.0.0.1 as well")
		one.wantProblem(t, "Until then this board takes no part")
		two.wantProblem(t, "02:00:00:00:00:01 has this board's own address 10.0.0.1 as well")
		title := headline(t, one.mustStatus(t))
		assert.Is(t, "unknown who holds 10.0.0.100: another board has this board's own address", title, "the first line")

		three.get(func() { three.mute, three.deaf = true, true })
		pass(20 * time.Second)
		l.wantHolders(2) // the leader hears nothing, and has let go
		three.get(func() { three.mute, three.deaf = false, false })
		pass(3 * time.Second)
		assert.Is(t, 1, len(l.holders()), "holders after the heal")

		one.change(func(s *netio.Snapshot) { s.Link.Addrs = []netip.Prefix{netip.MustParsePrefix("10.0.0.11/24")} })
		pass(70 * time.Second) // people are told for a minute that two had one id
		for _, b := range []*fakeBoard{one, two, three} {
			b.wantNoProblem(t)
		}
		assert.Is(t, console.RoleFollower, one.mustStatus(t).Role, "the role of the board that was given another address")
	})
}

// TestCopiedCardGone: the other board with this one's address is switched off, or was given another address. This one, which took no part, is in
// again.
func TestCopiedCardGone(t *testing.T) {
	inBubble(t, func(t *testing.T, l *fakeLAN) {
		one := l.board(1, copied)
		pass(time.Second)
		l.wantHolders(1)
		two := l.board(2, copied)
		pass(10 * time.Second) // it probes for the address until the other one has let go of it
		l.wantHolders(2)
		one.wantProblem(t, "Until then this board takes no part")
		two.get(func() { two.dead = true })
		two.Kill()
		pass(20 * time.Second)
		l.wantHolders(1)
		one.wantNoProblem(t)
	})
}

// TestOwnAddressElsewhere: a machine that is no board has the leader's own address. The leader names it, and leads on. When it has been
// silent for a while, it is gone.
func TestOwnAddressElsewhere(t *testing.T) {
	inBubble(t, func(t *testing.T, l *fakeLAN) {
		_, _, three := l.three()
		three.tasks.post(func() { three.rivalHeard(ownAddress(3), net.HardwareAddr{9, 9, 9, 9, 9, 9}) })
		pass(time.Second)
		three.wantProblem(t, "09:09:09:09:09:09 has this board's own address 10.0.0.3 as well")
		l.wantHolders(3)
		pass(20 * time.Second)
		l.wantHolders(3)
		three.wantNoProblem(t)
	})
}

// TestOtherInterfaceAnswers: Linux answers ARP for this board's addresses by its other interfaces too, which is no rival.
func TestOtherInterfaceAnswers(t *testing.T) {
	inBubble(t, func(t *testing.T, l *fakeLAN) {
		_, _, three := l.three()
		wlan0 := net.HardwareAddr{2, 0, 0, 0, 8, 3}
		three.change(func(s *netio.Snapshot) { s.HardwareAddrs = []net.HardwareAddr{s.Link.HardwareAddr, wlan0} })
		pass(20 * time.Second)
		three.get(func() { three.announced = 0 })
		three.claimed(wlan0)
		three.tasks.post(func() { three.rivalHeard(ownAddress(3), wlan0) })
		pass(time.Second)
		three.wantNoProblem(t)
		three.get(func() { assert.Is(t, 0, three.announced, "announcements against itself") })
	})
}
