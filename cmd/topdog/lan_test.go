package main

import (
	"testing"
	"time"

	"topdog/internal/lab/judge"
	"topdog/internal/lab/netns"
	"topdog/internal/lab/netns/loss"
)

// A switch that starts anew keeps the carriers and forwards nothing. Nobody claims until it
// forwards again, and then all agree.
func TestSwitchForwardsNothing(t *testing.T) {
	judge.Run(t, func(t *judge.T) {
		c := newCluster(t, 3, nil)
		c.start(c.boards...)
		c.agree()

		began := time.Now()
		must(t, c.LAN.Halt())
		c.watchFor(3 * time.Second)
		c.twoHoldersAtMost(began, 0)
		must(t, c.LAN.Resume())
		c.answeredBy(c.agree())
		c.twoHoldersAtMost(began, 0)
	})
}

// Multicast dies while all is well: nothing moves, and people are told. multicast.scene has
// more of it in virtual time.
func TestNoMulticast(t *testing.T) {
	judge.Run(t, func(t *judge.T) {
		c := newCluster(t, 3, nil)
		drop, err := loss.NewDropper(c.LAN.Client())
		must(t, err)
		t.Cleanup(func() { must(t, drop.Close()) })
		var hosts []*netns.Host
		for _, b := range c.boards {
			hosts = append(hosts, b.Host)
		}
		c.start(c.boards...)
		leader := c.agree()
		began := time.Now()
		must(t, drop.Drop(loss.MulticastToHost, hosts...))
		c.except(leader)[0].untilProblem("gets no multicast")
		c.watchFor(20 * heartbeat)
		c.undisturbed(began, leader)
		c.twoHoldersAtMost(began, 0)
	})
}
