package election

import (
	"time"
	"topdog/election/silence"
	"topdog/wire"
)

// promise is whom a voter supports, and until when. It belongs to no role: it survives every
// change of role and a lost link, and its end never moves back but for a word of the board
// that has it. A process that has just started does not know what its former life has
// promised, so it begins with a promise to nobody (PaxosLease, arXiv 1209.4187, section 5).
type promise struct {
	to          wire.ID
	incarnation wire.Incarnation
	until       Instant
	sequence    wire.Sequence // of the newest message of that board on which it rests
	// number is that of the request that was granted, as long as no heartbeat was
	// acknowledged since; else 0.
	number uint32
}

// is reports whether the promise was made to that board, whether it has ended or not.
func (p *promise) is(id wire.ID, incarnation wire.Incarnation) bool {
	return p.to == id && p.incarnation == incarnation
}

// free reports whether the promise has ended.
func (p *promise) free(now Instant) bool { return now >= p.until }

// allows reports whether a board may be supported.
func (p *promise) allows(now Instant, id wire.ID, incarnation wire.Incarnation) bool {
	return p.free(now) || p.is(id, incarnation)
}

// make promises to support a board that the promise allows. number is that of a request, or 0.
func (p *promise) make(h *wire.Header, number uint32, until Instant) {
	if !p.is(h.Sender, h.Incarnation) {
		*p = promise{to: h.Sender, incarnation: h.Incarnation}
	}
	p.until = max(p.until, until)
	p.sequence = max(p.sequence, h.Sequence)
	p.number = number
}

// release ends a promise on the word of the board that has it. What that board said
// later still counts: the network may deliver its words in another order.
func (p *promise) release(now Instant, h *wire.Header) (released bool) {
	if p.free(now) || !p.is(h.Sender, h.Incarnation) || h.Sequence <= p.sequence {
		return false
	}
	p.until = now
	return true
}

// promised is for how long a heartbeat or a request of that interval and grace binds a voter
// from its receipt on.
func promised(interval, grace time.Duration) time.Duration {
	return interval + orGrace(grace, interval)
}

// orGrace is an announced grace, or the default of the interval.
func orGrace(grace, interval time.Duration) time.Duration {
	if grace == 0 {
		return silence.DefaultGrace(interval)
	}
	return grace
}

// leased is for how long the sender of a heartbeat or a request has the support of a voter,
// counted from before it was sent. A quarter of the grace is left for clocks that do not run
// at the same rate, and to release the address. It must be a fiftieth of the whole at least: a
// voter's clock that is 1 % fast ends a promise after 1/1.01 of it, and a leader's clock that
// is 1 % slow ends a lease after 1/0.99, so a lease must be shorter than 0.99/1.01 = 0.9802 of
// a promise. Of H + H/10 a quarter of the grace is 2.3 %.
func leased(interval, grace time.Duration) time.Duration {
	whole := promised(interval, grace)
	return min(whole-orGrace(grace, interval)/4, whole*49/50)
}
