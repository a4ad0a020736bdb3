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

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"topdog/internal/lab/assert"
	"topdog/internal/lab/judge"
)

func (b *board) removeLeftovers(addresses ...netip.Prefix) ([]string, error) {
	return on(b, func() ([]string, error) { return RemoveLeftovers(addresses) })
}

func TestRemoveLeftovers(t *testing.T) {
	needTUN(t)
	b := newLAN(t, 1).boards[0]
	makePersistentTUN(t, b, DefaultDevice)
	vip := netip.PrefixFrom(testVIP, 32)
	b.addAddr(t, DefaultDevice, vip)
	b.addAddr(t, "eth0", vip)
	b.addAddr(t, "eth0", netip.MustParsePrefix("10.77.0.101/32")) // somebody else's
	b.addAddr(t, "eth0", netip.MustParsePrefix("10.77.0.102/24")) // ours by name, but a person's by its length

	addresses := []netip.Prefix{testFloating, netip.MustParsePrefix("10.77.0.102/24")}
	removed, err := b.removeLeftovers(addresses...)
	must(t, err)
	slices.Sort(removed)
	want := []string{"address 10.77.0.100 on eth0", "address 10.77.0.100 on topdog0"}
	assert.Equal(t, want, removed, "removed")
	for addr, want := range map[string]bool{"10.77.0.1": true, "10.77.0.100": false, "10.77.0.101": true, "10.77.0.102": true} {
		assert.Is(t, want, b.has(t, "", netip.MustParseAddr(addr)), "the board has %s", addr)
	}
	removed, err = b.removeLeftovers(addresses...)
	if len(removed) > 0 || err != nil {
		t.Errorf("a second time: removed %q, error %v", removed, err)
	}
}

// What another daemon on this board has stays, whether it leads or not.
func TestRemoveLeftoversSparesOthers(t *testing.T) {
	needTUN(t)
	b := newLAN(t, 1).boards[0]
	other := netip.MustParsePrefix("10.77.0.201/24")
	leads := openFloating(t, b, FloatingOptions{Method: HoldTUN, Addresses: []netip.Prefix{other}, lifetime: 30 * time.Second})
	must(t, leads.Acquire())
	follows := openFloating(t, b, FloatingOptions{Method: HoldTUN})
	removed, err := b.removeLeftovers(testFloating)
	must(t, err)
	assert.Equal(t, []string(nil), removed, "removed")
	for _, name := range []string{leads.State().Device, follows.State().Device} {
		b.link(t, name) // still there
	}
	assert.Is(t, "10.77.0.201/32 for 30 s", b.lease(t, leads.State().Device, other.Addr()), "the other daemon's address on %s", leads.State().Device)
	if leads.State().Device == follows.State().Device {
		t.Errorf("both daemons use %s", leads.State().Device)
	}
}

// needTUN skips where there is no TUN device to be had.
func needTUN(t testing.TB) {
	t.Helper()
	if _, err := os.Stat("/dev/net/tun"); err != nil {
		t.Skipf("needs a TUN device: %v", err)
	}
}

// A persistent device of our name would outlive us, so taking it over makes it mortal.
func TestFloatingIPPersistentDevice(t *testing.T) {
	needTUN(t)
	b := newLAN(t, 1).boards[0]
	makePersistentTUN(t, b, DefaultDevice)
	f := openFloating(t, b, FloatingOptions{Method: HoldTUN, device: DefaultDevice})
	// Nobody else gets it meanwhile.
	_, err := b.newFloatingIP(FloatingOptions{Interface: "eth0", Addresses: []netip.Prefix{testFloating}, Method: HoldTUN, device: DefaultDevice})
	assert.ErrorIs(t, err, unix.EBUSY, "a second one with the same device")
	assert.ErrorContains(t, err, "the TUN device topdog0 belongs to another process", "a second one with the same device")
	must(t, f.Close())
	assert.Is(t, false, b.hasLink(t, DefaultDevice), "the device is there after Close")
}

// The device is switched on, as people expect of one with addresses, and does
// not speak IPv6: its router solicitations would pile up unread.
func TestTUNDevice(t *testing.T) {
	needTUN(t)
	l := newLAN(t, 1)
	b := l.boards[0]
	openFloating(t, b, FloatingOptions{Method: HoldTUN})
	addrs, err := dump(func() ([]netlink.Addr, error) {
		return b.handle.AddrList(l.link(b.handle, DefaultDevice), netlink.FAMILY_V6)
	})
	must(t, err)
	assert.Is(t, 0, len(addrs), "addresses of the device")
	assert.Is(t, net.FlagUp, b.link(t, DefaultDevice).Flags&net.FlagUp, "the device is switched on")
}

func makePersistentTUN(t testing.TB, b *board, name string) {
	t.Helper()
	b.do(t, func() error {
		file, _, err := openTUN(name)
		if err != nil {
			return err
		}
		defer file.Close()
		return unix.IoctlSetInt(int(file.Fd()), unix.TUNSETPERSIST, 1)
	})
}

func TestMissingSubnets(t *testing.T) {
	parse := func(s string) (all []netip.Prefix) {
		for _, f := range strings.Fields(s) {
			all = append(all, netip.MustParsePrefix(f))
		}
		return all
	}
	tests := []struct{ name, floating, own, want string }{
		{"the usual", "10.77.0.100/24", "10.77.0.1/24", ""},
		{"a wider one covers it", "10.77.0.100/24", "10.77.0.1/16", ""},
		{"a narrower one does not", "10.77.0.100/24", "10.77.0.99/30", "10.77.0.100/24"},
		{"/32 needs none", "10.1.0.100/32", "10.77.0.1/24", ""},
		{"elsewhere, two in one subnet", "10.1.0.100/24 10.1.0.101/24 10.2.0.1/24", "10.77.0.1/24", "10.1.0.100/24 10.2.0.1/24"},
		{"its own /32 covers nothing", "10.1.0.100/24", "10.1.0.100/32", "10.1.0.100/24"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got := missingSubnets(parse(test.floating), parse(test.own))
			if diff := cmp.Diff(parse(test.want), got, cmpopts.EquateComparable(netip.Prefix{}), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("missing (-want +got):\n%s", diff)
			}
		})
	}
}

// The weak host model: an address on the TUN device is as good as one on the interface. Neighbours get answers to their ARP, reach
// a service on it, and are answered from it. An address in a subnet of its own needs a route there, which must come and go with it.
func TestFloatingIPIsReachable(t *testing.T) {
	needTUN(t)
	eachMethod(t, func(t *judge.T, method HoldMethod) {
		l := newLAN(t, 2)
		b, client := l.boards[0], l.boards[1]
		elsewhere := netip.MustParsePrefix("172.30.5.100/24")
		client.addAddr(t, "eth0", netip.MustParsePrefix("172.30.5.7/24"))
		f := openFloating(t, b, FloatingOptions{Method: method, lifetime: 30 * time.Second, Addresses: []netip.Prefix{testFloating, elsewhere}})
		wantRoutes := func(when string, want ...string) {
			t.Helper()
			list, err := dump(func() ([]netlink.Route, error) {
				return b.handle.RouteList(l.link(b.handle, "eth0"), netlink.FAMILY_V4)
			})
			must(t, err)
			var routes []string
			for _, r := range list {
				routes = append(routes, fmt.Sprintf("%s from %s", r.Dst, r.Src))
			}
			slices.Sort(routes)
			assert.Equal(t, want, routes, "%s, routes on eth0", when)
		}
		const own, there = "10.77.0.0/24 from 10.77.0.1", "172.30.5.0/24 from 172.30.5.100"
		must(t, f.Acquire())
		wantRoutes("after Acquire", own, there)
		talk(t, b, client, testVIP, client.addr)
		assert.Is(t, b.mac(t), neighbour(t, client, testVIP), "what the client believes")
		talk(t, b, client, elsewhere.Addr(), netip.MustParseAddr("172.30.5.7"))

		eth0 := l.link(b.handle, "eth0")
		must(t, b.handle.LinkSetDown(eth0))
		_, err := f.Renew()
		assert.ErrorIs(t, err, ErrLinkDown, "Renew while the interface is switched off")
		must(t, b.handle.LinkSetUp(eth0))
		f.renews(t, true)
		wantRoutes("after the interface went down and up", own, there)
		must(t, f.Release())
		wantRoutes("after Release", own)
		assert.Is(t, false, openTestAnnouncer(t, client).hasOwner(t, testVIP, 1, 50*time.Millisecond), "the address has an owner after Release")
	})
}
