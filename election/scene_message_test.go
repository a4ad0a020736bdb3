package election

import (
	"strings"
	"time"

	"topdog/internal/lab/golden"
	"topdog/wire"
)

// message reads a message of another board: who says what, and how it differs from others. The namesake of this board is
// incarnation 99.
func (s *scene) message(words []string) *wire.Message {
	s.t.Helper()
	kind := wire.Type(1)
	for kind.String() != words[1] {
		if kind++; kind > wire.TypePause {
			s.t.Fatalf("there is no message %s", words[1])
		}
	}
	return s.from(golden.Number[wire.ID](s.t, words[0]), kind, func(m *wire.Message) {
		if m.Sender == s.cfg.ID {
			m.Incarnation = 99
		}
		switch m.Type {
		case wire.TypeVote, wire.TypeGrant, wire.TypeSupport:
			m.Vote = wire.Vote{Interval: testInterval, Voters: s.votes.hash}
			m.Grant = wire.Grant{Candidate: s.cfg.ID, Incarnation: s.cfg.Incarnation, Number: s.votes.support.Number, Voters: s.votes.hash}
			m.Support = wire.Support{Leader: s.cfg.ID, Incarnation: s.cfg.Incarnation, Term: s.term, Heartbeat: s.board.sent, Voters: s.votes.hash}
		}
		for _, word := range words[2:] {
			s.change(m, word)
		}
	})
}

func (s *scene) change(m *wire.Message, word string) {
	s.t.Helper()
	name, value, _ := strings.Cut(word, "=")
	switch name {
	case "leading":
		m.Leading = true
	case "ahead":
		m.Term++
	case "restarted":
		m.Incarnation++
	case "handover":
		m.Query.Purpose = wire.PurposeHandover
	case "bully":
		m.Algorithm = wire.AlgorithmBully
	case "term":
		m.Term = golden.Number[wire.Term](s.t, value)
	case "priority":
		m.Priority = golden.Number[uint8](s.t, value)
	case "grade":
		m.Grade = golden.Number[wire.Grade](s.t, value)
	case "names":
		m.Resign.Successor = golden.Number[wire.ID](s.t, value)
	case "following":
		m.Hello.Following = golden.Number[wire.ID](s.t, value)
	case "older": // than this board
		m.Hello.Age = (s.clock + duration(s.t, value)).Truncate(time.Second)
	case "grace":
		m.Heartbeat.Grace, m.Hello.Grace = duration(s.t, value), duration(s.t, value)
	case "doubts": // which leader, of which incarnation
		id, incarnation, _ := strings.Cut(value, "/")
		m.Election.Suspect, m.Election.Incarnation = golden.Number[wire.ID](s.t, id), golden.Number[wire.Incarnation](s.t, incarnation)
	case "round":
		m.Election.Round = golden.Number[uint8](s.t, value)
	case "request":
		m.Vote.Ballot, m.Vote.Number = wire.BallotRequest, golden.Number[uint32](s.t, value)
	case "withdraw":
		m.Vote.Ballot, m.Vote.Number = wire.BallotWithdraw, golden.Number[uint32](s.t, value)
	case "sequence": // so many before
		m.Sequence -= golden.Number[wire.Sequence](s.t, value)
	case "number":
		m.Grant.Number = golden.Number[uint32](s.t, value)
	case "unsent":
		m.Support.Heartbeat++
	case "others": // the voters differ
		m.Vote.Voters++
		m.Grant.Voters++
		m.Support.Voters++
	case "former": // the leader before it was started anew
		m.Support.Incarnation++
	case "later": // than the term of the leader
		m.Support.Term++
	default:
		s.t.Fatalf("a message cannot be %s", word)
	}
}
