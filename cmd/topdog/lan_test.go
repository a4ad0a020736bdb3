package main

import (
	"testing"
	"time"

	"topdog/internal/lab/judge"
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
