package election

import (
	"time"

	"topdog/election/clock"
	"topdog/election/lease"
	"topdog/election/silence"
	"topdog/wire"
)

// becomeCandidate is for a board whose turn it is to act: it asks for the leader
// or holds an election, as its algorithm has it.
func (c *Core) becomeCandidate(reason Reason) {
	c.become(Candidate, c.leader, reason)
	c.candidacy = candidateState{cause: reason, since: c.now}
	c.asking = asking{}
	c.awaitSecondPath()
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

// missesLeader reports whether this board has become a candidate because it misses a heartbeat of the leader, or its address.
func (c *Core) missesLeader() bool {
	return c.candidacy.cause == ReasonSilence || c.candidacy.cause == ReasonAddressSilent
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
	if c.missesLeader() {
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

// incumbentLate ends the wait for a handover when the leader that was asked for it is late: it has died. A
// board that has just started does not know how long an answer takes, and waits for many times an interval.
// During that wait, a board that joins would hear nobody that leads or holds an election, and would claim.
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
// that has sent it already: that leader now sends scheduled heartbeats. Without this check the candidate would wait
// until its deadline for the COORDINATOR, which is seconds away after heavy losses.
func (c *Core) waitsInVain(m *wire.Message) bool {
	called := c.candidacy.cause == ReasonCalledUpon && c.candidacy.coordinator.Set
	return called && m.Type == wire.TypeHeartbeat && !m.Reply && !c.supersedes(m.Sender)
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
	return (!c.coldStart.pending || c.candidacy.probe == probeFree) && c.receives() && c.addressSilent() && c.secondPathSilent()
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

// probeRetryMin and probeRetryMax bound how long a board waits after it found
// the address in use; the kernel removes a frozen holder's address within 2.5 s.
const (
	probeRetryMin = time.Second
	probeRetryMax = 10 * time.Second
)

// TakeInUseAfter is for how long a foreign machine must have had the address to be ignored. A board
// that is merely unheard, or an address that a frozen holder's kernel still has, is found out by then.
const TakeInUseAfter = 10 * time.Second

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
		c.happens(EventAddressFree)
	}
}

// Evidence tells that something was received on this board's port that no board sent, and
// that it is newer than the last EffectAskLAN: a witness has answered, say.
func (c *Core) Evidence(now Instant) []Effect {
	c.enter(now)
	c.evidence.answeredAt = c.now
	return c.foreignHeard()
}

// FramesHeard tells the same, but that what was received answers nothing that this board has asked.
func (c *Core) FramesHeard(now Instant) []Effect {
	c.enter(now)
	return c.foreignHeard()
}

func (c *Core) foreignHeard() []Effect {
	c.evidence.foreign = true
	c.evidence.at, c.evidence.othersAt, c.evidence.foreignAt = c.now, c.now, c.now
	c.beginAnew()
	return c.effects
}

// receives reports whether the silence that this candidate hears cannot be its own port's: it
// has received something since it began to ask. A board that has never heard anything but the
// lost leader, as one of two on a switch, has no other board to listen for, and takes the
// leader for gone. So does a board that has just heard the leader and was then told that it is
// gone. Another board that was heard by the second path alone is one to listen for.
func (c *Core) receives() bool {
	return c.leader != wire.Nobody && c.now < c.detector.Freshness() ||
		c.evidence.at >= c.candidacy.since || !c.evidence.foreign && !c.roster.HeardBesides(c.lastLeader.id)
}

// PortSilent reports whether nothing arrives on the port of this candidate, so that it claims nothing.
func (c *Core) PortSilent() bool { return c.candidacy.unheard && !c.receives() }

// beginAnew restarts the candidacy of a board that could not claim because it heard nothing, and
// that now hears something. Its unanswered questions prove nothing, and other boards may have just
// begun to hear again as well.
func (c *Core) beginAnew() {
	if c.role == Candidate && c.candidacy.unheard && !c.named.Set && c.receives() {
		cause := c.candidacy.cause
		c.becomeFollower(c.leader, ReasonHearsAgain)
		c.turn(cause)
		return
	}
	c.reconsiderClaim()
}

// mayClaimOrWait reports whether a candidate may claim. If it may not, its algorithm hears of it when it may. If
// it hears nothing, it asks the LAN again and again, however long that lasts: nobody is served on a port that receives
// nothing.
func (c *Core) mayClaimOrWait() bool {
	if c.mayClaim() {
		return true
	}
	c.candidacy.refused = true
	answered := c.candidacy.since + c.answerWithin()
	switch {
	case c.receives() || c.candidacy.askLAN.Set:
	case c.now < answered:
		c.candidacy.askLAN = clock.Due(answered)
	default:
		c.missEvidence()
	}
	return false
}

// missEvidence is for a candidate whose first question to the LAN has gone unanswered.
func (c *Core) missEvidence() {
	if c.receives() {
		return
	}
	if c.candidacy.unheard {
		c.askLAN()
	}
	c.candidacy.unheard = true
	c.candidacy.askLAN = clock.Due(c.now + c.cfg.Interval)
}

// leaseEnd is when the lease of the leader has ended at the latest, as far as this board knows.
// An address that answers a question after that was not released.
func (c *Core) leaseEnd() Instant {
	grace := c.detector.Grace()
	end := c.detector.Earliest() - grace + lease.WithinLease(grace)
	if c.detectorKind() != silence.DetectorAsk {
		return max(end, c.detector.Freshness()) // its lease depends on that, see Lease
	}
	return end
}

// AddressOutlives is for how long after its last heartbeat a leader may have an address that
// its kernel removes: it was renewed for a second just then (netio.DefaultLifetime), and the
// kernel takes up to 1.25 s more, as measured.
const AddressOutlives = 2250 * time.Millisecond

// outlived reports whether the address of the suspected leader should have been removed by now.
func (c *Core) outlived() bool { return c.detector.Age(c.now) >= AddressOutlives }

// beginAsking asks the LAN as soon as there is a candidate, and has the address of the suspected
// leader asked when its lease has ended. Without a leader there is none to ask: it has
// resigned, or a probe is made.
func (c *Core) beginAsking() {
	switch at := c.leaseEnd(); {
	case c.leader == wire.Nobody:
		c.askLAN()
	case c.now >= at:
		c.askAddress()
	default:
		c.askLAN()
		c.candidacy.address.ask = clock.Due(at)
	}
}

// askAddress asks whether the address of the suspected leader still answers.
func (c *Core) askAddress() {
	if at := c.leaseEnd(); c.now < at {
		c.candidacy.address = addressState{ask: clock.Due(at)} // somebody has heard the leader since
		return
	}
	c.askLAN()
	c.candidacy.address = addressState{asked: true, askedAt: c.now, silent: clock.Due(c.now + c.answerWithin())}
}

// heardSince is called when a candidate has learned that somebody has heard the suspected leader
// after this board has. What the address has answered before says nothing then.
func (c *Core) heardSince() {
	if at := c.leaseEnd(); c.candidacy.address.askedAt < at {
		c.candidacy.address = addressState{ask: clock.Due(max(c.now, at))}
	}
}

// askAgain is the time until a candidate asks again that has asked often enough: something
// keeps it from claiming. Where that may last, there is no hurry.
func (c *Core) askAgain() time.Duration {
	if c.candidacy.unheard || c.candidacy.address.answered && c.outlived() {
		return c.cfg.Interval
	}
	return max(c.cfg.Interval/5, c.answerWithin())
}

// AddressAnswered tells that the floating address has answered an ARP request that was sent at
// askedAt.
func (c *Core) AddressAnswered(now, askedAt Instant) []Effect {
	c.enter(now)
	c.evidence.at = c.now
	if a := &c.candidacy.address; c.role == Candidate && a.asked && askedAt >= a.askedAt {
		a.answered, a.silent = true, clock.Deadline{}
		a.ask = clock.Due(c.now + c.askAgain())
		kind := NoticeAddressAnswers
		if c.outlived() {
			kind = NoticeAddressStays
		}
		c.notify(Notice{Kind: kind, Board: c.leader})
	}
	c.beginAnew()
	return c.effects
}

// addressSilent reports whether nothing answers for the address of the suspected leader. If the
// leader is not suspected by this board's own judgement, the algorithm knows more than that.
func (c *Core) addressSilent() bool {
	a := &c.candidacy.address
	switch {
	case c.leader == wire.Nobody || c.now < c.detector.Freshness():
		return true
	default:
		return a.asked && !a.answered && !a.silent.Ahead(c.now)
	}
}

// addressUnanswered lets a candidate claim, since the address did not answer in time.
func (c *Core) addressUnanswered() {
	if !c.readsFirst(&c.candidacy.address.waited, &c.candidacy.address.silent) {
		c.reconsiderClaim()
	}
}
