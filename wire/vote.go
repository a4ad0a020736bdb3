package wire

import (
	"encoding/binary"
	"fmt"
	"time"
)

// Vote is what a board says to the voters of the algorithm strict about its candidacy.
type Vote struct {
	Ballot Ballot
	// Number tells the requests of one incarnation apart, so that the candidate knows
	// when it sent the one that is granted.
	Number   uint32
	Interval time.Duration // that the sender would lead with; whole milliseconds, at most 65,535
	Grace    time.Duration // likewise; 0 is the default of the interval
	Voters   uint32        // the sender's VotersHash
}

// voteSize is the length of the body.
const voteSize = 12

func (v *Vote) appendTo(dst []byte) ([]byte, error) {
	interval, err := milliseconds(TypeVote, "Interval", v.Interval)
	if err != nil {
		return nil, err
	}
	grace, err := graceCode(TypeVote, v.Grace)
	if err != nil {
		return nil, err
	}
	dst = append(dst, byte(v.Ballot))
	dst = binary.BigEndian.AppendUint32(dst, v.Number)
	dst = binary.BigEndian.AppendUint16(dst, interval)
	dst = append(dst, grace)
	return binary.BigEndian.AppendUint32(dst, v.Voters), nil
}

// decode lets ballots through that this version does not know: who does not understand one
// grants nothing.
func (v *Vote) decode(body []byte) Drop {
	v.Ballot = Ballot(body[0])
	v.Number = binary.BigEndian.Uint32(body[1:])
	v.Interval = time.Duration(binary.BigEndian.Uint16(body[5:])) * time.Millisecond
	v.Grace = graceOf(body[7])
	v.Voters = binary.BigEndian.Uint32(body[8:])
	if v.Interval == 0 {
		return malformed(5)
	}
	return Drop{}
}

func (v *Vote) summary() string {
	return fmt.Sprintf("%v %d, every %v", v.Ballot, v.Number, v.Interval) + graceSummary(v.Grace) +
		fmt.Sprintf(", voters %08x", v.Voters)
}

// Ballot is what a VOTE says. Only append.
type Ballot uint8

// The ballots.
const (
	BallotRequest  Ballot = 0 // give me your vote
	BallotWithdraw Ballot = 1 // I need the votes no more that I have asked for until now
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
