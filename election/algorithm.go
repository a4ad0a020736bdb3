package election

import (
	"time"

	"topdog/election/silence"
	"topdog/wire"
)

// Definition is what must be known of an algorithm before it runs.
type Definition struct {
	// New returns the algorithm of one board. It reads and acts through b alone.
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
	// ComparesScores says that ranks are compared by Rank.Score, so messages must tell it.
	ComparesScores bool
}

// Algorithm is what the algorithms differ in: which board claims when the leader is gone,
// and when it may. Its methods run inside a call of the core.
// What only some algorithms need is in the interfaces below.
type Algorithm interface {
	// ElectionDuration is how long an election takes, from the suspicion to the COORDINATOR.
	ElectionDuration() time.Duration
	// TurnDelay is how much longer than the first in the succession this board waits
	// for its turn once the leader is late.
	TurnDelay() time.Duration
	// Turn is called when the leader is late, or gone, and it is this board's turn.
	Turn(reason Reason)
	// Step receives the messages that the core has no use for: ELECTION, ANSWER, those
	// that only some algorithms have, and a COORDINATOR that names another board than its sender.
	Step(m *wire.Message)
	// AddressFree is called when nothing stands between a candidate and the lead any more
	// that Board.MayClaim had found there: nobody has the address, as far as one can find out.
	AddressFree()
	// Expired is called when one of the algorithm's deadlines has come. It is not set any more.
	Expired(d Deadline)
}

// LeaderWatcher is an algorithm that looks at every leader, since it may outrank it.
type LeaderWatcher interface {
	// Joined is called when a board that listened has found a leader.
	Joined()
	// LeaderChanged is called when the leader, or somebody's rank, has changed.
	LeaderChanged()
}

// ProclamationWatcher is an algorithm with something that ends when a leader proclaims itself.
type ProclamationWatcher interface {
	// Proclaimed is called after LeaderChanged, if the leader is a new one.
	Proclaimed()
}

// CandidateLister is an algorithm whose COORDINATORs say who the candidates are.
type CandidateLister interface {
	// Candidates is what a COORDINATOR of this board says.
	Candidates() []wire.ID
	// LearnCandidates receives what one of another board says.
	LearnCandidates(ids []wire.ID)
}

// HeartbeatWatcher is an algorithm whose leader sends something beside its heartbeats.
type HeartbeatWatcher interface {
	// HeartbeatSent is called when the leader has sent a heartbeat on schedule.
	HeartbeatSent()
}

// Inquirer is an algorithm in which a board that joins does not simply ask everybody at
// once who leads.
type Inquirer interface {
	// Inquiry says whom a board asks that has asked so many times, nil being everybody, and
	// for how long it only listens before it asks for the first time.
	Inquiry(asked int) (audience []wire.ID, after time.Duration)
}

// QueryAnswerer is an algorithm that answers the question who leads in its own way.
type QueryAnswerer interface {
	// AnswerQuery reports whether it has answered, so that the core need not.
	AnswerQuery(m *wire.Message) (answered bool)
}

// Resetter is an algorithm with a state that is void when the board is cut off.
type Resetter interface {
	Reset()
}

// Truster is an algorithm that knows which boards the group trusts.
type Truster interface {
	// Trusted lists them in order of their ids.
	Trusted() []wire.ID
}

// electorate is an algorithm in which nobody leads without the votes of a majority. What is known of
// the votes the core asks itself, see voting.
type electorate interface {
	// Elect is called when nothing but the votes stands between this board and the lead.
	Elect(reason Reason)
	// RoleChanged is called when the role has changed, and its state is not filled in yet.
	RoleChanged(from, to Role)
	// Observe sees each message before the core acts on it.
	Observe(m *wire.Message)
	// HeartbeatHeard is called when this board has heard the leader that it follows.
	HeartbeatHeard(m *wire.Message, interval, grace time.Duration)
	// Sending is told of each heartbeat and COORDINATOR of this leader before it is sent, and
	// numbers it. The owner then tells Core.Sent which sequence the packet has got.
	Sending(to wire.ID, m *wire.Message) (number uint32)
	// RivalHeard is called when this leader hears another one, and FormerRivalHeard when it
	// hears a board that has led, or that knows of a higher term.
	RivalHeard(m *wire.Message)
	FormerRivalHeard(m *wire.Message)
	// DuplicateID is told that another board has this board's id.
	DuplicateID()
}

// hooks are the optional interfaces of one algorithm; nil where it does not have them.
type hooks struct {
	leader       LeaderWatcher
	proclamation ProclamationWatcher
	candidates   CandidateLister
	heartbeat    HeartbeatWatcher
	inquiry      Inquirer
	query        QueryAnswerer
	reset        Resetter
	trust        Truster
	electorate   electorate
}

func hooksOf(a Algorithm) (h hooks) {
	h.leader, _ = a.(LeaderWatcher)
	h.proclamation, _ = a.(ProclamationWatcher)
	h.candidates, _ = a.(CandidateLister)
	h.heartbeat, _ = a.(HeartbeatWatcher)
	h.inquiry, _ = a.(Inquirer)
	h.query, _ = a.(QueryAnswerer)
	h.reset, _ = a.(Resetter)
	h.trust, _ = a.(Truster)
	h.electorate, _ = a.(electorate)
	return h
}

// Deadline names a deadline of an algorithm.
type Deadline uint8

// The deadlines of algorithms.
const (
	// AnswersDue is when the answers to an ELECTION must have come. It ends with the role.
	AnswersDue Deadline = iota
	// CoordinatorDue is when a board that has taken over the election of this candidate
	// must have proclaimed itself. It ends with the role.
	CoordinatorDue
	// OwnDeadline is the first of three that an algorithm gives a meaning. They stay
	// whatever the role, until the board is cut off.
	OwnDeadline

	ownDeadlines = 3
)
