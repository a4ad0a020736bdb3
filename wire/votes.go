package wire

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"slices"
	"sort"
	"time"
)

// Support acknowledges one heartbeat of a leader: the sender, a voter of the algorithm
// strict, promises to support nobody else for the interval and the grace of that heartbeat.
type Support struct {
	Leader      ID
	Incarnation Incarnation // of the leader
	Term        Term        // of the heartbeat
	Heartbeat   Sequence    // of the heartbeat
	Voters      uint32      // the sender's VotersHash
}

func (s *Support) fields(c *cursor) {
	c.board("Leader", &s.Leader)
	c.incarnation(&s.Incarnation)
	c.term("Term", &s.Term)
	c.sequence(&s.Heartbeat)
	c.u32(&s.Voters)
}

// Vote is what a candidate says to the voters of the algorithm strict.
type Vote struct {
	Ballot Ballot
	// Number tells the requests of one incarnation apart, so that the candidate knows
	// when it sent the one that is granted.
	Number   uint32
	Interval time.Duration // that the sender would lead with; whole milliseconds, at most 65,535
	Grace    time.Duration // likewise; 0 is the default of the interval
	Voters   uint32        // the sender's VotersHash
}

// fields lets ballots through that this version does not know: a board that does not understand
// one grants nothing.
func (v *Vote) fields(c *cursor) {
	c.u8((*uint8)(&v.Ballot))
	c.u32(&v.Number)
	c.interval("Interval", &v.Interval)
	c.grace(&v.Grace)
	c.u32(&v.Voters)
}

// Ballot is what a VOTE says. Only append.
type Ballot uint8

// The ballots.
const (
	BallotRequest  Ballot = 0 // give me your vote
	BallotWithdraw Ballot = 1 // I no longer need the votes that I have asked for until now
	BallotList     Ballot = 2 // this is the hash of my list of voters
)

func (b Ballot) String() string {
	switch b {
	case BallotRequest:
		return "request"
	case BallotWithdraw:
		return "withdraw"
	case BallotList:
		return "list"
	default:
		return fmt.Sprintf("ballot %d", uint8(b))
	}
}

// Grant gives a candidate the sender's vote: a promise, as a SUPPORT is one.
type Grant struct {
	Candidate   ID
	Incarnation Incarnation // of the candidate
	Number      uint32      // of the request that is granted
	Voters      uint32      // the sender's VotersHash
}

func (g *Grant) fields(c *cursor) {
	c.board("Candidate", &g.Candidate)
	c.incarnation(&g.Incarnation)
	c.u32(&g.Number)
	c.u32(&g.Voters)
}

// VotersHash is the hash of a list of voters that SUPPORT, VOTE and GRANT carry: the first 32
// bits of SHA-256 over the ids in ascending order. Boards with different lists do not count
// each other's votes, since two majorities of two lists need not have a board in common.
func VotersHash(voters []ID) uint32 {
	sorted := slices.Clone(voters)
	sort.Slice(sorted, func(i, j int) bool { return sorted[i] < sorted[j] })
	ids := make([]byte, 0, len(sorted)*idSize)
	for _, id := range sorted {
		ids = binary.BigEndian.AppendUint32(ids, uint32(id))
	}
	sum := sha256.Sum256(ids)
	return binary.BigEndian.Uint32(sum[:])
}
