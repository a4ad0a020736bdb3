package election

import (
	"fmt"
	"time"

	"topdog/election/clock"
	"topdog/election/roster"
	"topdog/election/silence"
	"topdog/wire"
)

// edges lists the changes of role that make sense. Any other one is a mistake in
// this package, and stops the program where it was made instead of letting two
// boards hold one address.
var edges = [roleCount][roleCount]bool{
	Isolated:  {Listener: true},
	Listener:  {Follower: true, Candidate: true, Isolated: true, Barred: true},
	Follower:  {Follower: true, Candidate: true, Leader: true, Isolated: true, Barred: true},
	Candidate: {Follower: true, Leader: true, Listener: true, Isolated: true, Barred: true},
	Leader:    {Follower: true, Isolated: true, Barred: true},
	Barred:    {Listener: true, Isolated: true},
}

// CanBecome reports whether a board of this role may change to another one.
func (r Role) CanBecome(to Role) bool { return edges[r][to] }

// become is the one place where a role or a leader changes. Only the doors call it:
// becomeIsolated, becomeListener, becomeFollower, becomeCandidate, becomeLeader and
// becomeBarred, each in the file of its role. They say what else belongs to the change.
func (c *Core) become(role Role, leader wire.ID, reason Reason) {
	if !c.role.CanBecome(role) {
		panic(fmt.Sprintf("election: impossible change of role %v -> %v (%v)", c.role, role, reason))
	}
	if c.role == Leader && role != Leader {
		c.emit(EffectRelease)
	}
	change := Change{
		From: c.role, To: role,
		OldLeader: c.leader, NewLeader: leader,
		Term: c.term, Reason: reason,
	}
	asked := c.candidacy.request.open
	c.role, c.leader, c.roleState = role, leader, roleState{} // the door fills in the state of the new role
	if role != Candidate && c.fitness.told != c.fitness.set {
		c.tellGrade() // the grade that the owner has set while this board was a candidate
		c.hello = clock.Due(c.now)
	}
	switch {
	case leader == change.OldLeader:
	case role == Leader:
		c.grace.Lead(c.now)
	default:
		c.grace.Follow(leader != wire.Nobody)
	}
	if c.cfg.Several && change.From == Leader {
		c.hello = c.hello.Before(c.now + c.helloInterval())
	}
	c.counts[reason]++
	c.effects = append(c.effects, Effect{Kind: EffectChange, Change: change})
	if c.votes.needed() {
		c.endVotes(change.From, asked)
	}
}

// tellGrade has messages tell the grade from now on. When a board that passes fails again, it hands over at
// once, without a pause for the handovers that nobody took long ago.
func (c *Core) tellGrade() {
	c.fitness.told = c.fitness.set
	if c.fitness.told == wire.GradePassing {
		c.fitness.vain = 0
	}
}

// An isolated board has no link. It waits for nothing, so the role has no state.

// becomeIsolated is for a board whose link is gone: it releases the address
// at once, and says nothing since nobody would hear it. By a second path it says that it is there.
func (c *Core) becomeIsolated(reason Reason) {
	c.become(Isolated, wire.Nobody, reason)
	c.cutOff()
	if c.cfg.SecondPath {
		c.hello = clock.Due(c.now + SecondPathEvery)
	}
}

// cutOff forgets what this board had begun with the others, and by which ways it heard them.
func (c *Core) cutOff() {
	c.paths.noMulticast = false
	c.hello, c.handover.repeat = clock.Deadline{}, clock.Deadline{}
	c.own, c.votes.promiseEnds = [ownDeadlines]clock.Deadline{}, clock.Deadline{}
	c.happens(EventCutOff)
}

// barredFor is how long a conflict must be unheard of to be over. HELLOs of a
// small group come every second.
const barredFor = roster.HelloLosses * roster.HelloFloor

// becomeBarred is for a board that must stay out. It is silent: whatever it said would be taken
// for a message of the board that it is in conflict with.
func (c *Core) becomeBarred(reason Reason) {
	c.become(Barred, wire.Nobody, reason)
	c.cutOff()
	c.barred.end = clock.Due(c.now + barredFor)
}

// listenHalves is how many half intervals a board listens before it speaks.
// Every half interval it asks who leads, so even at 40 % loss it misses a
// living leader less than once in a thousand times.
const listenHalves = 5

// listenWindow is how long a board hears before it speaks: for so long that a
// leader which died just before is missed, and the election of its successor is
// over. heir misses it within an interval and asks for a few milliseconds.
func (c *Core) listenWindow() time.Duration {
	window := listenHalves * c.cfg.Interval / 2
	if c.detectorKind() == silence.DetectorAsk {
		return window
	}
	return max(window, c.suspectAfter()+c.algorithm.ElectionDuration()+c.cfg.Interval/2)
}

// detectorKind is the failure detector of this board.
func (c *Core) detectorKind() silence.DetectorKind { return c.cfg.Detector.Or(c.definition.Detector) }

// suspectAfter is for how long a leader must be silent to be suspected.
func (c *Core) suspectAfter() time.Duration { return c.cfg.Interval + c.detector.Quality().Margin }

// becomeListener is for a board that must hear before it speaks: it has just
// started, its link has just come up, or a conflict has just ended.
func (c *Core) becomeListener(reason Reason, window time.Duration) {
	c.become(Listener, wire.Nobody, reason)
	c.coldStart.pending = true
	c.asking.forget()
	c.listening = listenerState{end: clock.Due(c.now + window), query: clock.Due(c.now)}
	c.happens(EventListen)
	c.hello = clock.Due(c.now)
}

// keepListening makes a listener listen for so long at least.
func (c *Core) keepListening(d time.Duration) {
	c.listening.end = c.listening.end.After(c.now + d)
}
