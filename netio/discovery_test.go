package netio

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"topdog/internal/lab/assert"
	"topdog/internal/lab/judge"
)

// lan6 is a LAN whose machines have IPv6 as well: fd00:77::n/64.
type lan6 struct{ *lan }

func newLAN6(t testing.TB, n int) lan6 {
	t.Helper()
	if _, err := os.Stat(confIPv6); err != nil {
		t.Skip("this kernel has no IPv6")
	}
	l := lan6{newLAN(t, n)}
	for _, b := range l.boards {
		b.sysctl6(t, "accept_dad", "0")
		own := netlinkAddr(b.link(t, "eth0").Index, netip.PrefixFrom(b.addr6(), 64))
		own.Flags = 0x02 // IFA_F_NODAD: it is of use at once
		must(t, b.handle.AddrAdd(nil, own))
	}
	return l
}

// addr6 is the board's own address.
func (b *board) addr6() netip.Addr {
	addr := netip.MustParseAddr("fd00:77::").As16()
	addr[15] = b.addr.As4()[3]
	return netip.AddrFrom16(addr)
}

// sysctl6 sets something of IPv6 on eth0.
func (b *board) sysctl6(t testing.TB, name, value string) {
	t.Helper()
	b.do(t, func() error { return os.WriteFile(filepath.Join(confIPv6, "eth0", name), []byte(value), 0) })
}

// announcer6 opens an Announcer for the floating addresses of both families.
func (b *board) announcer6(t testing.TB) *Announcer {
	t.Helper()
	eth0 := b.link(t, "eth0")
	a, err := on(b, func() (*Announcer, error) { return OpenAnnouncer(eth0.Index, b.addr, testVIP, testVIP6) })
	must(t, err)
	t.Cleanup(func() { a.Close() })
	return a
}

// neighbour6 is the Ethernet address that a machine has for an address, or "".
func neighbour6(t testing.TB, b *board, addr netip.Addr) string {
	t.Helper()
	all, err := dump(func() ([]netlink.Neigh, error) { return b.handle.NeighList(b.link(t, "eth0").Index, netlink.FAMILY_V6) })
	must(t, err)
	for _, n := range all {
		if got, _ := netip.AddrFromSlice(n.IP); got == addr && freshness(n.State) < unconfirmed {
			return n.HardwareAddr.String()
		}
	}
	return ""
}

func TestDiscovery(t *testing.T) {
	l := newLAN6(t, 3)
	us, them, client := l.boards[0], l.boards[1], l.boards[2]
	ours, theirs := us.announcer6(t), them.announcer6(t)
	const quick = 50 * time.Millisecond
	both := []netip.Addr{testVIP, testVIP6}
	has := func(a *Announcer) bool { return a.hasOwner(t, testVIP6, 1, quick) }
	holding := map[*board]*Announcer{us: ours, them: theirs}
	for b := range holding {
		f := openFloating(t, b, FloatingOptions{Method: HoldTUN, lifetime: longLease, Addresses: []netip.Prefix{
			testFloating, netip.PrefixFrom(testVIP6, 128),
		}})
		must(t, f.Acquire())
	}
	assert.Is(t, false, has(ours), "somebody answers without a lease")

	var over atomic.Bool
	theirs.Hold(both, func() bool { return !over.Load() })
	eventually(t, "the other board answers", func() bool { return has(ours) })
	talk(t, them, client, testVIP6, client.addr6())
	assert.Is(t, them.mac(t), neighbour6(t, client, testVIP6), "whom the client asks")

	// An owner by itself, and its kernel, are told apart: the kernel answers for the board's own address only.
	over.Store(true)
	assert.Is(t, false, has(ours), "it answers when its lease is over")
	over.Store(false)
	assert.Is(t, true, has(ours), "it answers when its lease goes on")
	theirs.Hold(nil, nil)
	assert.Is(t, false, has(ours), "it answers when it has released the address")

	rivals := make(chan rival, 10)
	ours.Rivals(nil, func(addr netip.Addr, mac net.HardwareAddr) { rivals <- rival{addr, mac.String()} })
	ours.Hold(both, nil)
	eventually(t, "the client knows the new holder", func() bool { return neighbour6(t, client, testVIP6) == us.mac(t) })
	talk(t, us, client, testVIP6, client.addr6())

	must(t, theirs.Announce(testVIP6))
	assert.Is(t, rival{testVIP6, them.mac(t)}, receive(t, "the rival", rivals), "the rival")
	assert.Is(t, true, has(theirs), "a probe is answered")
	assert.Is(t, 0, len(rivals), "a probe is a rival")
	ours.AnnounceAnew()
	eventually(t, "the client knows us again", func() bool { return neighbour6(t, client, testVIP6) == us.mac(t) })
}

// TestDuplicateAddressDetection: a machine that is given the address while this board holds it finds out, and does not use it.
func TestDuplicateAddressDetection(t *testing.T) {
	l := newLAN6(t, 2)
	us, them := l.boards[0], l.boards[1]
	us.announcer6(t).Hold([]netip.Addr{testVIP6}, nil)
	them.sysctl6(t, "accept_dad", "1")
	them.addAddr(t, "eth0", netip.PrefixFrom(testVIP6, 64))
	eventually(t, "its kernel refuses the address", func() bool {
		addrs, err := listAddrs(them.handle)
		must(t, err)
		return slices.ContainsFunc(addrs, func(a netlink.Addr) bool { return a.IP.Equal(testVIP6.AsSlice()) && a.Flags&unix.IFA_F_DADFAILED != 0 })
	})
}

// TestDiscoveryOfAKernel finds an address that a machine without topdog has.
func TestDiscoveryOfAKernel(t *testing.T) {
	l := newLAN6(t, 2)
	us, them := l.boards[0], l.boards[1]
	ours := us.announcer6(t)
	addr := netlinkAddr(them.link(t, "eth0").Index, netip.PrefixFrom(testVIP6, 64))
	addr.Flags = 0x02
	must(t, them.handle.AddrAdd(nil, addr))
	owner, found, err := ours.Probe(t.Context(), testVIP6, 3, testTimeout)
	must(t, err)
	assert.Is(t, true, found, "found")
	assert.Is(t, them.mac(t), owner.String(), "the owner")
}

// TestWithoutDiscovery: an announcer that was opened for addresses of IPv4 says what it cannot do.
func TestWithoutDiscovery(t *testing.T) {
	a := openTestAnnouncer(t, newLAN(t, 1).boards[0])
	_, _, err := a.Probe(t.Context(), testVIP6, 1, time.Second)
	assert.ErrorIs(t, err, errNoDiscovery, "probing")
	assert.ErrorIs(t, a.Announce(testVIP6), errNoDiscovery, "announcing")
	assert.ErrorIs(t, a.Resolve(testVIP6), errNoDiscovery, "resolving")
}

// TestRouterFlag: an advertisement says whether the board forwards packets.
func TestRouterFlag(t *testing.T) {
	l := newLAN6(t, 1)
	b := l.boards[0]
	a := b.announcer6(t)
	assert.Is(t, false, a.six.isRouter(), "a host is a router")
	b.sysctl6(t, "forwarding", "1")
	assert.Is(t, true, a.six.isRouter(), "a router is one")
}

// TestFloodOfSolicitations: somebody who asks thousands of times does not keep this board busy. Meanwhile it answers others, and
// afterwards everybody.
func TestFloodOfSolicitations(t *testing.T) {
	l := newLAN6(t, 3)
	us, them, client := l.boards[0], l.boards[1], l.boards[2]
	ours, theirs, asks := us.announcer6(t), them.announcer6(t), client.announcer6(t)
	ours.Hold([]netip.Addr{testVIP6}, nil)
	eventually(t, "we answer", func() bool { return theirs.hasOwner(t, testVIP6, 1, 20*time.Millisecond) })
	throttled := func() bool {
		ours.six.reading.Lock()
		defer ours.six.reading.Unlock()
		return len(ours.six.muted) > 0
	}
	ctx, calm := context.WithCancel(t.Context())
	defer calm()
	to := hardwareAddr(us.link(t, "eth0").HardwareAddr)
	var flood sync.WaitGroup
	flood.Go(func() {
		question := ndpMessage{kind: solicitation, source: them.addr6(), destination: solicitedNode(testVIP6), target: testVIP6}
		for ctx.Err() == nil { // the answers go to them alone
			_ = theirs.six.socket.send(to, question)
		}
	})
	eventually(t, "the kernel drops them", throttled)
	for range 5 {
		assert.Is(t, true, asks.hasOwner(t, testVIP6, 5, 40*time.Millisecond), "a client is answered meanwhile")
	}
	calm()
	flood.Wait()
	eventually(t, "we answer again", func() bool { return !throttled() && theirs.hasOwner(t, testVIP6, 1, 20*time.Millisecond) })
}

// TestProbeInAFlood6: a probe that begins while the kernel drops a flood hears the owner all the same.
func TestProbeInAFlood6(t *testing.T) {
	l := newLAN6(t, 3)
	us, owner, flooder := l.boards[0], l.boards[1], l.boards[2]
	ours, floods := us.announcer6(t), flooder.announcer6(t)
	addr := netlinkAddr(owner.link(t, "eth0").Index, netip.PrefixFrom(testVIP6, 64))
	addr.Flags = 0x02
	must(t, owner.handle.AddrAdd(nil, addr))
	throttled := func() bool {
		ours.six.reading.Lock()
		defer ours.six.reading.Unlock()
		return len(ours.six.muted) > 0
	}
	question := ndpMessage{kind: solicitation, source: flooder.addr6(), destination: solicitedNode(testVIP6), target: testVIP6}
	eventually(t, "the kernel drops them", func() bool {
		for range 100 {
			must(t, floods.six.socket.send(hardwareAddr(us.link(t, "eth0").HardwareAddr), question))
		}
		return throttled()
	})
	assert.Is(t, true, ours.hasOwner(t, testVIP6, 1, 100*time.Millisecond), "the owner is heard")
}

// TestReleaseWithoutIPv6: an address that the kernel has dropped together with IPv6 was released, and so was one that a kernel without
// IPv6 never had.
func TestReleaseWithoutIPv6(t *testing.T) {
	eachMethod(t, func(t *judge.T, method HoldMethod) {
		needTUN(t)
		b := newLAN6(t, 1).boards[0]
		f := openFloating(t, b, FloatingOptions{Method: method, lifetime: longLease, Addresses: []netip.Prefix{
			testFloating, netip.PrefixFrom(testVIP6, 128),
		}})
		must(t, f.Acquire())
		const tooShort = 1000 // for IPv6, which the kernel then takes from the device
		link := b.link(t, f.State().Device)
		must(t, b.handle.LinkSetMTU(&netlink.Device{LinkAttrs: netlink.LinkAttrs{Index: link.Index}}, tooShort))
		must(t, f.Release())
		assert.Is(t, false, b.has(t, "", testVIP), "the address of IPv4 is still there")

		const missing = unix.AF_DECnet // no kernel has it any more
		socket, err := openRouteSocket(0)
		must(t, err)
		defer socket.Close()
		head := unix.IfAddrmsg{Family: missing, Prefixlen: 128, Index: uint32(link.Index)}
		err = socket.exchange(unix.RTM_DELADDR, 0, bytesOf(&head))
		assert.Is(t, true, isGone(err), "an address of a family that the kernel does not have: %v", err)
	})
}

// TestFloatingIP6 holds addresses of both families, and says why one of them is of no use.
func TestFloatingIP6(t *testing.T) {
	eachMethod(t, func(t *judge.T, method HoldMethod) {
		needTUN(t)
		l := newLAN6(t, 1)
		b := l.boards[0]
		away := netip.MustParsePrefix("fd00:88::100/64") // this board has no address of its own there
		f := openFloating(t, b, FloatingOptions{Method: method, lifetime: 30 * time.Second, Addresses: []netip.Prefix{
			testFloating, netip.PrefixFrom(testVIP6, 128), away,
		}})
		device := f.State().Device
		held := func() []string {
			return []string{b.lease(t, device, testVIP), b.lease(t, device, testVIP6), b.lease(t, device, away.Addr())}
		}
		must(t, f.Acquire())
		want := []string{"10.77.0.100/32 for 30 s", "fd00:77::100/128 for 30 s", "fd00:88::100/128 for 30 s"}
		assert.Equal(t, want, held(), "held")
		assert.Is(t, "", f.State().Problem, "the problem")
		assert.Is(t, 0, b.preferred(t, testVIP6), "for how long it is preferred as a source, in seconds")
		assert.Is(t, true, b.routes6(t, "fd00:88::/64"), "there is a route to its network")
		f.renews(t, false)
		index := b.link(t, device).Index
		must(t, removeAddress(b.handle, index, testVIP6))
		f.renews(t, true)
		assert.Equal(t, want, held(), "put back")

		b.sysctl6(t, "disable_ipv6", "1")
		_, err := f.Renew()
		must(t, err)
		assert.ErrorContains(t, errors.New(f.State().Problem), "nobody reaches [fd00:77::100 fd00:88::100]: IPv6 is switched off on eth0: sysctl", "the problem")
		assert.Is(t, want[0], held()[0], "the address of IPv4 without IPv6")
		b.sysctl6(t, "disable_ipv6", "0")
		_, err = f.Renew()
		must(t, err)
		assert.Is(t, "", f.State().Problem, "the problem afterwards")

		must(t, f.Release())
		assert.Equal(t, []string{"", "", ""}, held(), "after Release")
		assert.Is(t, false, b.routes6(t, "fd00:88::/64"), "the route is left")
	})
}

// TestIPv6OffByDefault: then the kernel takes no address on a device of ours.
func TestIPv6OffByDefault(t *testing.T) {
	needTUN(t)
	b := newLAN6(t, 1).boards[0]
	b.do(t, func() error { return os.WriteFile(filepath.Join(confIPv6, "default", "disable_ipv6"), []byte("1"), 0) })
	f := openFloating(t, b, FloatingOptions{Method: HoldTUN, Addresses: []netip.Prefix{testFloating, netip.PrefixFrom(testVIP6, 128)}})
	must(t, f.Acquire())
	assert.Is(t, true, b.has(t, DefaultDevice, testVIP), "the address of IPv4 is held")
	assert.Is(t, "nobody reaches [fd00:77::100]: IPv6 is switched off on topdog0: sysctl net.ipv6.conf.default.disable_ipv6=0, and restart topdog-holder.service",
		f.State().Problem, "the problem")
}

// TestLifetime6: an address of IPv6 goes as well when nobody renews it.
func TestLifetime6(t *testing.T) {
	needTUN(t)
	b := newLAN6(t, 1).boards[0]
	f := openFloating(t, b, FloatingOptions{Method: HoldTUN, Addresses: []netip.Prefix{testFloating, netip.PrefixFrom(testVIP6, 128)}})
	begun := Now()
	must(t, f.Acquire())
	eventually(t, "it is gone", func() bool { return !b.has(t, "", testVIP6) && !b.has(t, "", testVIP) })
	if took := Now() - begun; took > GoneAfter {
		t.Errorf("gone after %v, want at most %v", took, GoneAfter)
	}
}

func TestRemoveLeftovers6(t *testing.T) {
	b := newLAN6(t, 1).boards[0]
	b.addAddr(t, "eth0", netip.PrefixFrom(testVIP6, 128))
	b.addAddr(t, "eth0", netip.PrefixFrom(otherVIP6, 64)) // a person has given it to the board
	removed, err := b.removeLeftovers(netip.PrefixFrom(testVIP6, 128), netip.PrefixFrom(otherVIP6, 128))
	must(t, err)
	assert.Equal(t, []string{"address fd00:77::100 on eth0"}, removed, "removed")
	assert.Is(t, true, b.has(t, "eth0", otherVIP6), "the other one is still there")
}

// preferred returns for how many seconds the kernel prefers an address as a source; -1 if the board does not have it.
func (b *board) preferred(t testing.TB, addr netip.Addr) int {
	t.Helper()
	addrs, err := listAddrs(b.handle)
	must(t, err)
	for _, a := range addrs {
		if a.IP.Equal(addr.AsSlice()) {
			return a.PreferedLft
		}
	}
	return -1
}

// routes6 reports whether there is a route to a network on eth0.
func (b *board) routes6(t testing.TB, network string) bool {
	t.Helper()
	routes, err := dump(func() ([]netlink.Route, error) { return b.handle.RouteList(nil, netlink.FAMILY_V6) })
	must(t, err)
	return slices.ContainsFunc(routes, func(r netlink.Route) bool {
		return r.Dst != nil && r.Dst.String() == network && r.LinkIndex == b.link(t, "eth0").Index
	})
}
