package election

import (
	"time"
	"topdog/election/clock"
	"topdog/election/lease"
	"topdog/election/silence"
	"topdog/wire"
)

// Silence has two causes: the leader is gone, or this board's port receives nothing. And a
// leader whose daemon is silent may still have the address. So beside the boards the LAN is
// asked, by ARP: its witnesses, and the address itself.

// evidence is what shows that this board's port receives.
type evidence struct {
	at      Instant // when anything came from another machine last
	foreign bool    // something has, in this life of the process, that was no message of a board
}

// Evidence tells that something was received on this board's port that no board sent, and
// that it is newer than the last EffectAskLAN: a witness has answered, say.
func (c *Core) Evidence(now Instant) []Effect {
	c.enter(now)
	c.evidence.foreign = true
	c.hearAnything()
	c.beginAnew()
	return c.effects
}

// hearAnything receives the fact that this board's port receives.
func (c *Core) hearAnything() { c.evidence.at = c.now }

// receives reports whether the silence that this candidate hears cannot be its own port's: it
// has received something since it began to ask. A board that has never heard anything but
// the lost leader, as one of two on a switch, has nobody to hear it from, and takes the silence
// for what it seems. So does one that was told of the end of a leader that it has just heard.
func (c *Core) receives() bool {
	return c.leader != wire.Nobody && c.now < c.detector.Freshness() ||
		c.evidence.at >= c.candidacy.since || !c.heardBesides(c.lastLeader.id)
}

// PortSilent reports whether nothing arrives on the port of this candidate, so that it claims nothing.
func (c *Core) PortSilent() bool { return c.candidacy.unheard && !c.receives() }

// heardBesides reports whether this board has ever heard anything but that one, in this life
// of its process.
func (c *Core) heardBesides(one wire.ID) bool {
	return c.evidence.foreign || c.roster.HeardBesides(one)
}

// beginAnew begins the candidacy anew of a board that could not claim because it heard nothing, and
// now does: what it has asked in vain says nothing, and others may have waited for the same.
func (c *Core) beginAnew() {
	if c.role == Candidate && c.candidacy.unheard && c.receives() {
		cause := c.candidacy.cause
		c.becomeFollower(c.leader, ReasonHearsAgain)
		c.algorithm.Turn(cause)
		return
	}
	c.reconsiderClaim()
}

// refuseClaim notes that a candidate would have claimed. If it hears nothing, it asks the LAN again
// and again, however long that lasts: nobody is served on a port that receives nothing.
func (c *Core) refuseClaim() {
	c.candidacy.refused = true
	if c.receives() || c.candidacy.askLAN.Set {
		return
	}
	if answered := c.candidacy.since + c.answerWithin(); c.now < answered {
		c.candidacy.askLAN = clock.Due(answered)
		return
	}
	c.missEvidence()
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

// addressState is what a candidate has found out about the address of the leader that it suspects.
type addressState struct {
	ask      clock.Deadline // the leader's lease ends, so that its address should not answer any more
	asked    bool           // it was asked since then
	askedAt  Instant        // when it was asked last
	answered bool           // it has answered that, or one question later
	silent   clock.Deadline // an answer would have come by then
	waited   bool           // that deadline came late, and the answer was given more time
}

// askLAN asks the witnesses, and the address of the leader that is suspected, if there is one.
func (c *Core) askLAN() {
	suspect := c.leader
	if c.role == Leader {
		suspect = wire.Nobody
	}
	c.effects = append(c.effects, Effect{Kind: EffectAskLAN, To: suspect})
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

// answerWithin is how long the answer to an ARP request may take. The kernel answers it, so
// it takes no longer than the answer of a daemon.
func (c *Core) answerWithin() time.Duration { return c.detector.RoundTripBound() }

// AddressAnswered tells that the floating address has answered an ARP request that was sent at
// askedAt.
func (c *Core) AddressAnswered(now, askedAt Instant) []Effect {
	c.enter(now)
	c.hearAnything()
	if a := &c.candidacy.address; c.role == Candidate && a.asked && askedAt >= a.askedAt {
		a.answered, a.silent = true, clock.Deadline{}
		a.ask = clock.Due(c.now + c.askAgain())
		c.notifyAddress()
	}
	c.beginAnew()
	return c.effects
}

// AddressOutlives is for how long after its last heartbeat a leader may have an address that
// its kernel removes: it was renewed for a second just then (netio.DefaultLifetime), and the
// kernel takes up to 1.25 s more, as measured.
const AddressOutlives = 2250 * time.Millisecond

// outlived reports whether the address of the suspected leader should have been removed by now.
func (c *Core) outlived() bool { return c.detector.Age(c.now) >= AddressOutlives }

// notifyAddress tells people of a silent leader whose address answers.
func (c *Core) notifyAddress() {
	kind := NoticeAddressAnswers
	if c.outlived() {
		kind = NoticeAddressStays
	}
	c.notify(Notice{Kind: kind, Board: c.leader})
}

// askAgain is the time until a candidate asks again that has asked often enough: something
// keeps it from claiming. Where that may last, there is no hurry.
func (c *Core) askAgain() time.Duration {
	if c.candidacy.unheard || c.candidacy.address.answered && c.outlived() {
		return c.cfg.Interval
	}
	return max(c.cfg.Interval/5, c.answerWithin())
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

// addressUnanswered lets a candidate claim, since the address did not answer in time. If the
// whole board may have stood still, an answer is perhaps waiting to be read.
func (c *Core) addressUnanswered() {
	if a := &c.candidacy.address; c.wokeLate >= silence.RoundTripMin && !a.waited {
		a.waited, a.silent = true, clock.Due(c.now+silence.RoundTripMin)
		return
	}
	c.reconsiderClaim()
}
