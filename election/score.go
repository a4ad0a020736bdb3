package election

import (
	"time"

	"topdog/wire"
)

// score is the bully algorithm over an agreed measure of importance, as it is
// written down as a program in the agent language ASTRA. The measure is the configured
// priority, the age of the daemon, or a number that a command of the owner's prints
// (see measure.go).
//
// It assumes that the agents know all participants, that each knows its own score,
// and that a message and its answer take less than the deadline of 2 s.
//
//  1. The rule +!bully_election: an agent that notices that the coordinator is gone
//     is holding an election from then on. It drops its belief about the leader and
//     sends elect, with its name and score, to all participants.
//  2. It waits for the deadline. If it is still holding the election then, it sends
//     elected to all participants: nobody overrode it.
//  3. The rule for elect: whoever matters more than the sender answers ok, and holds an
//     election of its own unless it is holding one.
//  4. The rule for ok: the agent is not holding the election any more.
//  5. The rule for elected: the agent believes that the sender is the leader.
//
// Its messages are elect, ok and elected: ELECTION with a score, ANSWER and COORDINATOR
// here. elect goes to everybody, since nobody knows the scores of the others; so with n
// boards, the dead coordinator among them, an election is (n-1)² ELECTIONs if all the
// others hold one, and (n-1)(n-2)/2 ANSWERs. A takeover lasts 2 s however
// small the network is: the winner has nobody to tell it that it may stop waiting.
//
// What is ours:
//
//   - Of boards that matter equally, the one of the higher id comes first.
//   - A board that was told ok counts as holding an election until somebody is elected.
//     It waits for that as long as the other one's deadline lasts, and then holds
//     another election, since the other one may have died.
//   - The program does not say what happens when an agent comes that matters more than
//     the leader, or begins to. Here it holds an election (outgrown).
//   - A leader that is called upon goes on leading while it holds its election, and a
//     living leader that matters less hands over first, as with bully.
//   - Whoever hears a leader that matters more when its own deadline ends believes
//     that, and not that nobody overrode it.
type score struct{ plain }

// scoreDeadline is how long an election lasts. It is the program's constant, and does
// not depend on the heartbeat interval.
const scoreDeadline = 2 * time.Second

func (s *score) number() wire.Algorithm { return wire.AlgorithmScore }

// above is the order of importance. Who may lead at all is a matter of the priority.
func (s *score) above(a, b Rank) bool {
	if a.Score != b.Score {
		return a.Score > b.Score
	}
	return a.ID > b.ID
}

// patience is none: whoever notices first holds an election.
func (s *score) patience() time.Duration { return 0 }

func (s *score) bullies() bool { return true }

func (s *score) lasts() time.Duration { return scoreDeadline }

func (s *score) turn(reason Reason) {
	if s.standForElection(reason) {
		s.holdElection()
	}
}

func (s *score) joined() {
	if s.outgrown() {
		s.turn(ReasonJoining)
	}
}

// followed is for a board that begins to matter more than the leader. All ages grow
// alike, but they travel as whole seconds, and of two that differ by less now the one is
// larger and now the other. So with that measure only a board that joins compares.
func (s *score) followed() {
	if s.cfg.ScoreSource != ScoreFromAge && s.outgrown() {
		s.turn(ReasonOutranks)
	}
}

// outgrown reports whether this board is known to matter more than the leader.
func (s *score) outgrown() bool {
	leader := s.roster.Peer(s.leader)
	return leader != nil && leader.ScoreKnown && s.outranks(s.leader)
}

// query has the leader tell a board that joins how much it matters, which a HEARTBEAT
// does not, so that it knows whether to hold an election.
func (s *score) query(m *wire.Message) {
	if s.role == Leader && m.Query.Round > 0 {
		s.sayHello(m.Sender)
	}
	s.plain.query(m)
}

// holdElection is rule 1, for a candidate or for a leader that was called upon.
func (s *score) holdElection() {
	s.round++
	s.sendElection(nil)
	s.alarms[alarmAsk] = s.now + scoreDeadline
}

// holding reports whether this board is holding an election that nobody has overridden.
func (s *score) holding() bool {
	switch s.role {
	case Candidate:
		return s.alarms[alarmVerdict] == never
	case Leader:
		return s.alarms[alarmAsk] != never
	default:
		return false
	}
}

func (s *score) wake(a alarm) {
	switch {
	case a == alarmAsk && s.role == Leader:
		s.won()
	case s.role != Candidate:
	case s.waits():
		// A probe has ended that no longer matters.
	case s.leaderLives():
		s.becomeFollower(s.leader, ReasonLeaderAlive)
	case a == alarmAsk:
		s.won() // rule 2
	case a == alarmVerdict:
		s.holdElection()
	}
}

func (s *score) step(m *wire.Message) {
	switch m.Type {
	case wire.TypeElection:
		s.elect(m)
	case wire.TypeAnswer:
		s.ok()
	}
}

// elect is rule 3. A board that still listens is no participant yet: to wait for its
// election would take longer than to have it take the lead over when it has joined.
func (s *score) elect(m *wire.Message) {
	from := s.rankOf(&m.Header)
	switch {
	case s.role == Candidate && from.Eligible() && s.above(from, s.rank()):
		// It did not hear this board's election, since it listened then. Who is called
		// by a more important one need not wait for its ok (a mend of ours).
		s.ok()
		return
	case s.role == Listener, !s.rank().Eligible(), s.above(from, s.rank()):
		return
	}
	s.sayOK(m)
	switch {
	case s.awaitsSuccessor():
	case s.role == Follower:
		s.turn(ReasonCalledUpon)
	case s.role == Leader && !s.holding():
		s.holdElection()
	}
}

// ok is rule 4. Who says it has compared the scores, so this board need not know them.
func (s *score) ok() {
	if !s.holding() {
		return
	}
	s.alarms.clear(alarmAsk)
	if s.role == Candidate {
		s.alarms[alarmVerdict] = s.now + s.electedWithin()
	}
}

// electedWithin is how long a board that was told ok waits for elected: the deadline of
// the other one, and the time for a living leader to hand over to it.
func (s *score) electedWithin() time.Duration {
	return scoreDeadline + begTries*s.answerWithin()
}
