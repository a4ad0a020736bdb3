package netio

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/vishvananda/netlink"

	"topdog/internal/lab/assert"
	"topdog/internal/lab/judge"
)

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
