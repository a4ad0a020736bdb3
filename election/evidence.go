package election

import (
	"time"

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
	return c.effects
}

// hearAnything receives the fact that this board's port receives.
func (c *Core) hearAnything() { c.evidence.at = c.now }

// addressState is what a candidate has found out about the address of the leader that it suspects.
type addressState struct {
	ask      deadline // the leader's lease ends, so that its address should not answer any more
	asked    bool     // it was asked since then
	askedAt  Instant  // when it was asked last
	answered bool     // it has answered that, or one question later
	silent   deadline // an answer would have come by then
	waited   bool     // that deadline came late, and the answer was given more time
}

// askLAN asks the witnesses, and the address of the leader that is suspected, if there is one.
func (c *Core) askLAN() {
	c.effects = append(c.effects, Effect{Kind: EffectAskLAN, To: c.leader})
}

// leaseEnd is when the lease of the leader has ended at the latest, as far as this board knows.
// An address that answers a question after that was not released.
func (c *Core) leaseEnd() Instant {
	if c.detectorKind() != DetectorAsk {
		return c.detector.Freshness() // its lease depends on that, see Lease
	}
	return c.detector.Earliest() - Grace(c.cfg.Interval)/4
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
		c.candidacy.address.ask = due(at)
	}
}

// askAddress asks whether the address of the suspected leader still answers.
func (c *Core) askAddress() {
	if at := c.leaseEnd(); c.now < at {
		c.candidacy.address = addressState{ask: due(at)} // somebody has heard the leader since
		return
	}
	c.askLAN()
	c.candidacy.address = addressState{asked: true, askedAt: c.now, silent: due(c.now + c.answerWithin())}
}

// heardSince is called when a candidate has learned that somebody has heard the suspected leader
// after this board has. What the address has answered before says nothing then.
func (c *Core) heardSince() {
	if at := c.leaseEnd(); c.candidacy.address.askedAt < at {
		c.candidacy.address = addressState{ask: due(max(c.now, at))}
	}
}

// answerWithin is how long the answer to an ARP request may take. The kernel answers it, so
// it takes no longer than the answer of a daemon.
func (c *Core) answerWithin() time.Duration { return c.detector.RoundTripBound() }

// AddressAnswered tells that the floating address has answered an ARP request that was sent at
// askedAt.
func (c *Core) AddressAnswered(now, askedAt Instant) []Effect {
	c.enter(now)
	if a := &c.candidacy.address; c.role == Candidate && a.asked && askedAt >= a.askedAt {
		a.answered, a.silent = true, deadline{}
		a.ask = due(c.now + c.addressAgain())
	}
	return c.effects
}

// addressAgain is the time until an address that has answered is asked again.
func (c *Core) addressAgain() time.Duration { return max(c.cfg.Interval/5, c.answerWithin()) }

// addressSilent reports whether nothing answers for the address of the suspected leader. If the
// leader is not suspected by this board's own judgement, the algorithm knows more than that.
func (c *Core) addressSilent() bool {
	a := &c.candidacy.address
	switch {
	case c.leader == wire.Nobody || c.now < c.detector.Freshness():
		return true
	default:
		return a.asked && !a.answered && !a.silent.ahead(c.now)
	}
}

// addressUnanswered lets a candidate claim, since the address did not answer in time. If the
// whole board may have stood still, an answer is perhaps waiting to be read.
func (c *Core) addressUnanswered() {
	if a := &c.candidacy.address; c.wokeLate >= roundTripMin && !a.waited {
		a.waited, a.silent = true, due(c.now+roundTripMin)
		return
	}
	c.reconsiderClaim()
}
