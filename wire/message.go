package wire

import (
	"fmt"
	"net/netip"
)

// ID names a board within its group. By default it is the board's own IPv4
// address on the group's interface, read as a big-endian number: unique on a
// LAN by construction. Zero is nobody.
type ID uint32

// Nobody is the ID that stands for "no board".
const Nobody ID = 0

// IDFromAddr returns the ID that a board with the IPv4 address addr has by default.
func IDFromAddr(addr netip.Addr) ID {
	b := addr.As4()
	return ID(b[0])<<24 | ID(b[1])<<16 | ID(b[2])<<8 | ID(b[3])
}

// Addr returns the IPv4 address that the ID was made from, if it was made from one.
func (id ID) Addr() netip.Addr {
	return netip.AddrFrom4([4]byte{byte(id >> 24), byte(id >> 16), byte(id >> 8), byte(id)})
}

// String writes small numbers, which people choose by hand, as numbers and
// everything else as the IPv4 address that it was made from.
func (id ID) String() string {
	switch {
	case id == Nobody:
		return "nobody"
	case id < 1<<24:
		return fmt.Sprintf("%d", uint32(id))
	default:
		return id.Addr().String()
	}
}

// Term numbers reigns: it grows with every claim.
type Term uint32

// Incarnation is a random number drawn once in the life of a daemon process.
type Incarnation uint32

// Sequence counts the datagrams of one incarnation, from 1.
type Sequence uint32

// Algorithm is the number of an election algorithm. Boards of one group must
// agree on it. Only append to this list: the numbers are part of the protocol.
type Algorithm uint8

// The algorithms that have numbers.
const (
	AlgorithmHeir       Algorithm = 1
	AlgorithmBully      Algorithm = 2
	AlgorithmScore      Algorithm = 3
	AlgorithmModified   Algorithm = 4
	AlgorithmCandidates Algorithm = 5
	AlgorithmMinID      Algorithm = 6
	AlgorithmAgents     Algorithm = 7
)

var algorithmNames = [...]string{
	AlgorithmHeir:       "heir",
	AlgorithmBully:      "bully",
	AlgorithmScore:      "score",
	AlgorithmModified:   "modified",
	AlgorithmCandidates: "candidates",
	AlgorithmMinID:      "minid",
	AlgorithmAgents:     "agents",
}

func (a Algorithm) String() string {
	if int(a) < len(algorithmNames) && algorithmNames[a] != "" {
		return algorithmNames[a]
	}
	return fmt.Sprintf("algorithm %d", uint8(a))
}

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
}

func (t Type) String() string {
	if int(t) < len(typeNames) && typeNames[t] != "" {
		return typeNames[t]
	}
	return fmt.Sprintf("type %d", uint8(t))
}

// Header is what every message begins with.
type Header struct {
	Type      Type
	Algorithm Algorithm

	// Leading is set by a board that leads at the time of sending.
	Leading bool
	// Reply marks a message that was sent to answer another one and not on
	// schedule, so that nobody learns the sender's rhythm from it.
	Reply bool

	Sender      ID
	Term        Term  // the highest term that the sender knows of
	Priority    uint8 // the sender's own; 0 means that it must not lead
	Incarnation Incarnation
	Sequence    Sequence
}

// Message is any message: a header, and the body that belongs to its type. The
// other bodies are meaningless. It is one flat value so that decoding a packet
// allocates nothing.
type Message struct {
	Header

	Heartbeat   Heartbeat
	Hello       Hello
	Election    Election
	Answer      Answer
	Coordinator Coordinator
	Resign      Resign
	Query       Query
	Challenge   Challenge
	Proof       Proof
	Halt        Halt
	Round       Round // of START, ACK and COLLECT
	Report      Report
	Leader      Leader
	OK          OK
}
