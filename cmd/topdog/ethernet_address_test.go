package main

import (
	"net"
	"net/netip"
	"slices"
	"sync"
	"testing"
	"time"

	"topdog/internal/console"
	"topdog/internal/lab/judge"
	"topdog/netio"
)

// TestEthernetAddressChanges gives the leader's interface, and then the heir's, another Ethernet address, as a bond that
// fails over does. The client is answered again at once, and nobody says any more that a board is where it was.
// By how much "at once" is, scripts/bench measures.
func TestEthernetAddressChanges(t *testing.T) {
	judge.Run(t, func(t *judge.T) {
		c := newCluster(t, 3, nil)
		claims := c.listenForClaims()
		c.start(c.boards...)
		leader := c.agree()
		heir := c.named(leader.untilStatusIs("it has an heir", func(s console.Status) bool { return s.HeirName != "" }).HeirName)

		began := time.Now()
		var stale []net.HardwareAddr
		for _, b := range []*board{leader, heir} {
			stale = append(stale, b.HardwareAddr)
			changed := time.Now()
			must(t, b.SetHardwareAddr(net.HardwareAddr{2, 0, 0, 0, 0x99, byte(b.Number)}))
			claims.untilMade(t, c, b.Addr.Addr(), b.HardwareAddr, changed)
			c.answeredBy(leader)
		}
		claims.untilMade(t, c, vip, leader.HardwareAddr, time.Now()) // the next time that it is announced
		claims.noneFrom(t, stale, began)
		c.undisturbed(began, leader)

		must(t, leader.Pull())
		c.untilHolders("the heir takes over", func(h []int) bool { return slices.Equal(h, []int{heir.Number}) })
		c.answeredBy(heir)
		claims.untilMade(t, c, vip, heir.HardwareAddr, began)
	})
}

// claims are the packets of ARP that a client has heard and that speak as the floating address or as a board.
type claims struct {
	mu    sync.Mutex
	heard []claim
}

type claim struct {
	addr netip.Addr
	mac  string
	at   time.Time
}

func (c *testCluster) listenForClaims() *claims {
	c.t.Helper()
	var heard claims
	must(c.t, c.LAN.Client().Do(func() error {
		device, err := net.InterfaceByName(c.LAN.Client().Interface)
		if err != nil {
			return err
		}
		listener, err := netio.OpenAnnouncer(device.Index, netip.Addr{})
		if err != nil {
			return err
		}
		c.t.Cleanup(func() { listener.Close() })
		addrs := []netip.Addr{vip}
		for _, b := range c.boards {
			addrs = append(addrs, b.Addr.Addr())
		}
		listener.Rivals(addrs, func(addr netip.Addr, mac net.HardwareAddr) {
			heard.mu.Lock()
			defer heard.mu.Unlock()
			heard.heard = append(heard.heard, claim{addr, mac.String(), time.Now()})
		})
		return nil
	}))
	return &heard
}

// since returns what was heard since a moment.
func (c *claims) since(begin time.Time) []claim {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(c.heard), func(h claim) bool { return h.at.Before(begin) })
}

// untilMade waits until somebody says, after a moment, that an address is at this Ethernet address.
func (c *claims) untilMade(t testing.TB, cluster *testCluster, addr netip.Addr, mac net.HardwareAddr, after time.Time) {
	t.Helper()
	cluster.untilTrue(addr.String()+" is said to be at "+mac.String(), func() bool {
		return slices.ContainsFunc(c.since(after), func(h claim) bool { return h.addr == addr && h.mac == mac.String() })
	})
}

// noneFrom checks that after a moment nobody speaks with an Ethernet address that its board had given up before, the
// first of them then.
func (c *claims) noneFrom(t testing.TB, stale []net.HardwareAddr, began time.Time) {
	t.Helper()
	fresh := map[netip.Addr]bool{}
	for _, h := range c.since(began) {
		isStale := slices.ContainsFunc(stale, func(mac net.HardwareAddr) bool { return h.mac == mac.String() })
		if fresh[h.addr] && isStale {
			t.Errorf("%s was said to be at %s, which its board has no more", h.addr, h.mac)
		}
		fresh[h.addr] = fresh[h.addr] || !isStale
	}
}
