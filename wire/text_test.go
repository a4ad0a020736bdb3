package wire

import (
	"fmt"
	"time"
)

// These are the words in which the tests tell of messages. Nothing in the program reads them.

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

func (h *Header) summary() string {
	s := fmt.Sprintf("%v from %v life %08x #%d term %d priority %d %v",
		h.Type, h.Sender, uint32(h.Incarnation), h.Sequence, h.Term, h.Priority, h.Algorithm)
	if h.Grade != GradePassing {
		s += " " + h.Grade.String()
	}
	if h.Leading {
		s += " leading"
	}
	if h.Reply {
		s += " reply"
	}
	return s
}

func (h *Heartbeat) summary() string {
	return fmt.Sprintf("beat %d, next in %v", h.Number, h.Interval) + graceSummary(h.Grace)
}

func (h *Hello) summary() string {
	s := fmt.Sprintf("%q, up %v, follows %v, every %v", h.Name, h.Age, h.Following, h.Interval)
	if h.NoMulticast {
		s += ", hears no multicast"
	}
	if h.Grace > 0 {
		s += fmt.Sprintf(", wishes grace %v", h.Grace)
	}
	s += scoreSummary(h.Score)
	if h.Keys.Signs != 0 {
		s += fmt.Sprintf(", signs with %v", h.Keys.Signs)
	}
	if h.Keys.Also != 0 {
		s += fmt.Sprintf(", accepts %v", h.Keys.Also)
	}
	if h.Settings.Told() {
		s += fmt.Sprintf(", heartbeats every %v, for", h.Settings.Heartbeat)
		for _, addr := range h.Settings.Addresses {
			s += " " + addr.String()
		}
	}
	if h.Program != "" {
		s += fmt.Sprintf(", of version %q", h.Program)
	}
	return s
}

func (r *Resign) summary() string { return fmt.Sprintf("successor %v", r.Successor) }

func (p *Pause) summary() string {
	if p.Leader == Nobody {
		return fmt.Sprintf("number %d, over", p.Number)
	}
	return fmt.Sprintf("number %d, only %v may lead for %v", p.Number, p.Leader, p.Left)
}

// graceSummary describes a grace, if it is not the default.
func graceSummary(grace time.Duration) string {
	if grace == 0 {
		return ""
	}
	return fmt.Sprintf(", grace %v", grace)
}

func (e *Election) summary() string {
	s := fmt.Sprintf("round %d, suspects %v life %08x, heard #%d",
		e.Round, e.Suspect, uint32(e.Incarnation), e.LastHeard)
	if e.NoClaim {
		s += ", may not claim"
	}
	return s + scoreSummary(e.Score)
}

// scoreSummary describes a score, if there is one.
func scoreSummary(score uint32) string {
	if score == 0 {
		return ""
	}
	return fmt.Sprintf(", score %d", score)
}

func (a *Answer) summary() string {
	return fmt.Sprintf("round %d, leader %v life %08x, heard #%d %v ago",
		a.Round, a.Leader, uint32(a.Incarnation), a.LastHeard, a.Age)
}

func (k *Coordinator) summary() string {
	s := fmt.Sprintf("%v leads, beat %d, next in %v", k.Coordinator, k.Number, k.Interval) +
		graceSummary(k.Grace) + scoreSummary(k.Score)
	if len(k.Candidates) > 0 {
		s += ", candidates" + idsSummary(k.Candidates)
	}
	return s
}

// idsSummary writes ids in a row, each after a space.
func idsSummary(ids []ID) (s string) {
	if len(ids) == 0 {
		return " nobody"
	}
	for _, id := range ids {
		s += " " + id.String()
	}
	return s
}

func (q *Query) summary() string { return fmt.Sprintf("round %d, %v", q.Round, q.Purpose) }

func (r *Rival) summary() string {
	return fmt.Sprintf("to %v: %v, reach %d, leads for %v", r.Rival, r.Decision, r.Reach, r.Age)
}

func (s *Support) summary() string {
	return fmt.Sprintf("%v life %08x term %d, heard #%d, voters %08x",
		s.Leader, uint32(s.Incarnation), s.Term, s.Heartbeat, s.Voters)
}

func (v *Vote) summary() string {
	return fmt.Sprintf("%v %d, every %v", v.Ballot, v.Number, v.Interval) + graceSummary(v.Grace) +
		fmt.Sprintf(", voters %08x", v.Voters)
}

func (g *Grant) summary() string {
	return fmt.Sprintf("to %v life %08x, request %d, voters %08x", g.Candidate, uint32(g.Incarnation), g.Number, g.Voters)
}

func (k *Challenge) summary() string {
	return fmt.Sprintf("to %v life %08x, nonce %x", k.Target, uint32(k.Incarnation), k.Nonce)
}

func (p *Proof) summary() string { return fmt.Sprintf("nonce %x", p.Nonce) }

func (h *Halt) summary() string { return fmt.Sprintf("suspects %v", h.Suspect) }

func (r *Round) summary() string { return fmt.Sprintf("round %d", r.Number) }

func (o *OK) summary() string {
	return fmt.Sprintf("round %d, trusts", o.Round) + idsSummary(o.Trust)
}

func (r *Report) summary() string {
	s := fmt.Sprintf("round %d, time %d,", r.Round, r.Timestamp)
	for _, standing := range r.Standings {
		s += fmt.Sprintf(" %v=%d", standing.ID, standing.Priority)
	}
	return s
}

func (l *Leader) summary() string { return fmt.Sprintf("%v leads, time %d", l.Leader, l.Timestamp) }

func (p Purpose) String() string {
	switch p {
	case PurposeJoin:
		return "join"
	case PurposeHandover:
		return "handover"
	default:
		return fmt.Sprintf("purpose %d", uint8(p))
	}
}
