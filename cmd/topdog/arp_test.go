package main

import (
	"net"
	"testing"
	"time"

	"topdog/netio"
)

// TestForgedARP: somebody on the LAN claims the address by gratuitous ARP once a second. The leader
// answers each claim at once, so a client is led astray for no longer than that takes.
func TestForgedARP(t *testing.T) {
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
		forged, err = netio.OpenAnnouncer(device.Index, device.HardwareAddr)
		return err
	}))
	t.Cleanup(func() { forged.Close() })

	const claims = 20
	_, before := c.asker.Gaps(0)
	began := time.Now()
	for range claims {
		must(t, forged.Announce(vip))
		c.watchFor(time.Second)
	}
	lasted := time.Since(began)
	gaps, _ := c.asker.Gaps(before)
	var dark, longest time.Duration
	for _, g := range gaps {
		unanswered := g.Duration() - g.Paused // while the client did not ask, it was not led astray
		dark, longest = dark+unanswered, max(longest, unanswered)
	}
	t.Logf("in %v the client was without an answer for %v, %v at once at most", lasted.Round(time.Millisecond), dark.Round(time.Millisecond), longest.Round(time.Microsecond))
	if dark > lasted/100 {
		t.Errorf("the client was without an answer for %.1f %% of the time, want 1 %% at most", 100*dark.Seconds()/lasted.Seconds())
	}
	leader.untilProblem(forger.HardwareAddr.String(), "claims", vip.String())
}
