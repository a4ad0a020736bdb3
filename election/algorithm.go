package election

import (
	"time"

	"topdog/election/silence"
	"topdog/wire"
)

// Definition is what must be known of an algorithm before it runs.
type Definition struct {
	// New returns the algorithm of one board. Those of package literature read and act through b alone.
	New func(b *Board) Algorithm
	// Detector is the failure detector that suits the algorithm.
	Detector silence.DetectorKind
	// HighestLeads says that the highest rank always takes the lead, so that it cannot
	// give it away.
	HighestLeads bool
	// Order reports whether the rank a comes before b, of two boards that are as fit. nil is the
	// order of most algorithms: the higher priority, then the higher id.
	Order func(a, b Rank) bool
	// votes says that nobody leads without the votes of a majority of Config.Voters.
	votes bool
	// watches says that the board that comes next watches the address of the leader, see Core.Watch.
	watches bool
	// ComparesScores says that ranks are compared by Rank.Score, so messages must tell it.
	ComparesScores bool
}

// Algorithm is what the algorithms differ in: which board claims when the leader is gone,
// and when it may. Its methods run inside a call of the core.
type Algorithm interface {
	// Step tells the algorithm what has happened. done reports that it has done what the core would do otherwise;
	// the kinds of events say which of them have such a default.
	Step(e Event) (done bool)
	// ElectionDuration is how long an election takes, from the suspicion to the COORDINATOR.
	ElectionDuration() time.Duration
	// TurnDelay is how much longer than the first in the succession this board waits
	// for its turn once the leader is late.
	TurnDelay() time.Duration
}

// Event is something of which an algorithm is told.
type Event struct {
	Kind    EventKind
	Reason  Reason        // with EventTurn
	Message *wire.Message // with those that say so
}

// EventKind says what has happened: that a deadline of the algorithm has come, or something else.
type EventKind uint8

// The deadlines of algorithms. One that has come is not set any more.
const (
	// AnswersDue is when the answers to an ELECTION must have come. It ends with the role.
	AnswersDue EventKind = iota
	// CoordinatorDue is when a board that has taken over the election of this candidate
	// must have proclaimed itself. It ends with the role.
	CoordinatorDue
	// OwnDeadline is the first of three that an algorithm gives a meaning. They stay
	// whatever the role, until the board is cut off.
	OwnDeadline

	ownDeadlines = 3
)

// The other events. An algorithm ignores those for which it has no use.
const (
	// EventTurn: the leader is late, or gone, and it is this board's turn.
	EventTurn = OwnDeadline + ownDeadlines + iota
	// EventMessage: a Message has come that the core has no use for, or a COORDINATOR: ELECTION, ANSWER, and
	// those that only some algorithms have.
	EventMessage
	// EventAddressFree: what Board.MayClaim had found between a candidate and the lead is gone.
	// Nobody has the address, as far as one can find out.
	EventAddressFree
	// EventJoined: a board that listened has found a leader.
	EventJoined
	// EventLeader: the leader, or somebody's rank, has changed.
	EventLeader
	// EventHeartbeat: this leader has sent a heartbeat on schedule.
	EventHeartbeat
	// EventProclaim: this leader is about to send Message, a COORDINATOR, which the algorithm may complete.
	EventProclaim
	// EventCandidates: a COORDINATOR, Message, lists candidates. The core has not acted on it yet.
	EventCandidates
	// EventListen: this board begins to listen. It asks at once who leads, see Board.AskLater.
	EventListen
	// EventAsk: a listener is about to send Message, a QUERY. By default it goes to everybody.
	EventAsk
	// EventQuery: a QUERY, Message, asks who leads. By default a leader answers with a heartbeat.
	EventQuery
	// EventCutOff: this board is cut off from the others, so what it has begun with them is void.
	EventCutOff
)

// happens tells the algorithm of an event without a message.
func (c *Core) happens(k EventKind) { c.algorithm.Step(Event{Kind: k}) }

// turn has this board act, since the leader is late or gone.
func (c *Core) turn(reason Reason) { c.algorithm.Step(Event{Kind: EventTurn, Reason: reason}) }
