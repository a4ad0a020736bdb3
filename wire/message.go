package wire

import "fmt"

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
	Rival       Rival
	Support     Support
	Vote        Vote
	Grant       Grant
	Pause       Pause
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
	TypeRival       Type = 17
	TypeSupport     Type = 18
	TypeVote        Type = 19
	TypeGrant       Type = 20
	TypePause       Type = 21
)

// types has the name of every type that exists, and the length of its plain packet without names,
// entries of lists and optional tails.
var types = [typeMask + 1]struct {
	name string
	size int
}{
	TypeHeartbeat:   {"HEARTBEAT", 24},
	TypeHello:       {"HELLO", 33},
	TypeElection:    {"ELECTION", 34},
	TypeAnswer:      {"ANSWER", 37},
	TypeCoordinator: {"COORDINATOR", 28},
	TypeResign:      {"RESIGN", 24},
	TypeQuery:       {"QUERY", 22},
	TypeChallenge:   {"CHALLENGE", 44},
	TypeProof:       {"PROOF", 36},
	TypeHalt:        {"HALT", 24},
	TypeStart:       {"START", 24},
	TypeAck:         {"ACK", 24},
	TypeCollect:     {"COLLECT", 24},
	TypeReport:      {"REPORT", 29},
	TypeLeader:      {"LEADER", 28},
	TypeOK:          {"OK", 25},
	TypeRival:       {"RIVAL", 30},
	TypeSupport:     {"SUPPORT", 39},
	TypeVote:        {"VOTE", 32},
	TypeGrant:       {"GRANT", 36},
	TypePause:       {"PAUSE", 32},
}

// known reports whether this version has a message of the type.
func (t Type) known() bool { return int(t) < len(types) && types[t].name != "" }

func (t Type) String() string {
	if t.known() {
		return types[t].name
	}
	return fmt.Sprintf("type %d", uint8(t))
}

// fields goes through the fields of the body. It is a switch and not a table or an interface, so that
// the compiler sees that m does not escape: callers may keep messages on the stack.
func (m *Message) fields(c *cursor) {
	switch m.Type {
	case TypeHeartbeat:
		m.Heartbeat.fields(c)
	case TypeHello:
		m.Hello.fields(c)
	case TypeElection:
		m.Election.fields(c)
	case TypeAnswer:
		m.Answer.fields(c)
	case TypeCoordinator:
		m.Coordinator.fields(c)
	case TypeResign:
		m.Resign.fields(c)
	case TypeQuery:
		m.Query.fields(c)
	case TypeChallenge:
		m.Challenge.fields(c)
	case TypeProof:
		m.Proof.fields(c)
	case TypeHalt:
		m.Halt.fields(c)
	case TypeStart, TypeAck, TypeCollect:
		m.Round.fields(c)
	case TypeReport:
		m.Report.fields(c)
	case TypeLeader:
		m.Leader.fields(c)
	case TypeOK:
		m.OK.fields(c)
	case TypeRival:
		m.Rival.fields(c)
	case TypeSupport:
		m.Support.fields(c)
	case TypeVote:
		m.Vote.fields(c)
	case TypeGrant:
		m.Grant.fields(c)
	case TypePause:
		m.Pause.fields(c)
	}
}

// fieldError is the error for a message that has no representation on the wire.
type fieldError struct {
	message Type
	field   string // its name in the Go struct
	problem string // in words, to follow the name
}

func (e *fieldError) Error() string {
	return fmt.Sprintf("cannot encode %v: %s %s", e.message, e.field, e.problem)
}
