package election

import "topdog/wire"

// KeyDropped tells that this board does not accept a key any more. Somebody else may have that key, and one packet with a
// high sequence number in the name of a board makes everything late that the board itself says. So the sequence
// numbers that came with the key are forgotten. Those that came with the other key stay, because the network still delivers
// late what a board has said with that one.
//
// The promise of a voter (promise.go) keeps its sequence number. It may rest on a heartbeat that came with the key, and its
// end must not move back: without the number, a RESIGN that the leader sent before that heartbeat would release the promise
// when it comes late, while the leader counts on it. A number that is too high does no such harm. It only keeps
// the leader's own RESIGN from releasing the promise, so that this voter is free an interval and a grace after the last
// heartbeat. With its promise to another board it has another number.
func (c *Core) KeyDropped(now Instant, key wire.Fingerprint) []Effect {
	c.enter(now)
	c.roster.ForgetKey(key.Mark())
	var newest wire.Sequence
	if p := c.roster.Peer(c.lastLeader.id); p != nil && p.Incarnation == c.lastLeader.incarnation {
		newest = p.Newest()
	}
	// This is only compared with what others have heard. One heartbeat corrects what is too low.
	c.lastLeader.lastHeard = min(c.lastLeader.lastHeard, newest)
	return c.effects
}
