package netns

import (
	"net"
	"net/netip"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"topdog/internal/lab/assert"
	"topdog/internal/lab/frame"
	"topdog/internal/lab/observe"
)

// vip6 is a floating IPv6 address, as a board has it.
var vip6 = netip.MustParsePrefix("fd00:1::250/128")

// A LAN with IPv6 has the observers of one without: who has the address, who answers the client, and who answers for it.
func TestIPv6(t *testing.T) {
	l := newLAN(t, 2)
	ctx := withTimeout(t)
	one, two, client := l.Board(1), l.Board(2), l.Client()
	_, err := l.Ask(vip6.Addr(), time.Millisecond)
	assert.ErrorContains(t, err, "no route", "the client of a LAN without IPv6 asks")
	must(t, l.AddIPv6())
	assert.Is(t, "fd00:1::200/64", client.Addr6.String(), "the client's address")

	must(t, one.AddAddress(vip6))
	held, err := l.WatchHolders(vip6.Addr())
	must(t, err)
	assert.Equal(t, []int{1}, held.Current(), "holders to begin with")
	asker, err := l.Ask(vip6.Addr(), time.Millisecond)
	must(t, err)
	waitFor(t, ctx, asker, 1)

	socket, err := client.Capture(unix.ETH_P_IPV6)
	must(t, err)
	// Each way of asking says so by itself.
	for _, by := range []observe.Probe{{ARP: 2 * time.Millisecond}, {Echo: 2 * time.Millisecond}} {
		by.Address, by.MAC = vip6.Addr(), net.HardwareAddr{2, 0, 0, 0, 0xaa, 1}
		by.From = []netip.Addr{netip.MustParseAddr("fd00:1::201"), netip.MustParseAddr("fd00:1::202")}
		by.Boards = map[int]net.HardwareAddr{1: one.HardwareAddr, 2: two.HardwareAddr}
		prober := observe.StartProber(socket, by)
		answers := func() map[int]bool {
			boards := map[int]bool{}
			for began := time.Now(); time.Since(began) < 5*time.Second && len(boards) == 0; <-time.After(50 * time.Millisecond) {
				for _, r := range prober.Take() {
					boards[r.Board] = true
				}
			}
			return boards
		}
		assert.Equal(t, map[int]bool{1: true}, answers(), "who answers %+v", by)
		prober.Close()
		socket, err = client.Capture(unix.ETH_P_IPV6)
		must(t, err)
	}

	// The client believes what it knows until somebody announces the address.
	must(t, two.AddAddress(vip6))
	must(t, held.WaitFor(ctx, isHeldBy(1, 2)))
	must(t, one.DeleteAddress(vip6))
	must(t, held.WaitFor(ctx, isHeldBy(2)))
	announcement := frame.Neighbour{Advertises: true, Flags: frame.NeighbourOverride, Target: vip6.Addr(), MAC: two.HardwareAddr}
	from, err := two.Capture(0)
	must(t, err)
	must(t, from.Send(announcement.Packet(vip6.Addr(), frame.AllNodes, frame.MulticastMAC(frame.AllNodes)).Frame()))
	from.Close()
	waitFor(t, ctx, asker, 2)

	// The address of a machine comes back with its interface, and it can forget its neighbours.
	must(t, one.DeleteInterface())
	must(t, one.CreateInterface())
	must(t, client.ForgetNeighbours())
	own, err := l.Ask(one.Addr6.Addr(), time.Millisecond)
	must(t, err)
	waitFor(t, ctx, own, 1)
}
