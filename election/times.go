package election

import (
	"time"

	"topdog/election/lease"
	"topdog/election/roster"
	"topdog/election/silence"
	"topdog/wire"
)

// witnesses is how many followers answer a candidate that has missed a
// heartbeat which they have heard: enough to survive loss, and few enough that a
// lost heartbeat in a group of 255 is not followed by 254 answers.
const witnesses = 3

// detectorKind is the failure detector of this board.
func (c *Core) detectorKind() silence.DetectorKind { return c.cfg.Detector.Or(c.definition.Detector) }

// suspectAfter is for how long a leader must be silent to be suspected.
func (c *Core) suspectAfter() time.Duration { return c.cfg.Interval + c.detector.Quality().Margin }

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

// helloInterval is how often this board says HELLO.
func (c *Core) helloInterval() time.Duration { return roster.HelloInterval(c.roster.Live(c.now) + 1) }

// A follower measures the round trip to a new leader as often as roundTripMeasurements, one
// interval apart but never less than measureMin, so that the answer has time to come back
// before the next one is asked for. From then on it does so every measureEvery.
const (
	roundTripMeasurements = 4
	measureMin            = 50 * time.Millisecond
	measureEvery          = 10 * time.Second
)

func (c *Core) measureInterval() time.Duration {
	if c.lastLeader.measured < roundTripMeasurements {
		return max(c.cfg.Interval, measureMin)
	}
	return measureEvery
}

// preemptIntervals is for how many intervals a board of higher rank follows before it asks
// for the lead, unless another delay is configured. A board that comes and goes must not move the
// address each time. It asks again after as many.
const preemptIntervals = 20

// answerWithin is how long the answer to an ARP request may take. The kernel answers it, so
// it takes no longer than the answer of a daemon.
func (c *Core) answerWithin() time.Duration { return c.detector.RoundTripBound() }

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

// askAgain is the time until a candidate asks again that has asked often enough: something
// keeps it from claiming. Where that may last, there is no hurry.
func (c *Core) askAgain() time.Duration {
	if c.candidacy.unheard || c.candidacy.address.answered && c.outlived() {
		return c.cfg.Interval
	}
	return max(c.cfg.Interval/5, c.answerWithin())
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

// How a RESIGN is repeated.
const (
	// resignRepeatMin is the time after which a RESIGN that no COORDINATOR answers is
	// repeated at first.
	resignRepeatMin = 5 * time.Millisecond
	// successorsMax is how many boards are named, one after the other, and only as long as the others
	// leave the lead to a board that was named.
	successorsMax = 3
	// successorTimeoutMax bounds how long a successor may take to answer.
	successorTimeoutMax = 500 * time.Millisecond
)

// successorTimeout is how long a successor may take to answer. To name another one while
// the first is only busy makes two holders; and where people have chosen long intervals,
// their boards are slow.
func (c *Core) successorTimeout() time.Duration {
	return min(max(c.cfg.Interval/4, 2*resignRepeatMin), successorTimeoutMax)
}

// successorFirst is how long the others leave the lead to the board that was named.
func (c *Core) successorFirst() time.Duration { return c.cfg.Interval / 2 }

// resignSettles is how long after the end of a lease its RESIGN may still be sent, since what
// is lost of it is repeated. A message of this board that came before it would make it a late one.
const resignSettles = 25 * time.Millisecond

// lease is how long a lease lasts from a heartbeat.
func (c *Core) lease() time.Duration {
	// Where a board does not ask before it acts on a suspicion, the silence that the others
	// wait for counts. They see the same network, but each measures it for itself.
	lease := c.cfg.Interval + lease.WithinLease(c.grace.Lease)
	if c.detectorKind() != silence.DetectorAsk {
		lease = max(lease, c.suspectAfter()-c.cfg.Interval/2)
	}
	return lease
}

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
// over the lease must not tell the others that this leader has gone. It is 0 for others: what
// they have sent is what their leases end by.
func (c *Core) OverdueAt() Instant {
	if !c.votes.needed() || c.role != Leader {
		return 0
	}
	return c.leading.sentAt + c.lease()
}

// barredFor is how long a conflict must be unheard of to be over. HELLOs of a
// small group come every second.
const barredFor = roster.HelloLosses * roster.HelloFloor

// tellAgeAfter is how long a board waits before it says again how old it is. It has just proven
// itself to the other one, or will have by then.
const tellAgeAfter = 10 * time.Millisecond

// A switch that snoops IGMP and has no querier forgets who wants multicast, and passes none.
// Unicast and broadcast still work. A board that hears its leader only by these says so in its HELLO. While a board says
// that, all that goes to everybody is sent by broadcast as well.

// multicastMissed is for how many intervals a follower hears its leader without its
// multicasts before it believes that they are lost. At 40 % loss, ten in a row are lost by chance
// once in ten thousand times. Until then it asks every interval, and is answered.
const multicastMissed = 10

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
	late := c.detector.Age(c.now) - c.cfg.Interval
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

// overslept returns by how much this leader is late for its own heartbeat; 0 if it is not, or if
// nobody is there who could take over. The first heartbeat does not count: to acquire the address
// takes its time, and happens once.
func (c *Core) overslept() (late time.Duration) {
	if c.role != Leader || !c.leading.heartbeat.Reached(c.now) || c.leading.sentAt == c.leading.since {
		return 0
	}
	if _, ok := c.Successor(c.now); !ok {
		return 0
	}
	return c.now - c.leading.heartbeat.At
}

// learnOverslept learns from that. This board may have lost the lead by then, or may not: a lease
// that is over is reason enough.
func (c *Core) learnOverslept(late time.Duration) {
	if late > 0 {
		c.needGrace(lease.GraceFor(late), silence.Lesson{Kind: silence.LessonOverslept, Board: c.cfg.ID, Late: late})
	}
}
