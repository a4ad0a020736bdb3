package wire

import "fmt"

// Type says what a message is. Only append to this list: the numbers are part of the protocol.
type Type uint8

// The messages. Their names are the literature's, where it has one.
const (
	TypeHeartbeat   Type = 1
	TypeHello       Type = 2
	TypeElection    Type = 3
	TypeAnswer      Type = 4
	TypeCoordinator Type = 5
	TypeResign      Type = 6
	TypeQuery       Type = 7
	TypeChallenge   Type = 8
	TypeProof       Type = 9
	TypeHalt        Type = 10
	TypeStart       Type = 11
	TypeAck         Type = 12
	TypeCollect     Type = 13
	TypeReport      Type = 14
	TypeLeader      Type = 15
	TypeOK          Type = 16
	TypeRival       Type = 17
	TypeSupport     Type = 18
	TypeVote        Type = 19
	TypeGrant       Type = 20
	TypePause       Type = 21
)

var typeNames = [...]string{
	TypeHeartbeat:   "HEARTBEAT",
	TypeHello:       "HELLO",
	TypeElection:    "ELECTION",
	TypeAnswer:      "ANSWER",
	TypeCoordinator: "COORDINATOR",
	TypeResign:      "RESIGN",
	TypeQuery:       "QUERY",
	TypeChallenge:   "CHALLENGE",
	TypeProof:       "PROOF",
	TypeHalt:        "HALT",
	TypeStart:       "START",
	TypeAck:         "ACK",
	TypeCollect:     "COLLECT",
	TypeReport:      "REPORT",
	TypeLeader:      "LEADER",
	TypeOK:          "OK",
	TypeRival:       "RIVAL",
	TypeSupport:     "SUPPORT",
	TypeVote:        "VOTE",
	TypeGrant:       "GRANT",
	TypePause:       "PAUSE",
}

func (t Type) String() string {
	if int(t) < len(typeNames) && typeNames[t] != "" {
		return typeNames[t]
	}
	return fmt.Sprintf("type %d", uint8(t))
}

// known reports whether this version has a message of the type.
func (t Type) known() bool { return int(t) < len(bodySizes) && bodySizes[t] > 0 }

// bodySizes has the length of each type's body, without the name of a HELLO, the
// entries of lists, and optional tails. It is 0 for a type that does not exist.
var bodySizes = [typeMask + 1]int{
	TypeHeartbeat:   heartbeatSize,
	TypeHello:       helloSize,
	TypeElection:    electionSize,
	TypeAnswer:      answerSize,
	TypeCoordinator: coordinatorSize,
	TypeResign:      resignSize,
	TypeQuery:       querySize,
	TypeChallenge:   challengeSize,
	TypeProof:       proofSize,
	TypeHalt:        haltSize,
	TypeStart:       roundSize,
	TypeAck:         roundSize,
	TypeCollect:     roundSize,
	TypeReport:      reportSize,
	TypeLeader:      leaderSize,
	TypeOK:          okSize,
	TypeRival:       rivalSize,
	TypeSupport:     supportSize,
	TypeVote:        voteSize,
	TypeGrant:       grantSize,
	TypePause:       pauseSize,
}
