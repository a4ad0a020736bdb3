package netio

import (
	"net"
	"net/netip"
	"syscall"
	"testing"
	"time"

	"topdog/internal/lab/assert"
	"topdog/internal/lab/judge"
	"topdog/internal/lab/netns"
)

// TestHolder6: a holder answers for an address of IPv6 as long as the lease lasts and it runs.
func TestHolder6(t *testing.T) { judge.RunTogether(t, testHolder6) }

func testHolder6(t *judge.T) {
	needTUN(t)
	l := newLAN6(t, 2)
	b, client := l.boards[0], l.boards[1]
	floating := []netip.Addr{testVIP, testVIP6}
	g, err := on(b, func() (*guard, error) {
		h, err := StartHolder(holderCommand, HolderOptions{Interface: "eth0", Floating: floating, Group: testGroup, Method: HoldTUN})
		if err != nil {
			return nil, err
		}
		g := &guard{Holder: h}
		if g.fence, err = g.OpenFence(); err != nil {
			return g, err
		}
		g.floating, err = g.OpenFloating("eth0", []netip.Prefix{netip.PrefixFrom(testVIP, 32), netip.PrefixFrom(testVIP6, 128)})
		return g, err
	})
	must(t, err)
	t.Cleanup(func() { g.close() })
	_, err = on(b, func() (*Conn, error) { return g.OpenSockets(b.options(floating...)) })
	must(t, err)
	announcer, err := g.OpenAnnouncer(b.link(t, "eth0").Index)
	must(t, err)
	rivals := make(chan rival, 10)
	announcer.Rivals(nil, func(addr netip.Addr, mac net.HardwareAddr) { rivals <- rival{addr, mac.String()} })
	asks := client.announcer6(t)
	answers := func() bool { return asks.hasOwner(t, testVIP6, 1, silence) }

	g.arm()
	must(t, g.floating.Acquire())
	eventually(t, "the holder answers", answers)
	talk(t, b, client, testVIP6, client.addr6())
	must(t, netns.Freeze(g.PID()))
	assert.Is(t, false, answers(), "a holder that stands still answers")
	must(t, syscall.Kill(g.PID(), syscall.SIGCONT))
	eventually(t, "the holder answers again", answers)
	must(t, asks.Announce(testVIP6))
	assert.Is(t, rival{testVIP6, client.mac(t)}, receive(t, "the rival", rivals), "the rival")
	announcer.AnnounceAnew()
	eventually(t, "the client knows the holder again", func() bool { return neighbour6(t, client, testVIP6) == b.mac(t) })

	_, found, err := announcer.Probe(t.Context(), testVIP6, 1, silence)
	must(t, err)
	assert.Is(t, false, found, "somebody else has it")
	end := Now() + 50*time.Millisecond
	g.extend(end)
	until(end)
	assert.Is(t, false, answers(), "the holder answers when the lease is over")
	must(t, g.floating.Release())
	assert.Is(t, false, b.has(t, "", testVIP6), "the address is there after Release")
}
