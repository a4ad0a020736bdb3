package main

import (
	"fmt"
	"net"
	"net/netip"
	"testing"

	"topdog/internal/console"
	"topdog/internal/lab/judge"
	"topdog/netio"
)

// TestForgedARP: somebody on the LAN claims the address by gratuitous ARP. The leader answers, so that the client finds it
// again, and names the machine. How often it answers is TestDefendsTheAddress of internal/daemon; for how long a client is
// led astray is measured by scripts/attack.
func TestForgedARP(t *testing.T) {
	judge.Run(t, func(t *judge.T) {
		c := newCluster(t, 2, nil)
		leader, forger := c.board(1), c.board(2)
		c.start(leader)
		c.agree(leader)
		var forged *netio.Announcer
		must(t, forger.Do(func() error {
			device, err := net.InterfaceByName(forger.Interface)
			if err != nil {
				return err
			}
			forged, err = netio.OpenAnnouncer(device.Index, netip.Addr{})
			return err
		}))
		t.Cleanup(func() { forged.Close() })

		for range 3 {
			must(t, forged.Announce(vip))
			c.answeredBy(leader)
		}
		leader.untilStatus("it names the forger", func(s console.Status) string {
			must(t, forged.Announce(vip)) // soon after a change of leader, claims are taken for those of the former one
			if len(s.Problems) > 0 && containsAll(s.Problems[0].Text, []string{forger.HardwareAddr.String(), "answers for " + vip.String()}) {
				return ""
			}
			return fmt.Sprintf("%q", s.Problems)
		})
	})
}
