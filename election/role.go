package election

import (
	"fmt"
	"time"

	"topdog/wire"
)

// Role is what a board is at the moment.
type Role uint8

// The roles. Package documentation says what they mean.
const (
	Isolated Role = iota
	Listener
	Follower
	Candidate
	Leader
	Barred
	roleCount
)

var roleNames = [roleCount]string{
	Isolated: "isolated", Listener: "listener", Follower: "follower",
	Candidate: "candidate", Leader: "leader", Barred: "barred",
}

func (r Role) String() string {
	if r < roleCount {
		return roleNames[r]
	}
	return fmt.Sprintf("role %d", uint8(r))
}

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

// become is the one place where a role or a leader changes. The doors below say
// what else belongs to each change.
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
	c.role, c.leader = role, leader
	c.alarms.clear(alarmHeartbeat, alarmListen, alarmQuery, alarmTurn, alarmAsk, alarmVerdict, alarmSound, alarmPreempt, alarmBarred)
	c.counts[reason]++
	c.effects = append(c.effects, Effect{Kind: EffectChange, Change: change})
}

// becomeIsolated is for a board whose link is gone: it lets go of the address
// at once, and says nothing since nobody would hear it.
func (c *Core) becomeIsolated(reason Reason) {
	c.become(Isolated, wire.Nobody, reason)
	c.alarms.clear(alarmHello, alarmResign)
	c.leave()
}

// leave forgets what this board had begun with the others.
func (c *Core) leave() {
	c.alarms.clearOwn()
	if c.hooks.reset != nil {
		c.hooks.reset.Reset()
	}
}

// becomeListener is for a board that must hear before it speaks: it has just
// started, its link has just come up, or a conflict has just ended.
func (c *Core) becomeListener(reason Reason, window time.Duration) {
	c.become(Listener, wire.Nobody, reason)
	c.cold = true
	c.asked = 0
	c.alarms[alarmListen] = c.now + window
	_, after := c.inquiry()
	c.alarms[alarmQuery] = c.now + after
	c.alarms[alarmHello] = c.now
}

// becomeFollower is for a board that has found its leader, or awaits the one that
// was announced (leader is then wire.Nobody).
func (c *Core) becomeFollower(leader wire.ID, reason Reason) {
	old := c.leader
	if p := c.roster.Peer(old); old != leader && leader != wire.Nobody && p != nil {
		p.Gone = true // replaced without having resigned, so it was silent; or it soon speaks again
	}
	c.become(Follower, leader, reason)
	c.asked = 0
	if leader == wire.Nobody {
		c.absent = old
		c.awaitTurn()
		return
	}
	c.cold, c.retry = false, 0
	c.absent = wire.Nobody
	c.alarms.clear(alarmResign)
	if c.stopping {
		c.emit(EffectFinished)
	}
	// A leader that was dead for long may have had to make room in the roster.
	p := c.roster.Peer(leader)
	if p != nil && (leader != old || p.Incarnation != c.leaderIncarnation) {
		c.leaderIncarnation, c.lastHeard = p.Incarnation, 0
		c.detector.Follow(c.now, c.cfg.Interval)
		c.soundings = 0
	}
	c.alarms[alarmSound] = c.now + c.soundingPause()
	c.planPreemption()
	c.awaitTurn()
}

// becomeCandidate is for a board whose turn it is to act: it asks for the leader
// or holds an election, as its algorithm has it.
func (c *Core) becomeCandidate(reason Reason) {
	c.become(Candidate, c.leader, reason)
	c.cause = reason
	c.round, c.asked, c.begs = 0, 0, 0
	c.probe = probeNone
}

// becomeLeader takes the address and proclaims it, in this order: a message
// that overtakes the address would send clients to a board that refuses them.
func (c *Core) becomeLeader(reason Reason) {
	c.term = nextTerm(c.term)
	if p := c.roster.Peer(c.leader); p != nil && reason != ReasonHandover {
		p.Gone = true // it was asked often enough
	}
	c.become(Leader, c.cfg.ID, reason)
	c.alarms.clear(alarmResign)
	c.cold = false
	c.absent = wire.Nobody
	c.doubtUntil = 0
	c.emit(EffectAcquire)
	if reason == ReasonElected {
		c.sendHeartbeat(false) // the board that held the election has sent the COORDINATOR
		return
	}
	c.proclaim()
}

// becomeBarred is for a board that must stay out. It is silent, since anything
// that it said would be taken for a word of the board that it is in conflict with.
func (c *Core) becomeBarred(reason Reason) {
	c.become(Barred, wire.Nobody, reason)
	c.alarms.clear(alarmHello, alarmResign)
	c.leave()
	c.alarms[alarmBarred] = c.now + barredFor
}

// nextTerm stops at the largest term instead of wrapping: between equal terms the
// rank decides, so nothing is lost, while a wrapped term would undo every claim.
func nextTerm(t wire.Term) wire.Term {
	if t == ^wire.Term(0) {
		return t
	}
	return t + 1
}
