package sim

import (
	"fmt"
	"strings"
	"time"

	"topdog/election"
	"topdog/wire"
)

// EventKind says what an event is about.
type EventKind uint8

// The kinds of events.
const (
	EventMessage EventKind = iota // the board sent Message
	EventFault                    // something happened to the board, or to the LAN
	EventAddress                  // it took, released, announced, probed or asked for the address
	EventChange                   // its role or its leader changed
	EventNotice                   // it gave a notice
)

// Event is one line of a trace.
type Event struct {
	At    election.Instant
	Kind  EventKind
	Board *Board // nil if it is about the LAN
	State State  // of the board, after the event
	What  string // for people; empty if the board sent a message
	// Change is set with EventChange, and Notice with EventNotice.
	Change election.Change
	Notice election.Notice
	// Message is set when the board sent one, to To or to all. Of all, it concerned
	// the Audience; nil means everybody. Counted is what it counts as, and Number
	// that of the datagram.
	Message  *wire.Message
	Counted  Kind
	To       wire.ID
	Floating bool // it was sent to the floating address, which To has
	// Broadcast says that it was sent by broadcast as well.
	Broadcast bool
	Audience  []wire.ID
	Number    uint64
}

// State is what a picture shows of a board.
type State struct {
	Running, Plugged, Muted, Frozen, Holding bool

	Role   election.Role
	Leader wire.ID
}

// State returns what a picture shows of the board now.
func (b *Board) State() State {
	return State{
		Running: b.core != nil, Plugged: b.plugged, Muted: b.unheard(), Frozen: b.frozen, Holding: b.holding,
		Role: b.role, Leader: b.leader,
	}
}

// Fate is what becomes of one receiver's copy of a datagram.
type Fate uint8

// The fates.
const (
	FateArrived Fate = iota
	FateWaits        // the receiver is frozen, and takes it in if it goes on
	FateLost         // the wire, or Sim.Loses, lost it
	FateCut          // a cable was out, or the switch or a partition did not let it pass
	FateDead         // no process was there
	FateReplay       // the receiver had it already: a duplicate
)

// Arrival tells what became of one receiver's copy of the datagram Number.
type Arrival struct {
	Number   uint64
	Sent, At election.Instant // At is when it was lost, if it was
	From, To *Board
	Fate     Fate
}

func (s *Sim) arrival(d *datagram, to *Board, fate Fate) {
	if s.Arrivals != nil {
		s.Arrivals(Arrival{Number: d.number, Sent: d.sent, At: s.now, From: d.from, To: to, Fate: fate})
	}
}

// trace tells of an event. Its arguments are formatted only if somebody listens.
func (s *Sim) trace(b *Board, kind EventKind, format string, args ...any) {
	if s.Trace != nil {
		s.tell(Event{Kind: kind, Board: b, What: fmt.Sprintf(format, args...)})
	}
}

// tell tells those who listen of an event that happens now.
func (s *Sim) tell(e Event) {
	if e.At = s.now; e.Board != nil {
		e.State = e.Board.State()
	}
	s.Trace(e)
}

// Text writes an event as one line. Heartbeats and HELLOs are written like all others;
// who does not want to see them leaves them out.
func (e Event) Text() string {
	label := "LAN"
	if e.Board != nil {
		label = e.Board.Label
	}
	at := fmt.Sprintf("%12s %4s ", milliseconds(e.At), label)
	if e.Message == nil {
		return at + " " + e.What
	}
	to := "all"
	if e.To != wire.Nobody {
		to = e.To.String()
	}
	if e.Floating {
		to = "the address, which " + to + " has"
	}
	text := fmt.Sprintf("%s   > %s: %v term %d", at, to, e.Message.Type, e.Message.Term)
	if details := Details(e.Message); details != "" {
		text += " " + details
	}
	return text
}

// milliseconds writes a time with the precision that matters here.
func milliseconds(d time.Duration) string {
	return fmt.Sprintf("%.1fms", float64(d)/float64(time.Millisecond))
}

// Details writes what a message says beyond its type and term, as far as it
// matters to people.
func Details(m *wire.Message) string {
	switch m.Type {
	case wire.TypeElection:
		return fmt.Sprintf("suspect %v round %d", m.Election.Suspect, m.Election.Round)
	case wire.TypeAnswer:
		if m.Answer.Leader == wire.Nobody {
			return "I am alive"
		}
		return fmt.Sprintf("heard %v %s ago", m.Answer.Leader, milliseconds(m.Answer.Age))
	case wire.TypeCoordinator:
		return fmt.Sprintf("leader %v", m.Coordinator.Coordinator)
	case wire.TypeResign:
		return fmt.Sprintf("successor %v", m.Resign.Successor)
	case wire.TypeQuery:
		if m.Query.Purpose == wire.PurposeHandover {
			return "hand over to me"
		}
	case wire.TypeHeartbeat:
		if m.Reply {
			return "in reply"
		}
	case wire.TypeHello:
		return fmt.Sprintf("following %v", m.Hello.Following)
	case wire.TypeRival:
		return fmt.Sprintf("%v, reach %d, leads for %s", m.Rival.Decision, m.Rival.Reach, milliseconds(m.Rival.Age))
	case wire.TypeHalt:
		return fmt.Sprintf("suspect %v", m.Halt.Suspect)
	case wire.TypeStart, wire.TypeAck, wire.TypeCollect:
		return fmt.Sprintf("round %d", m.Round.Number)
	case wire.TypeReport:
		return fmt.Sprintf("round %d: %s", m.Report.Round, standings(m.Report.Standings))
	case wire.TypeLeader:
		return fmt.Sprintf("leader %v", m.Leader.Leader)
	case wire.TypeSupport:
		return fmt.Sprintf("%v, heartbeat %d", m.Support.Leader, m.Support.Heartbeat)
	case wire.TypeVote:
		return fmt.Sprintf("%v %d", m.Vote.Ballot, m.Vote.Number)
	case wire.TypeGrant:
		return fmt.Sprintf("%v, request %d", m.Grant.Candidate, m.Grant.Number)
	case wire.TypePause:
		return fmt.Sprintf("number %d leader %v left %v", m.Pause.Number, m.Pause.Leader, m.Pause.Left)
	case wire.TypeOK:
		return fmt.Sprintf("round %d trusts %v", m.OK.Round, m.OK.Trust)
	}
	return ""
}

func standings(list []wire.Standing) string {
	var words []string
	for _, s := range list {
		words = append(words, fmt.Sprintf("%v=%d", s.ID, s.Priority))
	}
	return strings.Join(words, " ")
}
