package literature

import (
	"time"

	"topdog/election"
	"topdog/wire"
)

// score is the bully algorithm over a score that need not be the id, as a program in
// the agent language ASTRA has it. The score is the configured priority, the age of the
// daemon, or a number that a command of the owner's prints (see election.ScoreSource).
//
// It assumes that the agents know all participants, that each knows its own score,
// and that a message and its answer take less than the deadline of 2 s.
//
//  1. The rule +!bully_election: an agent that notices that the coordinator is gone
//     is holding an election from then on. It drops its belief about the leader and
//     sends elect, with its name and score, to all participants.
//  2. It waits for the deadline. If it is still holding the election then, it sends
//     elected to all participants: nobody overrode it.
//  3. The rule for elect: an agent of a greater score than the sender answers ok, and holds an
//     election of its own unless it is holding one.
//  4. The rule for ok: the agent is not holding the election any more.
//  5. The rule for elected: the agent believes that the sender is the leader.
//
// Its messages are elect, ok and elected: ELECTION with a score, ANSWER and COORDINATOR
// here. elect goes to everybody, since nobody knows the scores of the others. So with n
// boards, including the dead coordinator, an election takes (n-1)² ELECTIONs if all the
// others hold one, and (n-1)(n-2)/2 ANSWERs. A takeover lasts 2 s even in a
// small network: nobody can tell the winner that it may stop waiting.
//
// What is ours:
//
//   - Of boards of equal scores, the one of the higher id comes first.
//   - A board that was told ok counts as holding an election until somebody is elected.
//     It waits as long as the other board's deadline lasts, and then holds
//     another election, since the other board may have died.
//   - The program does not say what happens when an agent joins with a greater score
//     than the leader's, or when its score becomes greater. Here it holds an election (outgrown).
//   - A leader that gets an elect goes on leading while it holds its election, and a
//     living leader of a lower score hands over first, as with bully.
//   - A board that hears a leader of a greater score when its own deadline ends follows
//     that leader, and does not claim.
type score struct{ plain }

func newScore(b *election.Board) election.Algorithm { return &score{plain{b}} }

// scoreDeadline is how long an election lasts. It is the program's constant, and does
// not depend on the heartbeat interval.
const scoreDeadline = 2 * time.Second

// byScore is the order of score. The priority only says which boards may lead at all.
func byScore(a, b election.Rank) bool {
	if a.Score != b.Score {
		return a.Score > b.Score
	}
	return a.ID > b.ID
}

// ElectionDuration is the deadline.
func (s *score) ElectionDuration() time.Duration { return scoreDeadline }

// Step does what the rules of the program say.
func (s *score) Step(e election.Event) (done bool) {
	switch e.Kind {
	case election.EventTurn: // 1
		s.standForElection(e.Reason, s.holdElection)
	case election.EventJoined:
		if s.outgrown() {
			s.standForElection(election.ReasonJoining, s.holdElection)
		}
	case election.EventLeader:
		// If scores are ages, only a board that joins compares them: all ages grow alike, but they travel as whole
		// seconds, so of two ages that differ by less, sometimes one seems larger and sometimes the other.
		if s.Config().ScoreSource != election.ScoreFromAge && s.outgrown() {
			s.standForElection(election.ReasonOutranks, s.holdElection)
		}
	case election.EventQuery:
		// A HEARTBEAT does not tell the score, by which the board that joins knows whether to hold an election.
		if s.isLeader() && e.Message.Query.Round > 0 {
			s.SayHello(e.Message.Sender)
		}
	case election.AnswersDue: // 2
		s.conclude()
	case election.EventAddressFree:
		if !s.waits() {
			s.conclude()
		}
	case election.CoordinatorDue: // the end of the wait in 4
		if !s.isCandidate() || !s.followsLivingLeader() {
			s.holdElection()
		}
	case election.EventMessage:
		switch e.Message.Type {
		case wire.TypeElection:
			s.elect(e.Message)
		case wire.TypeAnswer:
			s.ok()
		}
	}
	return false
}

// conclude is rule 2.
func (s *score) conclude() {
	if !s.isCandidate() || !s.followsLivingLeader() {
		s.won()
	}
}

// outgrown reports whether this board is known to have a higher score than the leader.
func (s *score) outgrown() bool {
	leader, known := s.Peer(s.Leader())
	return known && leader.ScoreKnown && s.Supersedes(s.Leader())
}

// holdElection is rule 1, for a candidate or for a leader that got an elect.
func (s *score) holdElection() { s.CallElection(s.Round()+1, nil, scoreDeadline) }

// holding reports whether this board holds an election that nobody has overridden.
func (s *score) holding() bool {
	switch s.Role() {
	case election.Candidate:
		return !s.Deadline(election.CoordinatorDue).Set
	case election.Leader:
		return s.Deadline(election.AnswersDue).Set
	default:
		return false
	}
}

// elect is rule 3. A board that still listens is no participant yet: to wait for its
// election would take longer than to let it take over the lead when it has joined.
func (s *score) elect(m *wire.Message) {
	switch outranked := s.outrankedBy(m); {
	case s.isCandidate() && m.Priority > 0 && outranked:
		// Ours: the sender listened when this board sent its elect, so it has not heard that. A
		// board that gets an elect with a higher score need not wait for an ok.
		s.ok()
		return
	case s.isListener(), !s.eligible(), outranked:
		return
	}
	s.sayOK(m)
	switch {
	case s.AwaitsSuccessor():
	case s.isFollower():
		s.standForElection(election.ReasonCalledUpon, s.holdElection)
	case s.isLeader() && !s.holding():
		s.holdElection()
	}
}

// ok is rule 4. Its sender has compared the scores, so this board need not know them.
func (s *score) ok() {
	if !s.holding() {
		return
	}
	s.ClearDeadline(election.AnswersDue)
	if s.isCandidate() {
		s.SetDeadline(election.CoordinatorDue, s.Now()+s.electedWithin())
	}
}

// electedWithin is how long a board that was told ok waits for elected: the deadline of
// the other board, and the time that a living leader needs to hand over to it.
func (s *score) electedWithin() time.Duration {
	return scoreDeadline + election.HandoverRequests*s.AnswerTimeout()
}
