package election

import (
	"time"

	"topdog/election/clock"
	"topdog/election/lease"
	"topdog/election/silence"
	"topdog/wire"
)

// A leader may be frozen while it leads. Its owner can have a lease watched, from one
// heartbeat to the next, by something that is not frozen with it. When the lease runs
// out, that releases the address and sends the pre-signed RESIGN. The leader is told so
// by LeaseExpired when it runs again.

// LeaseEnd is until when this leader can be sure that nobody has deposed it. It is counted
// from the time of the call that sent the last heartbeat: that time was read before the
// heartbeat left, so however long it took to send, nobody counts from an earlier one. ends is
// false if no live board could depose it, or if this board does not lead. It supposes that the
// others have the detector that this board has.
//
// The owner asks after every call, not only after one that sent something: the end also
// moves when the first heir appears, or the last one leaves. With the algorithm strict it is
// until when the majority of the voters supports this leader: it always ends, and each
// acknowledgement may move it.
func (c *Core) LeaseEnd() (end Instant, ends bool) {
	if c.role != Leader {
		return 0, false
	}
	if c.votes.needed() {
		return c.votes.support.End(c.now), true
	}
	if c.leading.lapse.over.Set {
		return c.leading.lapse.end, true
	}
	if _, ok := c.Successor(c.now); !ok {
		return 0, false
	}
	return c.leading.sentAt + c.lease(), true
}

// FirstLeaseEnd is until when a new leader may answer for the address whose COORDINATOR has not
// left yet. If it stands still in between, nobody hears that it leads, and the others leave the lead
// to it for successorFirst.
func (c *Core) FirstLeaseEnd() Instant {
	first := c.now + c.successorFirst()
	if end, ends := c.LeaseEnd(); ends {
		return min(first, end)
	}
	return first
}

// OverdueAt is when a leader that has votes would have sent its next heartbeat at the latest, if it
// runs. Until then its lease may be over because the majority was not heard. Then whoever watches
// over the lease must not tell the others that this leader has gone. It is 0 for a leader without
// votes: its lease is counted from its own last heartbeat, and so ends only if the leader is late.
func (c *Core) OverdueAt() Instant {
	if !c.votes.needed() || c.role != Leader {
		return 0
	}
	return c.leading.sentAt + c.lease()
}

// lease is how long a lease lasts from a heartbeat.
func (c *Core) lease() time.Duration {
	// Where boards act on a suspicion without asking first, nobody acts before suspectAfter.
	// The others see the same network, but each measures it for itself, so half an interval is
	// left as a margin.
	lease := c.cfg.Interval + lease.WithinLease(c.grace.Lease)
	if c.detectorKind() != silence.DetectorAsk {
		lease = max(lease, c.suspectAfter()-c.cfg.Interval/2)
	}
	return lease
}

// PresignedResign is the RESIGN that this leader would send if it had to go now, as one that
// stops; ok is false if it does not lead. The owner fills in incarnation and sequence. The
// sequence must come after that of everything that is sent before this RESIGN.
func (c *Core) PresignedResign() (m wire.Message, ok bool) {
	if c.role != Leader {
		return m, false
	}
	heir, ok := c.Successor(c.now)
	m.Header = c.Signature()
	m.Type, m.Leading, m.Priority = wire.TypeResign, false, 0
	m.Resign.Successor = heir
	return m, ok
}

// checkLapse is called when a heartbeat is sent. It looks whether the lease has ended before.
// With votes the majority decides that.
func (c *Core) checkLapse() {
	if c.votes.needed() || c.leading.sentAt < c.leading.since { // or it is the first one of this leader
		return
	}
	if l := &c.leading.lapse; l.over.Set {
		if c.now >= c.leading.sentAt+c.lease() {
			// This board stood still once more, long enough for somebody to claim. So the
			// silence after its last heartbeat proves nothing.
			l.over, l.waited = clock.Due(c.now+c.answerWithin()), false
		}
		return
	}
	if end, ends := c.LeaseEnd(); ends && c.now >= end {
		c.leaseLapsed(c.now, end)
	}
}

// lapseOver begins the lease again, since nobody was heard who has claimed.
func (c *Core) lapseOver() { c.readsFirst(&c.leading.lapse.waited, &c.leading.lapse.over) }

// LeaseLapsed tells that a heartbeat left this board only after the lease had ended, at end. now
// was read after that. It only records the fact, and learns from it: the effects of the call before
// stay good, and people may have to be told what was learned. The call may have come in time, and the
// heartbeat have left late.
func (c *Core) LeaseLapsed(now, end Instant) []Effect {
	before := len(c.effects)
	c.leaseLapsed(now, end)
	return c.effects[before:]
}

func (c *Core) leaseLapsed(now, end Instant) {
	l := &c.leading.lapse
	if c.role != Leader || c.votes.needed() || l.over.Set {
		return
	}
	*l = lapse{end: end, over: clock.Due(now + c.answerWithin())}
	// The first heartbeat teaches nothing, see overslept. If the lease has just got a longer grace, see Grace.Announce,
	// the lease that has ended had a shorter one. How long that was is not known any more.
	former := end - c.lease() // when the heartbeat before was sent, unless the lease was lengthened
	lengthened := c.grace.Lengthened(former)
	if former > c.leading.since && !lengthened {
		c.learnOverslept(now - end + lease.WithinLease(c.grace.Lease))
	}
}

// resignSettles is how long after the end of a lease its RESIGN may still be sent, since what
// is lost of it is repeated. A message of this board that came before it would make it a late one.
const resignSettles = 25 * time.Millisecond

// LeaseExpired tells that the lease of this leader has run out, and that its pre-signed
// RESIGN was sent. Whatever its rank, it is the last one to claim then. During a pause nobody may
// claim before it, so it asks as soon as the RESIGN was heard, as a board does that was suspended.
func (c *Core) LeaseExpired(now Instant) []Effect {
	// As enter, but for the doubts: what this board missed is known, and it must not hold
	// an election, as one that was suspended does, before it has released the address.
	c.begin(now)
	late := c.overslept()
	c.timetable.notBefore(c.now)
	if c.role != Leader {
		return c.effects
	}
	c.becomeFollower(wire.Nobody, ReasonLeaseExpired)
	c.learnOverslept(late)
	if c.aloneMayLead() {
		c.postpone(resignSettles) // where the pause is over, whoever the RESIGN names claims
	} else {
		c.postpone(c.listenWindow())
	}
	c.hello = clock.Due(c.now + resignSettles) // the RESIGN said that this board has gone
	return c.effects
}

// overslept returns by how much this leader is late for its own heartbeat; 0 if it is not, or if
// nobody is there who could take over. The first heartbeat does not count: it waits for the
// address to be acquired, which takes time and happens only once.
func (c *Core) overslept() (late time.Duration) {
	if c.role != Leader || !c.leading.heartbeat.Reached(c.now) || c.leading.sentAt == c.leading.since {
		return 0
	}
	if _, ok := c.Successor(c.now); !ok {
		return 0
	}
	return c.now - c.leading.heartbeat.At
}

// learnOverslept learns a longer grace from that lateness, whether or not this board has lost the
// lead by then: a lease that is over is reason enough.
func (c *Core) learnOverslept(late time.Duration) {
	if late > 0 {
		c.needGrace(lease.GraceFor(late), silence.Lesson{Kind: silence.LessonOverslept, Board: c.cfg.ID, Late: late})
	}
}

// wishSoon has a HELLO tell the leader soon that a longer grace is needed.
func (c *Core) wishSoon() { c.hello = c.hello.Before(c.now + resignSettles) }

// needGrace takes in that a leader would have kept the lead with a grace of that length, and
// not with a shorter one.
func (c *Core) needGrace(needed time.Duration, l silence.Lesson) {
	if c.grace.Need(c.now, needed, l) {
		c.notifyPatience()
	}
}

// notifyPatience tells people of a longer grace, if this board announces it.
func (c *Core) notifyPatience() {
	if l := c.grace.Lesson; c.role == Leader {
		c.notify(Notice{Kind: NoticePatience, Board: l.Board, grace: c.grace.Learned, lesson: l})
	}
}

// answeredLate is for a candidate whose leader lives: it reminds the leader of a grace that
// was needed. A candidate that stood still itself knows nothing of that.
func (c *Core) answeredLate() {
	late := c.now - c.detector.Due()
	if c.suspectsLeader() && !c.lastLeader.forgiven && c.grace.Remind(c.now, late) {
		c.wishSoon()
	}
}

// hearWish receives what a HELLO wishes for.
func (c *Core) hearWish(m *wire.Message) {
	if want := m.Hello.Grace; c.role == Leader && want > 0 &&
		c.grace.Wish(c.now, want, silence.Lesson{Kind: silence.LessonWished, Board: m.Sender}) {
		c.notifyPatience()
	}
}
