package election

import (
	"fmt"

	"topdog/election/clock"
	"topdog/election/roster"
	"topdog/wire"
)

// Instant is a point in time on the board's monotonic clock.
type Instant = clock.Instant

// Peer is what a board knows of another one, and Rank what boards are ordered by.
type (
	Peer = roster.Peer
	Rank = roster.Rank
	// Order reports whether the rank a comes before b, of two boards that are as fit.
	Order = roster.Order
)

// EffectKind says what the owner of a core has to do.
type EffectKind uint8

// The kinds of effects.
const (
	// EffectSend sends Message to the board To, to the whole group if To is wire.Nobody, or
	// to whoever has the floating address. The owner fills in incarnation and sequence.
	EffectSend EffectKind = iota + 1
	// EffectAcquire makes this board hold the floating address and announces it.
	// When the board holds it already, it is announced again.
	EffectAcquire
	// EffectRelease releases the address. It must be done before the effects
	// behind it: a RESIGN that overtakes it makes two holders.
	EffectRelease
	// EffectFenced says that the lease of this leader is over, because the majority was not
	// heard in time, and that it leads on. Where the kernel ends leases there is nothing to do.
	// Elsewhere the address is removed. EffectAcquire follows when the majority is heard again.
	EffectFenced
	// EffectProbe asks whether a foreign machine has the address (RFC 5227,
	// section 2.1.1). The owner answers with Core.Probed.
	EffectProbe
	// EffectAskLAN asks by ARP, at once: the floating address, by unicast to the MAC address
	// that the board To had for it, unless To is wire.Nobody; and the witnesses. The
	// owner answers with Core.AddressAnswered and Core.Evidence.
	EffectAskLAN
	// EffectChange tells of a change of role or leader.
	EffectChange
	// EffectNotice tells of something that a person should look into.
	EffectNotice
	// EffectFinished says that a stopping core has nothing left to do.
	EffectFinished
)

// Effect is one thing that the owner of a core has to do.
type Effect struct {
	Kind    EffectKind
	To      wire.ID
	Message wire.Message
	// Broadcast sends a copy of what goes to the whole group to 255.255.255.255 on the
	// interface as well, since a switch that loses multicast passes that. It is the same
	// datagram, so whoever gets both takes the second one for a replay.
	Broadcast bool
	// Floating sends Message to the floating address itself, and not to To.
	Floating bool
	// Audience lists the boards that a message to all concerns, as its sender knows
	// them; nil means everybody. The others get the multicast as well and ignore
	// it. It is for those who count messages as the literature does.
	Audience []wire.ID
	// Beat is not 0 if the owner must tell Core.Sent which sequence the message has got.
	Beat   uint32
	Change Change
	Notice Notice
}

// Change is a change of role or leader, or both.
type Change struct {
	From, To             Role
	OldLeader, NewLeader wire.ID
	Term                 wire.Term
	Reason               Reason
}

// LeaderChanged reports whether somebody else leads now, or nobody.
func (c Change) LeaderChanged() bool { return c.OldLeader != c.NewLeader }

func (c Change) String() string {
	return fmt.Sprintf("%v -> %v, leader %v, term %d: %v", c.From, c.To, c.NewLeader, c.Term, c.Reason)
}
