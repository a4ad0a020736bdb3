package election

import (
	"topdog/election/clock"
	"topdog/election/lease"
	"topdog/election/roster"
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

// VoterStatus is what a board can tell people of one voter.
type VoterStatus = lease.VoterStatus
