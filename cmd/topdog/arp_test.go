package main

import (
	"net"
	"net/netip"
	"testing"
	"time"

	"topdog/election"
	"topdog/internal/console"
	"topdog/internal/lab/judge"
	"topdog/netio"
)

// TestForgedARP: somebody on the LAN claims the address by gratuitous ARP once a second. The leader
// answers each claim at once, so a client is led astray for no longer than that takes.
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
	})
}

// TestTakesAnAddressInUse: another machine has the address at a cold start. A board waits, and says so. With
// take_in_use it leads after ten seconds.
func TestTakesAnAddressInUse(t *testing.T) {
	judge.Run(t, func(t *judge.T) {
		c := newCluster(t, 3, nil)
		owner, waits, takes := c.board(1), c.board(2), c.board(3)
		must(t, owner.AddAddress(netip.PrefixFrom(vip, owner.Addr.Bits())))
		takes.set(settings{"take_in_use": "true"})
		began := time.Now()
		c.start(waits, takes)
		waits.untilProblem(owner.HardwareAddr.String(), "already has the address", "no board takes it until that machine is silent")
		takes.untilProblem(owner.HardwareAddr.String(), "already has the address", "a board takes it when that has lasted for 10s")
		takes.untilLogged("this board takes it all the same")
		t.Logf("it was taken after %v", time.Since(began).Round(time.Millisecond))
		takes.untilStatus("it leads", func(s console.Status) string {
			if s.Role != console.RoleLeader || !s.Holding {
				return "it is a " + s.Role
			}
			return ""
		})
		if took := time.Since(began); took < election.TakeInUseAfter {
			t.Errorf("it was taken after %v, want %v at least", took, election.TakeInUseAfter)
		}
	})
}
