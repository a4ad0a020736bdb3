package election

import (
	"topdog/election/clock"
	"topdog/wire"
)

// An isolated board has no link. It waits for nothing, so the role has no state.

// becomeIsolated is for a board whose link is gone: it releases the address
// at once, and says nothing since nobody would hear it.
func (c *Core) becomeIsolated(reason Reason) {
	c.become(Isolated, wire.Nobody, reason)
	c.cutOff()
}

// cutOff forgets what this board had begun with the others, and by which ways it heard them.
func (c *Core) cutOff() {
	c.paths.noMulticast = false
	c.hello, c.handover.repeat = clock.Deadline{}, clock.Deadline{}
	c.own = [ownDeadlines]clock.Deadline{}
	if c.hooks.reset != nil {
		c.hooks.reset.Reset()
	}
}
