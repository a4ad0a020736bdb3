package election

import (
	"fmt"
	"time"

	"topdog/election/clock"
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

func (r Role) String() string { return name(roleNames[:], uint8(r), "role") }

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
	another, asked := leader != c.leader, c.candidacy.request.open
	c.role, c.leader, c.roleState = role, leader, roleState{} // the door fills in the state of the new role
	if role != Candidate && c.fitness.told != c.fitness.set {
		c.tellGrade() // the one that a candidate has got meanwhile
		c.hello = clock.Due(c.now)
	}
	if another {
		c.allowAnother()
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
// at once, and says nothing since nobody would hear it.
func (c *Core) becomeIsolated(reason Reason) {
	c.become(Isolated, wire.Nobody, reason)
	c.cutOff()
}

// cutOff forgets what this board had begun with the others, and by which ways it heard them.
func (c *Core) cutOff() {
	c.paths.noMulticast = false
	c.hello, c.handover.repeat = clock.Deadline{}, clock.Deadline{}
	c.own, c.votes.promiseEnds = [ownDeadlines]clock.Deadline{}, clock.Deadline{}
	c.happens(EventCutOff)
}

// becomeBarred is for a board that must stay out. It is silent, since anything
// that it said would be taken for a message of the board that it is in conflict with.
func (c *Core) becomeBarred(reason Reason) {
	c.become(Barred, wire.Nobody, reason)
	c.cutOff()
	c.barred.end = clock.Due(c.now + barredFor)
}

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

// Reason says why a board changed its role or its leader. It is what the log,
// the history and the metrics show.
type Reason uint8

// The reasons.
const (
	ReasonNone Reason = iota
	ReasonLinkUp
	ReasonLinkLost
	ReasonHeardLeader
	ReasonProclaimed
	ReasonSilence
	ReasonLeaderAlive
	ReasonEvidence
	ReasonOutranked
	ReasonUnanswered
	ReasonNoLeader
	ReasonHandover
	ReasonResigned
	ReasonStopping
	ReasonPreempted
	ReasonRival
	ReasonRestarted
	ReasonSuspended
	ReasonAddressInUse
	ReasonDuplicateID
	ReasonOtherAlgorithm
	ReasonConflictOver
	ReasonJoining
	ReasonNoPriority
	ReasonCalledUpon
	ReasonOutranks
	ReasonUnheard
	ReasonNamed
	ReasonNewRound
	ReasonElected
	ReasonNamedAnother
	ReasonLeaseExpired
	ReasonOtherVersion
	ReasonHigherTerm
	ReasonMajorityUnheard
	ReasonClock
	ReasonHearsAgain
	ReasonDeaf
	ReasonRivalServed
	ReasonFailing
	ReasonDrained
	ReasonRivalFitter
	ReasonPaused
	reasonCount
)

// reasons has both forms of every reason. The identifiers are part of the JSON
// that docs/status.md describes, so they stay as they are; the texts may be bettered.
var reasons = [reasonCount]struct{ identifier, text string }{
	ReasonNone:            {"none", "no reason"},
	ReasonLinkUp:          {"link_up", "the link came up"},
	ReasonLinkLost:        {"link_lost", "the link was lost"},
	ReasonHeardLeader:     {"heard_leader", "heard the leader"},
	ReasonProclaimed:      {"leader_proclaimed", "a new leader proclaimed itself"},
	ReasonSilence:         {"leader_silent", "the leader fell silent"},
	ReasonLeaderAlive:     {"leader_answered", "the leader answered"},
	ReasonEvidence:        {"leader_heard_by_another", "another board has heard the leader since"},
	ReasonOutranked:       {"outranked", "a board of higher rank is at it"},
	ReasonUnanswered:      {"nobody_answered", "nobody answered for the leader"},
	ReasonNoLeader:        {"no_leader", "nobody was leading"},
	ReasonHandover:        {"handed_over", "the leader handed over"},
	ReasonResigned:        {"leader_resigned", "the leader resigned"},
	ReasonStopping:        {"leader_stopped", "the leader's daemon stopped"},
	ReasonPreempted:       {"preempted", "a board of higher rank asked for the lead"},
	ReasonRival:           {"rival_outranks", "another leader has the higher rank"},
	ReasonRestarted:       {"leader_restarted", "the leader's daemon restarted"},
	ReasonSuspended:       {"suspended", "this daemon was not running for a while"},
	ReasonAddressInUse:    {"address_in_use", "a foreign machine has the address"},
	ReasonDuplicateID:     {"duplicate_id", "another board has the same id"},
	ReasonOtherAlgorithm:  {"other_algorithm", "the group runs another algorithm"},
	ReasonConflictOver:    {"conflict_over", "the conflict is over"},
	ReasonJoining:         {"joining", "joining"},
	ReasonNoPriority:      {"priority_zero", "its priority was set to 0"},
	ReasonCalledUpon:      {"election_by_lower_rank", "a board of lower rank holds an election"},
	ReasonOutranks:        {"outranks_leader", "outranks the leader"},
	ReasonUnheard:         {"unheard", "another board leads, and nobody hears this one"},
	ReasonNamed:           {"named_by_judge", "the judge named it"},
	ReasonNewRound:        {"another_judge", "another board is the judge"},
	ReasonElected:         {"elected", "an election named this board"},
	ReasonNamedAnother:    {"another_elected", "an election named another board"},
	ReasonLeaseExpired:    {"lease_expired", "this daemon did not run, and its dead man's switch released the address"},
	ReasonOtherVersion:    {"other_version", "the group speaks another version of the protocol"},
	ReasonHigherTerm:      {"higher_term", "another board was elected since"},
	ReasonMajorityUnheard: {"majority_unheard", "this leader has not heard the majority of the voters for long"},
	ReasonClock:           {"clock_not_trusted", "this board's clock does not run at its rate"},
	ReasonHearsAgain:      {"hears_again", "this board's port receives again"},
	ReasonDeaf:            {"deaf", "this board let go of the lead, since nothing arrives on its port any more"},
	ReasonRivalServed:     {"rival_served", "another leader has served meanwhile"},
	ReasonFailing:         {"failing", "what this board serves does not work, and another board is fitter"},
	ReasonDrained:         {"drained", "this board was drained"},
	ReasonRivalFitter:     {"rival_fitter", "another leader is fitter"},
	ReasonPaused:          {"paused", "the group is paused"},
}

// String returns the reason for people.
func (r Reason) String() string {
	if r < reasonCount {
		return reasons[r].text
	}
	return "an unknown reason"
}

// ReasonIdentifiers returns those of all reasons.
func ReasonIdentifiers() (all []string) {
	for r := range reasonCount {
		all = append(all, r.Identifier())
	}
	return all
}

// Identifier returns the reason for programs.
func (r Reason) Identifier() string {
	if r < reasonCount {
		return reasons[r].identifier
	}
	return "unknown"
}
