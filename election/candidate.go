package election

import (
	"topdog/election/clock"
	"topdog/wire"
)

// becomeCandidate is for a board whose turn it is to act: it asks for the leader
// or holds an election, as its algorithm has it.
func (c *Core) becomeCandidate(reason Reason) {
	c.become(Candidate, c.leader, reason)
	c.candidacy = candidateState{cause: reason, since: c.now}
	c.asking = asking{}
	c.beginAsking()
}

// suspectsLeader reports whether this board is a candidate because the leader fell silent.
// Only then does any message of the leader end the candidacy. A board that joins, is
// called upon or outranks the leader holds its election although the leader lives.
func (c *Core) suspectsLeader() bool {
	switch c.candidacy.cause {
	case ReasonJoining, ReasonCalledUpon, ReasonOutranks:
		return false
	default:
		return true
	}
}

// HandoverRequests is how often a candidate asks a living leader of lower rank to hand over.
const HandoverRequests = 3

// claim ends a candidacy to which nobody objected.
func (c *Core) claim() {
	switch {
	case c.incumbentLives():
		c.askIncumbent()
		return
	case c.leaderOutranks():
		c.becomeFollower(c.leader, ReasonLeaderAlive)
		return
	}
	reason := c.candidacy.cause
	if reason == ReasonSilence {
		reason = ReasonUnanswered
	}
	c.lead(reason)
}

// incumbentLives reports whether a leader that this candidate outranks is alive.
func (c *Core) incumbentLives() bool {
	return c.definition.HighestLeads && c.outranks(c.leader) && c.now < c.detector.Freshness()
}

// leaderOutranks reports whether the leader lives and comes before this candidate, which does not suspect it: its
// answer was lost, or one of the two has another grade than when this board became a candidate. A
// board that was called upon takes the leader for dead, as the caller does, unless it has heard it since.
func (c *Core) leaderOutranks() bool {
	leader := c.roster.Peer(c.leader)
	if !c.definition.HighestLeads || leader == nil || c.suspectsLeader() {
		return false
	}
	heard := leader.Leading && leader.LastHeard > c.candidacy.since
	return heard || c.candidacy.cause != ReasonCalledUpon && c.now < c.detector.Freshness()
}

// askIncumbent asks a living leader of lower rank to hand over, a few times, before this
// candidate claims. That is ours: the papers ask boards of higher rank only, and have no
// address that two boards must not hold at the same time.
func (c *Core) askIncumbent() {
	if c.candidacy.handoverRequests == HandoverRequests {
		c.becomeFollower(c.leader, ReasonLeaderAlive)
		return
	}
	c.candidacy.handoverRequests++
	c.send(c.leader, query(wire.PurposeHandover, 0))
	c.answers = clock.Due(c.now + c.detector.Questions().Duration())
	c.candidacy.incumbent = clock.Due(c.detector.Freshness())
}

// incumbentLate ends the wait for a handover when the leader that was asked for it is late: it has died.
// A board that has just started does not know how long an answer takes, and waits for many times an interval.
// Meanwhile one that joins would hear of nobody who leads or elects, and would claim.
func (c *Core) incumbentLate() {
	switch {
	case !c.answers.Set:
	case c.incumbentLives():
		c.candidacy.incumbent = clock.Due(c.detector.Freshness())
	default:
		c.answers = clock.Due(c.now)
	}
}

// waitsInVain reports whether this candidate was called upon, was answered, and waits for the COORDINATOR of a leader
// that has proclaimed itself before: it goes on with its heartbeats. Without this the board would wait
// as long as it waits for answers, which is seconds after heavy losses.
func (c *Core) waitsInVain(m *wire.Message) bool {
	called := c.candidacy.cause == ReasonCalledUpon && c.candidacy.coordinator.Set
	return called && m.Type == wire.TypeHeartbeat && !m.Reply && !c.supersedes(m.Sender)
}
