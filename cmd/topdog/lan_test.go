package main

import (
	"testing"
	"time"

	"topdog/internal/lab/judge"
	"topdog/internal/lab/netns"
)

// A switch that starts anew keeps the carriers and forwards nothing. Nobody claims until it
// forwards again, and then all agree.
func TestSwitchForwardsNothing(t *testing.T) {
	judge.Run(t, func(t *judge.T) {
		c := newCluster(t, 3, nil)
		c.start(c.boards...)
		c.agree()

		began := time.Now()
		must(t, c.LAN.Filter(netns.Filter{}))
		c.watchFor(3 * time.Second)
		c.twoHoldersAtMost(began, 0)
		must(t, c.LAN.Filter())
		c.answeredBy(c.agree())
		c.twoHoldersAtMost(began, 0)
	})
}

// Multicast dies while all is well: nothing moves, and people are told. multicast.scene has
// more of it in virtual time.
func TestNoMulticast(t *testing.T) {
	judge.Run(t, func(t *judge.T) {
		c := newCluster(t, 3, nil)
		c.start(c.boards...)
		leader := c.agree()
		began := time.Now()
		must(t, c.LAN.Filter(netns.Filter{Multicast: true}))
		c.except(leader)[0].untilProblem("gets no multicast")
		c.watchFor(20 * heartbeat)
		c.undisturbed(began, leader)
		c.twoHoldersAtMost(began, 0)
	})
}
