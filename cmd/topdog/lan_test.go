package main

import (
	"testing"
	"time"

	"topdog/internal/console"
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

// The heir is deaf, and goes on asking. It claims nothing. When the leader dies, the third board
// waits for it once, and takes over.
func TestDeafHeir(t *testing.T) {
	judge.Run(t, func(t *judge.T) {
		c := newCluster(t, 3, nil)
		drop := newDropper(c)
		c.start(c.boards...)
		leader := c.agree()
		var heir *board
		leader.untilStatus("there is an heir", func(s console.Status) string {
			if heir = c.named(s.HeirName); heir == nil {
				return "none"
			}
			return ""
		})

		began := time.Now()
		must(t, drop.Drop(loss.ToHost, heir.Host))
		c.watchFor(20 * heartbeat)
		c.undisturbed(began, leader)
		c.twoHoldersAtMost(began, 0)
		must(t, leader.Pull())
		third := c.except(leader, heir)[0]
		c.untilTakenFrom(leader)
		c.answeredBy(third)
		c.twoHoldersAtMost(began, 0)
		must(t, drop.Pass(loss.ToHost, heir.Host))
		c.agreeOn(third, third, heir)
	})
}

// Two boards on a switch with a client take over from each other, time and again: whom one has
// heard once it asks in the next doubt.
func TestTwoBoards(t *testing.T) {
	judge.Run(t, func(t *judge.T) {
		c := newCluster(t, 2, nil)
		c.start(c.boards...)
		for range 4 {
			old := c.agree()
			pulled := time.Now()
			must(t, old.Pull())
			c.untilTakenFrom(old)
			c.answeredBy(c.except(old)[0])
			must(t, old.Plug())
			c.agreeOn(c.except(old)[0], c.boards...)
			c.twoHoldersAtMost(pulled, 0)
		}
	})
}

// newDropper returns what drops frames at the cluster's switch.
func newDropper(c *testCluster) *loss.Dropper {
	c.t.Helper()
	d, err := loss.NewDropper(c.LAN.Client())
	must(c.t, err)
	c.t.Cleanup(func() { must(c.t, d.Close()) })
	return d
}

// Multicast dies while all is well: nothing moves, and people are told. It is dead as well when
// the boards start: one leads.
func TestNoMulticast(t *testing.T) {
	for name, before := range map[string]bool{"before the start": true, "after the start": false} {
		t.Run(name, judge.Of(func(t *judge.T) {
			c := newCluster(t, 3, nil)
			drop := newDropper(c)
			var hosts []*netns.Host
			for _, b := range c.boards {
				hosts = append(hosts, b.Host)
			}
			if before {
				must(t, drop.Drop(loss.MulticastToHost, hosts...))
			}
			c.start(c.boards...)
			leader := c.agree()
			began := time.Now()
			if !before {
				must(t, drop.Drop(loss.MulticastToHost, hosts...))
			}
			c.except(leader)[0].untilProblem("gets no multicast")
			c.watchFor(20 * heartbeat)
			c.undisturbed(began, leader)
			c.twoHoldersAtMost(began, 0)
		}))
	}
}

// A leader whose port receives nothing is heard by all. It hands over, once.
func TestDeafLeader(t *testing.T) {
	judge.Run(t, func(t *judge.T) {
		c := newCluster(t, 3, nil)
		drop := newDropper(c)
		c.start(c.boards...)
		leader := c.agree()
		began := time.Now()
		must(t, drop.Drop(loss.ToHost, leader.Host))
		c.untilTakenFrom(leader)
		next := c.agree(c.except(leader)...)
		c.twoHoldersAtMost(began, 0)
		healed := time.Now()
		must(t, drop.Pass(loss.ToHost, leader.Host))
		c.agree()
		c.undisturbed(healed, next)
		c.twoHoldersAtMost(began, 0)
	})
}
