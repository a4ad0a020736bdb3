package election

import (
	"errors"
	"fmt"
	"time"

	"topdog/election/clock"
	"topdog/election/silence"
	"topdog/wire"
)

// The bounds of a pause.
const (
	MinPause = time.Second
	maxPause = 24 * time.Hour
)

// insistFor is for how long the board on which somebody has begun or ended a pause insists on it. That
// is enough for the answer of a board that knows more.
const insistFor = time.Second

// insistTimes is how often that board insists. If the others were cut off from each other, they may know of
// pauses with several numbers.
const insistTimes = 3

// Pause pauses the group for that long. The error says that the length is out of bounds, or that nobody leads.
func (c *Core) Pause(now Instant, length time.Duration) ([]Effect, error) {
	c.enter(now)
	if err := checkBetween(length, MinPause, maxPause); err != nil {
		return c.effects, fmt.Errorf("the pause %v %w", length, err)
	}
	if c.leader == wire.Nobody || c.role != Leader && c.role != Follower {
		return c.effects, errors.New("nobody leads, so there is no board that the address could stay with: " +
			"wait until topdog status shows a leader")
	}
	c.beginPause(c.pause.number+1, c.leader, length)
	c.insistOnPause()
	return c.effects, nil
}

// Unpause ends the pause. The error says that there is none.
func (c *Core) Unpause(now Instant) ([]Effect, error) {
	c.enter(now)
	if !c.paused() {
		return c.effects, errors.New("the group is not paused")
	}
	c.beginPause(c.pause.number+1, wire.Nobody, 0)
	c.insistOnPause()
	return c.effects, nil
}

// insistOnPause tells everybody of the pause, or its end, that somebody has asked for on this board.
func (c *Core) insistOnPause() {
	c.pause.insists, c.pause.anew = clock.Due(c.now+insistFor), insistTimes
	c.sendPause(wire.Nobody)
}

// Paused returns which board alone may lead, and for how long; ok is false if the group is not paused.
func (c *Core) Paused(now Instant) (leader wire.ID, left time.Duration, ok bool) {
	return c.pause.leader, c.pause.end.At - now, c.pause.end.Set
}

// beginPause makes a pause, or the end of one, the latest that this board knows of.
func (c *Core) beginPause(number uint32, leader wire.ID, left time.Duration) {
	c.pause.number, c.pause.leader, c.pause.end = number, leader, clock.Deadline{}
	if leader != wire.Nobody && left > 0 {
		c.pause.end = clock.Due(c.now + min(left, maxPause))
	}
	c.pauseChanged()
}

// pauseChanged has this board act as it may now.
func (c *Core) pauseChanged() {
	switch c.role {
	case Leader:
		c.considerYield()
	case Candidate:
		if c.pausedOut() {
			c.becomeFollower(c.leader, ReasonPaused)
		}
	case Follower:
		// A board that has just resigned, or leaves it to another one, goes on to wait.
		if waits := c.leader == wire.Nobody && c.following.turn.Set; !waits || c.pausedOut() {
			c.awaitTurn()
			if c.leader == wire.Nobody {
				c.postpone(c.successorFirst()) // the leader may have handed over meanwhile, and name others still
			}
		}
		if c.leader == wire.Nobody && c.lastLeader.predecessor == c.cfg.ID && !c.paused() {
			c.postpone(c.listenWindow()) // others may lead now, and this board has counted on the pause, see LeaseExpired
		}
		c.compareRanks()
	}
}

// receivePause receives what another board knows. The greater number counts. Two people may have given the same
// number to two pauses; then the greater leader's does.
func (c *Core) receivePause(m *wire.Message) {
	p, mine := &m.Pause, &c.pause
	leader := mine.leader
	if !c.paused() {
		leader = wire.Nobody
	}
	switch {
	case p.Number == mine.number && p.Leader == leader:
	case p.Number < mine.number, p.Number == mine.number && p.Leader < leader:
		c.correctPause(m.Sender)
	case mine.insists.Ahead(c.now) && mine.anew > 0:
		// The others know of more pauses than this board did when somebody asked for one here.
		mine.number, mine.anew = p.Number+1, mine.anew-1
		c.sendPause(wire.Nobody)
	default:
		c.beginPause(p.Number, p.Leader, p.Left)
	}
}

// correctPause tells the latest pause to a board that has told of an older one. Where two halves of a group
// meet, all boards of the one hear all of the other at once, so each tells one a millisecond. A board that
// nobody has told is told when it speaks of its pause again, which it does behind every HELLO.
func (c *Core) correctPause(board wire.ID) {
	if c.now-c.pause.correctedAt < silence.RoundTripMin {
		return
	}
	c.pause.correctedAt = c.now
	c.sendPause(board)
}
