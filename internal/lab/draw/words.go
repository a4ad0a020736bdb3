package draw

import (
	"fmt"

	"topdog/election"
	"topdog/internal/lab/sim"
	"topdog/wire"
)

// caption writes a message in few words.
func caption(m *wire.Message) string {
	text := m.Type.String()
	switch m.Type {
	case wire.TypeElection:
		if m.Election.Round > 1 {
			text += fmt.Sprintf(" (%d)", m.Election.Round)
		}
	case wire.TypeAnswer:
		if m.Answer.Leader != wire.Nobody {
			text += ": " + sim.Details(m)
		}
	case wire.TypeCoordinator:
		text += fmt.Sprintf(" %v", m.Coordinator.Coordinator)
	case wire.TypeResign:
		if m.Resign.Successor != wire.Nobody {
			text += fmt.Sprintf(" to %v", m.Resign.Successor)
		}
	case wire.TypeOK:
		text += fmt.Sprintf(": round %d trusts %d boards", m.OK.Round, len(m.OK.Trust))
	case wire.TypeReport:
		text += fmt.Sprintf(" of %d boards", len(m.Report.Standings))
	case wire.TypeLeader:
		text += fmt.Sprintf(" %v", m.Leader.Leader)
	case wire.TypeHalt, wire.TypeHello:
	default:
		if details := sim.Details(m); details != "" {
			text += ": " + details
		}
	}
	return text
}

// brief writes an event in few words. Followers are many, so theirs are the fewest.
func (e *entry) brief() string {
	if e.Kind != sim.EventChange {
		return e.What
	}
	c := e.Change
	switch c.To {
	case election.Follower:
		if c.NewLeader == wire.Nobody {
			return "awaits a leader"
		}
		return fmt.Sprintf("follows %v", c.NewLeader)
	case election.Leader:
		return fmt.Sprintf("leader, term %d: %v", c.Term, c.Reason)
	default:
		return fmt.Sprintf("%v: %v", c.To, c.Reason)
	}
}
