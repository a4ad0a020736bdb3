package election

import (
	"time"

	"topdog/election/lease"
	"topdog/election/silence"
	"topdog/wire"
)

// voting is what a board knows of the votes with which it leads, or others do. It is empty with
// all algorithms but strict: then every board may lead, and needs no support.
type voting struct {
	hash    uint32        // of the list of voters
	cap     time.Duration // of a promise
	support lease.Support // of this board, by the voters
	promise lease.Promise // of this board, if it is a voter
	trip    silence.Smoothed

	candidacy struct {
		open   bool          // it asks for votes
		since  Instant       // since when
		repeat time.Duration // until it asks once more
	}
	fence fence

	clockDistrusted bool
	listTold        Instant // when the hash was told to all because of another list
}

// fence is how a leader stands with the lease that the majority of the voters gives it.
type fence struct {
	// closed says that the lease has ended: nobody answers for the address. The board leads
	// on, and says nothing of it. If the majority is heard again before anybody has claimed, the
	// address is back without a move.
	closed bool
	beatAt Instant // when the last heartbeat to all was sent
}

// newVoting is for a board that has just started, with the longest grace that it grants.
func newVoting(cfg *Config, patience time.Duration, now Instant) voting {
	v := voting{
		hash: wire.VotersHash(cfg.Voters), cap: lease.PromiseMax(cfg.Interval, patience),
		support: lease.NewSupport(cfg.Voters), listTold: now - noticeInterval,
	}
	v.promise.Until = now + v.cap
	return v
}

// needed reports whether a leader needs votes.
func (v *voting) needed() bool { return len(v.support.Voters) > 0 }

// self returns this board among the voters, or nil.
func (v *voting) self(id wire.ID) *lease.Voter { return v.support.Voter(id) }

// mayLead reports whether this board may lead: where votes are needed only a voter does, and only one whose
// clock is good. No other one may promise anything.
func (v *voting) mayLead(id wire.ID) bool {
	return !v.needed() || v.self(id) != nil && !v.clockDistrusted
}

// supported reports whether this board has the support that it needs now.
func (v *voting) supported(now Instant) bool { return !v.needed() || v.support.End(now) > now }

// sent notes which sequence the heartbeat of that number has got.
func (v *voting) sent(number uint32, sequence wire.Sequence) {
	item := v.support.Find(func(item *lease.Sent) bool { return !item.Request && item.Number == number })
	if item != nil {
		item.Sequence = sequence
	}
}

// roundTrip is how long the answer of a voter may take.
func (v *voting) roundTrip(interval time.Duration) time.Duration {
	if !v.trip.Known {
		return silence.RoundTripUnknown
	}
	return min(max(v.trip.Bound(), silence.RoundTripMin), interval/2)
}
