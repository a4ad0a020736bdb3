package election

import (
	"fmt"
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
	another := leader != c.leader
	c.role, c.leader = role, leader
	c.resetRoles()
	if role != Candidate {
		c.endCandidacy()
	}
	if another {
		c.allowAnother()
	}
	c.counts[reason]++
	c.effects = append(c.effects, Effect{Kind: EffectChange, Change: change})
	if c.hooks.electorate != nil {
		c.hooks.electorate.RoleChanged(change.From, role)
	}
}

// resetRoles ends what belonged to the role that the board had, all its deadlines among it.
// The door then fills in the state of the new role.
func (c *Core) resetRoles() {
	c.listening = listenerState{}
	c.following = followerState{}
	c.candidacy = candidateState{}
	c.leading = leaderState{}
	c.barred = barredState{}
}
