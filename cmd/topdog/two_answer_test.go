package main

import (
	"net/netip"
	"os"
	"testing"
	"time"

	"github.com/vishvananda/netlink"

	"topdog/internal/lab/judge"
	"topdog/internal/lab/netns"
)

// TestForgottenAddress: somebody has added the floating address on a follower, and forgotten it. The follower says what to type.
func TestForgottenAddress(t *testing.T) {
	judge.Run(t, func(t *judge.T) {
		c := newCluster(t, 2, nil)
		c.start(c.boards...)
		leader := c.agree()
		follower := c.except(leader)[0]
		must(t, follower.AddAddress(vip24))
		follower.untilProblem("10.77.0.100/24 is on eth0, and topdog has not put it there", "ip addr del 10.77.0.100/24 dev eth0")
		must(t, follower.DeleteAddress(vip24))
		follower.untilNoProblems()
	})
}

// TestProxyARP: a router on the LAN answers ARP for the address. The leader asks, and names it, ten seconds after it has taken the
// address.
func TestProxyARP(t *testing.T) {
	judge.Run(t, func(t *judge.T) {
		c := newCluster(t, 2, nil)
		leader, router := c.board(1), c.board(2)
		c.start(leader)
		c.agree(leader)
		must(t, router.Do(func() error {
			for file, value := range map[string]string{"ip_forward": "1", "conf/eth0/proxy_arp": "1", "neigh/eth0/proxy_delay": "0"} {
				if err := os.WriteFile("/proc/sys/net/ipv4/"+file, []byte(value), 0); err != nil {
					return err
				}
			}
			// It answers for what it reaches by another interface.
			lo, err := netlink.LinkByName("lo")
			if err != nil {
				return err
			}
			dst, err := netlink.ParseIPNet(vip32.String())
			if err != nil {
				return err
			}
			return netlink.RouteAdd(&netlink.Route{LinkIndex: lo.Attrs().Index, Dst: dst, Scope: netlink.SCOPE_LINK})
		}))
		leader.untilProblem(router.HardwareAddr.String(), "answers for 10.77.0.100 as well, which this board holds", "switch its proxy ARP off")
		c.answeredBy(leader)
	})
}

// TestCopiedCard: two boards have one own address. Both say so, with the other's Ethernet address, while a third one leads; and when that is
// cut off, one of the two takes over.
func TestCopiedCard(t *testing.T) {
	judge.Run(t, func(t *judge.T) {
		c := newCluster(t, 3, nil)
		one, two, leader := c.board(1), c.board(2), c.board(3)
		must(t, two.SetAddress(netip.PrefixFrom(one.Addr.Addr(), 24)))
		c.start(leader)
		c.agree(leader)
		c.start(one, two)
		one.untilProblem(two.HardwareAddr.String()+" has this board's own address 10.77.0.1 as well", "Until then this board takes no part")
		two.untilProblem(one.HardwareAddr.String() + " has this board's own address 10.77.0.1 as well")
		must(t, c.LAN.Filter(netns.Cut(leader.Port())...))
		c.untilHolders("one of the two takes over", func(h []int) bool { return len(h) > 0 && h[0] == two.Number })
		c.watchFor(3 * time.Second)
		must(t, c.LAN.Filter())
		healed := time.Now()
		c.watchFor(2 * time.Second)
		// What is said to the one alone may reach the other, so each may be heard late: 0.3 s have been seen.
		c.twoHoldersAtMost(healed, time.Second)
	})
}
