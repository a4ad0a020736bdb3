package sim

import (
	"fmt"
	"strings"
	"time"

	"topdog/wire"
)

// Text writes an event as one line. Heartbeats and HELLOs are written like all others;
// who does not want to see them leaves them out.
func (e Event) Text() string {
	at := fmt.Sprintf("%12s %4s ", milliseconds(e.At), e.Board.Label)
	if e.Message == nil {
		return at + " " + e.What
	}
	to := "all"
	if e.To != wire.Nobody {
		to = e.To.String()
	}
	return at + "   > " + to + ": " + body(e.Message)
}

// milliseconds writes a time with the precision that matters here.
func milliseconds(d time.Duration) string {
	return fmt.Sprintf("%.1fms", float64(d)/float64(time.Millisecond))
}

// body writes the part of a message that matters to people.
func body(m *wire.Message) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%v term %d", m.Type, m.Term)
	switch m.Type {
	case wire.TypeElection:
		fmt.Fprintf(&b, " suspect %v round %d", m.Election.Suspect, m.Election.Round)
	case wire.TypeAnswer:
		if m.Answer.Leader == wire.Nobody {
			b.WriteString(" I am alive")
		} else {
			fmt.Fprintf(&b, " heard %v %s ago", m.Answer.Leader, milliseconds(m.Answer.Age))
		}
	case wire.TypeCoordinator:
		fmt.Fprintf(&b, " leader %v", m.Coordinator.Coordinator)
	case wire.TypeResign:
		fmt.Fprintf(&b, " successor %v", m.Resign.Successor)
	case wire.TypeQuery:
		if m.Query.Purpose == wire.PurposeHandover {
			b.WriteString(" hand over to me")
		}
	case wire.TypeHeartbeat:
		if m.Reply {
			b.WriteString(" in reply")
		}
	case wire.TypeHello:
		fmt.Fprintf(&b, " following %v", m.Hello.Following)
	}
	return b.String()
}
