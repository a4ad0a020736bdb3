package wire

import "fmt"

// String describes the message in one line, for traces. It allocates, so keep
// it off the path of every packet.
func (m *Message) String() string {
	s := fmt.Sprintf("%v from %v life %08x #%d term %d priority %d %v",
		m.Type, m.Sender, uint32(m.Incarnation), m.Sequence, m.Term, m.Priority, m.Algorithm)
	if m.Leading {
		s += " leading"
	}
	if m.Reply {
		s += " reply"
	}
	if body := m.summary(); body != "" {
		s += ": " + body
	}
	return s
}

// summary describes the body.
func (m *Message) summary() string {
	switch m.Type {
	case TypeHeartbeat:
		return fmt.Sprintf("beat %d, next in %v", m.Heartbeat.Number, m.Heartbeat.Interval)
	case TypeHello:
		return fmt.Sprintf("%q, up %v, follows %v, every %v", m.Hello.Name, m.Hello.Age, m.Hello.Following, m.Hello.Interval) +
			score(m.Hello.Score)
	case TypeElection:
		return fmt.Sprintf("round %d, suspects %v life %08x, heard #%d",
			m.Election.Round, m.Election.Suspect, uint32(m.Election.Incarnation), m.Election.LastHeard) +
			score(m.Election.Score)
	case TypeAnswer:
		return fmt.Sprintf("round %d, leader %v life %08x, heard #%d %v ago",
			m.Answer.Round, m.Answer.Leader, uint32(m.Answer.Incarnation), m.Answer.LastHeard, m.Answer.Age)
	case TypeCoordinator:
		s := fmt.Sprintf("%v leads, beat %d, next in %v", m.Coordinator.Coordinator, m.Coordinator.Number, m.Coordinator.Interval) +
			score(m.Coordinator.Score)
		if len(m.Coordinator.Candidates) > 0 {
			s += ", candidates" + list(m.Coordinator.Candidates)
		}
		return s
	case TypeResign:
		return fmt.Sprintf("successor %v", m.Resign.Successor)
	case TypeQuery:
		return fmt.Sprintf("round %d, %v", m.Query.Round, m.Query.Purpose)
	case TypeChallenge:
		return fmt.Sprintf("to %v life %08x, nonce %x", m.Challenge.Target, uint32(m.Challenge.Incarnation), m.Challenge.Nonce)
	case TypeProof:
		return fmt.Sprintf("nonce %x", m.Proof.Nonce)
	case TypeHalt:
		return fmt.Sprintf("suspects %v", m.Halt.Suspect)
	case TypeStart, TypeAck, TypeCollect:
		return fmt.Sprintf("round %d", m.Round.Number)
	case TypeReport:
		s := fmt.Sprintf("round %d, time %d,", m.Report.Round, m.Report.Timestamp)
		for _, standing := range m.Report.Standings {
			s += fmt.Sprintf(" %v=%d", standing.ID, standing.Priority)
		}
		return s
	case TypeLeader:
		return fmt.Sprintf("%v leads, time %d", m.Leader.Leader, m.Leader.Timestamp)
	case TypeOK:
		return fmt.Sprintf("round %d, trusts", m.OK.Round) + list(m.OK.Trust)
	default:
		return ""
	}
}

// score describes a score, if there is one.
func score(n uint32) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf(", score %d", n)
}

// list writes ids in a row, each after a space.
func list(ids []ID) (s string) {
	if len(ids) == 0 {
		return " nobody"
	}
	for _, id := range ids {
		s += " " + id.String()
	}
	return s
}
