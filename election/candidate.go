package election

import (
	"time"
	"topdog/election/clock"
	"topdog/wire"
)

// candidateState is that of a board that stands for election.
type candidateState struct {
	cause            Reason // why it became one
	handoverRequests int    // how often it has asked a leader of lower rank to hand over
	probe            probe
	answers          clock.Deadline // its question has gone unanswered
	incumbent        clock.Deadline // the leader that it has asked to hand over is late
	coordinator      clock.Deadline // it was outranked, and has waited for a COORDINATOR
	address          addressState
	since            Instant        // when it began to ask
	unheard          bool           // nothing was received since then, so it could not claim
	askLAN           clock.Deadline // it asks the LAN again because of that
	refused          bool           // its algorithm would have claimed, but for what mayClaim looks at
}

// probe says how far a candidate has come in finding out whether the address is free.
type probe uint8

const (
	probeNone probe = iota // not wanted: a leader's silence is no time to wait
	probePending
	probeFree
)

// HandoverRequests is how often a candidate asks a living leader of lower rank to hand over.
const HandoverRequests = 3

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

// candidateHearsLeader ends a candidate's suspicion, or its wait for a new leader.
func (c *Core) candidateHearsLeader(m *wire.Message) {
	if m.Sender == c.leader {
		c.answeredLate()
		if m.Reply && c.asking.count > 0 {
			c.timeAnswer()
		}
		if c.suspectsLeader() || m.Type == wire.TypeCoordinator && !m.Reply || c.waitsInVain(m) {
			// Any message shows that it lives. Without this the board would suspect it again at once.
			c.detector.Evidence(c.now)
			c.becomeFollower(m.Sender, ReasonLeaderAlive)
		}
		return
	}
	if c.leader != wire.Nobody && m.Term < c.lastLeader.term {
		return // a former leader; its successor will tell it
	}
	c.becomeFollower(m.Sender, ReasonProclaimed)
	c.leaderChanged()
}

// waitsInVain reports whether this candidate was called upon, was answered, and waits for the COORDINATOR of a leader
// that has proclaimed itself before: it goes on with its heartbeats. Without this the board would wait
// as long as it waits for answers, which is seconds after heavy losses.
func (c *Core) waitsInVain(m *wire.Message) bool {
	called := c.candidacy.cause == ReasonCalledUpon && c.candidacy.coordinator.Set
	return called && m.Type == wire.TypeHeartbeat && !m.Reply && !c.supersedes(m.Sender)
}

// sendElection asks whether the suspect lives, and says that this board is about
// to act. It concerns the audience, or everybody if that is nil.
func (c *Core) sendElection(audience []wire.ID) {
	c.asking.ask(c.now)
	c.tell(audience, c.question())
}

// question returns the ELECTION of this board as it is now.
func (c *Core) question() wire.Message {
	return wire.Message{
		Header: wire.Header{Type: wire.TypeElection},
		Election: wire.Election{
			Suspect: c.leader, Incarnation: c.lastLeader.incarnation,
			LastHeard: c.lastLeader.lastHeard, Round: c.asking.round, Score: c.score.told,
			NoClaim: c.asking.round > 1 && !c.receives(),
		},
	}
}

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
	c.requestHandover()
	c.candidacy.answers = clock.Due(c.now + c.detector.Questions().Duration())
	c.candidacy.incumbent = clock.Due(c.detector.Freshness())
}

// incumbentLate ends the wait for a handover when the leader that was asked for it is late: it has died.
// A board that has just started does not know how long an answer takes, and waits for many times an interval.
// Meanwhile one that joins would hear of nobody who leads or elects, and would claim.
func (c *Core) incumbentLate() {
	switch {
	case !c.candidacy.answers.Set:
	case c.incumbentLives():
		c.candidacy.incumbent = clock.Due(c.detector.Freshness())
	default:
		c.candidacy.answers = clock.Due(c.now)
	}
}

// requestHandover asks the leader to hand over to this board.
func (c *Core) requestHandover() {
	c.send(c.leader, wire.Message{
		Header: wire.Header{Type: wire.TypeQuery},
		Query:  wire.Query{Purpose: wire.PurposeHandover},
	})
}

// startProbe asks for a probe of the address, to make sure that no foreign machine has it.
// It does so only before the first claim at a cold start, when there is no hurry.
func (c *Core) startProbe() {
	if c.coldStart.pending && c.candidacy.probe == probeNone {
		c.candidacy.probe = probePending
		c.emit(EffectProbe)
	}
}

// mayClaim reports whether nothing but the algorithm stands between a candidate and the lead.
func (c *Core) mayClaim() bool {
	return (!c.coldStart.pending || c.candidacy.probe == probeFree) && c.receives() && c.addressSilent()
}

// Probed tells how the probe ended that EffectProbe asked for: inUse means that a
// foreign machine has the address.
func (c *Core) Probed(now Instant, inUse bool) []Effect {
	c.enter(now)
	if c.role != Candidate || c.candidacy.probe != probePending {
		return c.effects // somebody else leads by now
	}
	c.coldStart.taken = inUse && c.cfg.TakeInUse && c.coldStart.retry > 0 && c.now-c.coldStart.since >= TakeInUseAfter
	if inUse && !c.coldStart.taken {
		c.becomeListener(ReasonAddressInUse, c.awaitAddress())
		return c.effects
	}
	c.candidacy.probe, c.coldStart.retry = probeFree, 0
	c.reconsiderClaim()
	return c.effects
}

// awaitAddress returns how long to wait until the next probe of an address that is in use.
func (c *Core) awaitAddress() time.Duration {
	cold := &c.coldStart
	if cold.retry == 0 {
		cold.since = c.now
	}
	cold.retry = min(max(2*cold.retry, probeRetryMin), probeRetryMax)
	if c.cfg.TakeInUse {
		cold.retry = min(cold.retry, max(cold.since+TakeInUseAfter-c.now, probeRetryMin))
	}
	return cold.retry
}

// TakesInUse reports whether this board claims, or has claimed, although a foreign machine has the address.
func (c *Core) TakesInUse() bool { return c.coldStart.taken }

// reconsiderClaim lets the algorithm of a candidate claim that would have done so before, and
// was not allowed to.
func (c *Core) reconsiderClaim() {
	if c.role == Candidate && c.candidacy.refused && c.mayClaim() {
		c.candidacy.refused = false
		c.algorithm.AddressFree()
	}
}
