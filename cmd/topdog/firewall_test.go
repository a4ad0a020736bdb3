package main

import (
	"testing"
	"time"

	"topdog/internal/console"
	"topdog/internal/lab/judge"
	"topdog/internal/lab/netns"
)

// behindFirewall switches a firewall on on a board, as ufw does, which knows nothing of topdog.
func (b *board) behindFirewall() *netns.Firewall {
	b.c.t.Helper()
	f, err := netns.Within(b.Host, netns.NewFirewall)
	must(b.c.t, err)
	return f
}

// TestFirewall has two of three boards behind firewalls of their own, and cuts the leader off. There are never two holders once frames pass
// again, the firewall is named, and the boards are in as soon as it lets them. The rules are in TestFirewall of internal/daemon.
func TestFirewall(t *testing.T) {
	judge.Run(t, func(t *judge.T) {
		c := newCluster(t, 3, nil)
		one, two, leader := c.board(1), c.board(2), c.board(3)
		c.start(leader)
		c.agree(leader)
		firewalls := []*netns.Firewall{one.behindFirewall(), two.behindFirewall()}
		c.start(one, two)
		for _, b := range []*board{one, two} {
			b.untilProblem("the group's packets arrive on eth0 and do not reach this daemon, so a firewall on this board drops them", "ufw allow 9254/udp")
			b.untilStatusIs("it takes no part", func(s console.Status) bool { return s.Role == console.RoleIsolated })
		}
		must(t, c.LAN.Filter(netns.Cut(leader.Port())...))
		c.watchFor(3 * time.Second)
		must(t, c.LAN.Filter())
		healed := time.Now()
		c.watchFor(2 * time.Second)
		c.twoHoldersAtMost(healed, 0)
		c.answeredBy(leader)
		for _, f := range firewalls {
			must(t, f.Close())
		}
		c.agreeOn(leader, c.boards...)
		for _, b := range []*board{one, two} {
			b.untilNoProblems()
		}
		c.undisturbed(healed, leader)
	})
}
