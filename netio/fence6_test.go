package netio

import (
	"net"
	"net/netip"
	"testing"

	"topdog/internal/lab/assert"
)

// TestFence6 holds when an address of IPv6 is answered: the lease alone decides, whether this process or the kernel answers.
func TestFence6(t *testing.T) {
	eachFence(t, func(t *testing.T, kind FenceKind) {
		for _, method := range []HoldMethod{HoldLifetime, HoldTUN} {
			t.Run(method.String(), func(t *testing.T) {
				needTUN(t)
				l := newLAN6(t, 2)
				b := &fencedBoard{
					board: l.boards[0], client: l.boards[1], services: map[netip.Addr]net.Conn{}, answers: map[netip.Addr]net.PacketConn{},
				}
				must(t, openFloating(t, b.board, FloatingOptions{Method: method, lifetime: longLease, Addresses: []netip.Prefix{
					testFloating, netip.PrefixFrom(otherVIP6, 128), netip.PrefixFrom(testVIP6, 128),
				}}).Acquire())
				fence, err := on(b.board, func() (*kernelFence, error) { return newFence([]netip.Addr{testVIP, otherVIP6, testVIP6}, kind) })
				must(t, err)
				t.Cleanup(func() { must(t, fence.Close()) })
				b.fence = fence
				b.asks, b.sends = b.client.announcer6(t), b.announcer6(t)
				b.cover(t, "eth0")
				for _, addr := range []netip.Addr{testVIP6, b.addr6()} {
					b.serve(t, addr)
				}
				b.sends.Hold([]netip.Addr{testVIP6}, nil) // whatever the lease is

				wantAnswers := func(when string, want bool) {
					t.Helper()
					probed := func() bool { return b.asks.hasOwner(t, testVIP6, 1, silence) }
					if want {
						eventually(t, when+": the address is answered", func() bool { return b.answersIP(t, testVIP6) && probed() })
					} else if probed() || b.answersIP(t, testVIP6) {
						t.Errorf("%s: the address is answered", when)
					}
					eventually(t, when+": the board's own address is answered", func() bool { return b.answersIP(t, b.addr6()) })
				}
				wantAnswers("nothing to release", true)
				fence.Begin(NoEnd)
				wantAnswers("no end", true)
				fence.Shut()
				wantAnswers("shut", false)
				passes := kind == FenceXDP // it sees only what comes in
				assert.Is(t, passes, b.sends.Announce(testVIP6) == nil, "the announcement was sent")
				others := advertise(testVIP6, false)
				others.source = theirIP6
				assert.Is(t, passes, b.sends.six.socket.send(etherMulticast(allNodes), others) == nil, "one with another source was sent")
				must(t, b.sends.six.probe(testVIP6)) // to know whether somebody else has it
				fence.Released()
				wantAnswers("released", true)
			})
		}
	})
}
