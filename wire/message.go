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

// appendBody is a switch and not a table of functions, so that the compiler sees
// that m does not escape: callers may keep messages on the stack.
func (m *Message) appendBody(dst []byte) ([]byte, error) {
	switch m.Type {
	case TypeHeartbeat:
		return m.Heartbeat.appendTo(dst)
	case TypeHello:
		return m.Hello.appendTo(dst)
	case TypeElection:
		return m.Election.appendTo(dst), nil
	case TypeAnswer:
		return m.Answer.appendTo(dst)
	case TypeCoordinator:
		return m.Coordinator.appendTo(dst)
	case TypeResign:
		return m.Resign.appendTo(dst), nil
	case TypeQuery:
		return m.Query.appendTo(dst), nil
	case TypeChallenge:
		return m.Challenge.appendTo(dst)
	case TypeProof:
		return m.Proof.appendTo(dst), nil
	case TypeHalt:
		return m.Halt.appendTo(dst), nil
	case TypeStart, TypeAck, TypeCollect:
		return m.Round.appendTo(dst), nil
	case TypeReport:
		return m.Report.appendTo(dst)
	case TypeLeader:
		return m.Leader.appendTo(dst)
	case TypeOK:
		return m.OK.appendTo(dst)
	case TypeRival:
		return m.Rival.appendTo(dst)
	case TypeSupport:
		return m.Support.appendTo(dst)
	case TypeVote:
		return m.Vote.appendTo(dst)
	case TypeGrant:
		return m.Grant.appendTo(dst)
	case TypePause:
		return m.Pause.appendTo(dst)
	default:
		return nil, &fieldError{m.Type, "Type", "does not exist"}
	}
}

// decodeBody reads the body of m's type. Header.decode has made sure that it is
// at least as long as bodySizes says.
func (m *Message) decodeBody(body []byte) Drop {
	switch m.Type {
	case TypeHeartbeat:
		return m.Heartbeat.decode(body)
	case TypeHello:
		return m.Hello.decode(body)
	case TypeElection:
		return m.Election.decode(body)
	case TypeAnswer:
		m.Answer.decode(body)
	case TypeCoordinator:
		return m.Coordinator.decode(body)
	case TypeResign:
		m.Resign.decode(body)
	case TypeQuery:
		m.Query.decode(body)
	case TypeChallenge:
		return m.Challenge.decode(body)
	case TypeProof:
		m.Proof.decode(body)
	case TypeHalt:
		m.Halt.decode(body)
	case TypeStart, TypeAck, TypeCollect:
		m.Round.decode(body)
	case TypeReport:
		return m.Report.decode(body)
	case TypeLeader:
		return m.Leader.decode(body)
	case TypeOK:
		return m.OK.decode(body)
	case TypeRival:
		return m.Rival.decode(body)
	case TypeSupport:
		return m.Support.decode(body)
	case TypeVote:
		return m.Vote.decode(body)
	case TypeGrant:
		return m.Grant.decode(body)
	case TypePause:
		return m.Pause.decode(body)
	}
	return Drop{}
}

// String describes the message in one line, for transcripts. It allocates, so keep it
// off the path of every packet.
func (m *Message) String() string {
	s := m.Header.summary()
	if body := m.summary(); body != "" {
		s += ": " + body
	}
	return s
}

// summary describes the body.
func (m *Message) summary() string {
	switch m.Type {
	case TypeHeartbeat:
		return m.Heartbeat.summary()
	case TypeHello:
		return m.Hello.summary()
	case TypeElection:
		return m.Election.summary()
	case TypeAnswer:
		return m.Answer.summary()
	case TypeCoordinator:
		return m.Coordinator.summary()
	case TypeResign:
		return m.Resign.summary()
	case TypeQuery:
		return m.Query.summary()
	case TypeChallenge:
		return m.Challenge.summary()
	case TypeProof:
		return m.Proof.summary()
	case TypeHalt:
		return m.Halt.summary()
	case TypeStart, TypeAck, TypeCollect:
		return m.Round.summary()
	case TypeReport:
		return m.Report.summary()
	case TypeLeader:
		return m.Leader.summary()
	case TypeOK:
		return m.OK.summary()
	case TypeRival:
		return m.Rival.summary()
	case TypeSupport:
		return m.Support.summary()
	case TypeVote:
		return m.Vote.summary()
	case TypeGrant:
		return m.Grant.summary()
	case TypePause:
		return m.Pause.summary()
	default:
		return ""
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
