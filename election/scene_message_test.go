package election

import (
	"strings"
	"time"

	"topdog/internal/lab/assert"
	"topdog/internal/lab/corescene"
	"topdog/internal/lab/corescene/scenetest"
	"topdog/wire"
)

// message reads a message of another board: who says what, and how it differs from others. The namesake of this board is
// incarnation 99.
func (s *scene) message(words []string) *wire.Message {
	s.t.Helper()
	m, err := corescene.ReadMessage(words, s.base, s.change)
	assert.NoError(s.t, err)
	return m
}

// base is what the words of a message change.
func (s *scene) base(sender wire.ID, kind wire.Type) *wire.Message {
	return s.from(sender, kind, func(m *wire.Message) {
		if m.Sender == s.cfg.ID {
			m.Incarnation = 99
		}
		switch m.Type {
		case wire.TypeVote, wire.TypeGrant, wire.TypeSupport:
			m.Vote = wire.Vote{Interval: testInterval, Voters: s.votes.hash}
			m.Grant = wire.Grant{Candidate: s.cfg.ID, Incarnation: s.cfg.Incarnation, Number: s.votes.support.Number, Voters: s.votes.hash}
			m.Support = wire.Support{Leader: s.cfg.ID, Incarnation: s.cfg.Incarnation, Term: s.term, Heartbeat: s.board.sent, Voters: s.votes.hash}
		}
	})
}

// change changes what a word says, and reports whether it does.
func (s *scene) change(m *wire.Message, name, value string) bool {
	s.t.Helper()
	switch name {
	case "ahead":
		m.Term++
	case "restarted":
		m.Incarnation++
	case "handover":
		m.Query.Purpose = wire.PurposeHandover
	case "bully":
		m.Algorithm = wire.AlgorithmBully
	case "names":
		m.Resign.Successor = scenetest.Read[wire.ID](s.t, value)
	case "following":
		m.Hello.Following = scenetest.Read[wire.ID](s.t, value)
	case "older": // than this board
		m.Hello.Age = (s.clock + scenetest.Read[time.Duration](s.t, value)).Truncate(time.Second)
	case "grace":
		m.Heartbeat.Grace, m.Hello.Grace = scenetest.Read[time.Duration](s.t, value), scenetest.Read[time.Duration](s.t, value)
	case "doubts": // which leader, of which incarnation
		id, incarnation, _ := strings.Cut(value, "/")
		m.Election.Suspect, m.Election.Incarnation = scenetest.Read[wire.ID](s.t, id), scenetest.Read[wire.Incarnation](s.t, incarnation)
	case "round":
		m.Election.Round = scenetest.Read[uint8](s.t, value)
	case "request":
		m.Vote.Ballot, m.Vote.Number = wire.BallotRequest, scenetest.Read[uint32](s.t, value)
	case "withdraw":
		m.Vote.Ballot, m.Vote.Number = wire.BallotWithdraw, scenetest.Read[uint32](s.t, value)
	case "sequence": // so many before
		m.Sequence -= scenetest.Read[wire.Sequence](s.t, value)
	case "number":
		m.Grant.Number = scenetest.Read[uint32](s.t, value)
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
		return false
	}
	return true
}
