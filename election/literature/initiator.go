package literature

import (
	"time"

	"topdog/election"
	"topdog/wire"
)

// initiator is what minid and candidates have in common, and what differs from the
// bully: a board that gets an ELECTION answers OK, and does nothing else. The board
// that has sent the ELECTION, the initiator, collects the answers. It names the
// winner in a COORDINATOR to all. So there is one election, and not one for each
// board that hears of it.
//
// The papers leave some cases open. What we do in them is ours, and costs none of the
// messages that the papers count.
//
//   - The named board is dead, or does not get the message. So nobody follows
//     it because of the initiator's message alone: boards wait for its first heartbeat.
//     If none comes, they hold another election.
//   - Several boards notice at once. Each waits a moment for each board of higher
//     rank. A board that hears an ELECTION holds none of its own until that one is
//     over. Of two initiators, the lower one gives up. If the lower one has not heard the
//     higher one, the board that it names may have. Then that board does not lead,
//     since the higher initiator is about to.
//   - The coordinator has not failed at all. It answers an ELECTION with its
//     HEARTBEAT, and a named board does not lead if it has heard the
//     coordinator since it got the ELECTION.
//   - A board that stood still while it led asks before it claims.
type initiator struct {
	plain
	asking       bool             // this candidate has sent ELECTION and collects the answers
	first        wire.ID          // of the boards that have answered, the first in rank, or Nobody
	calledAt     election.Instant // when the last ELECTION of another board came
	followedThen wire.ID          // the leader of this board at that time
	// outrankedUntil is when the election of a board of higher rank is over.
	outrankedUntil election.Instant

	enteredAt election.Instant // when this board had listened
}

// TurnDelay is the grace for each board that comes before this one in the succession:
// enough for its COORDINATOR to be heard.
func (e *initiator) TurnDelay() time.Duration {
	return time.Duration(e.Succession()) * e.Grace()
}

// standBack leaves the election to another board, until it has named the winner.
func (e *initiator) standBack() { e.stay(e.backOff()) }

// backOff is how long an election of another board lasts, until its winner is heard.
func (e *initiator) backOff() time.Duration { return e.AnswerTimeout() + e.Interval() }

// await gives the winner the time to be heard. A living leader may have to hand over
// to it first.
func (e *initiator) await() { e.stay(e.Interval()) }

func (e *initiator) stay(by time.Duration) {
	switch e.Role() {
	case election.Follower:
		e.Postpone(by + e.TurnDelay())
	case election.Listener:
		e.KeepListening(by)
	}
}

// waitsInTurn makes a board a follower that has listened in vain but is not the
// first in the succession, or may not lead. It reports whether it did. At a cold
// start all have listened for equally long, and the first is about to find out
// whether the address is free.
func (e *initiator) waitsInTurn(reason election.Reason) bool {
	if !e.isListener() || e.eligible() && e.Succession() == 0 {
		return false
	}
	e.enters()
	e.BecomeFollower(wire.Nobody, reason)
	e.standBack()
	return true
}

// enters notes that this board takes part from now on.
func (e *initiator) enters() { e.enteredAt = e.Now() }

// obvious reports whether it is clear that the coordinator has failed, so that the
// next board may claim without asking. It is not clear to a board that was not running
// for a while, or that has waited in vain for a successor to proclaim itself.
func obvious(reason election.Reason) bool {
	return reason != election.ReasonSuspended && reason != election.ReasonNoLeader
}

// stand makes this board a candidate that has not asked anybody.
func (e *initiator) stand(reason election.Reason) {
	if e.isListener() {
		e.enters()
	}
	e.BecomeCandidate(reason)
	e.stopAsking()
}

func (e *initiator) stopAsking() { e.asking, e.first = false, wire.Nobody }

// cutOff forgets the election. By the time that the link is back the predecessor may be
// there again.
func (e *initiator) cutOff() {
	e.stopAsking()
	e.outrankedUntil = 0
	e.SetPredecessor(wire.Nobody)
}

// ask calls upon boards in a round, and gives them the time limit T to say OK.
func (e *initiator) ask(round uint8, audience []wire.ID) {
	e.asking, e.first = true, wire.Nobody
	e.CallElection(round, audience, e.AnswerTimeout())
}

// missedAnswers reports whether this board was not running while it collected the answers.
func (e *initiator) missedAnswers() bool { return e.asking && e.Round() == 0 }

// calledUpon does what both algorithms do when they get the ELECTION of another board. It
// reports whether this board outranks the initiator and may lead, so that its answer is wanted.
func (e *initiator) calledUpon(m *wire.Message) bool {
	outranked := m.Priority > 0 && e.outrankedBy(m)
	e.calledAt, e.followedThen = e.Now(), e.Leader()
	if outranked {
		e.outrankedUntil = e.Now() + e.backOff()
	}
	switch {
	case e.isLeader():
		if !e.HeartbeatOverdue() { // otherwise there may be a new leader that it has not heard yet
			e.Reply()
		}
		return false
	case e.isListener() && m.Election.Suspect != wire.Nobody:
		return false // the others need not wait for this board to find out whether the address is free
	case e.isCandidate() && outranked:
		e.resume(e.Leader(), election.ReasonOutranked)
	}
	return !outranked && e.eligible()
}

// resume makes a candidate a follower again, and keeps the predecessor.
func (e *initiator) resume(leader wire.ID, reason election.Reason) {
	predecessor := e.Predecessor()
	e.stopAsking()
	e.BecomeFollower(leader, reason)
	if leader == wire.Nobody {
		e.SetPredecessor(predecessor)
	}
}

// lostIncumbent reports whether this candidate has asked nobody because a leader of lower rank was to
// hand over, and that leader has fallen silent. Another board may be about to claim as well.
func (e *initiator) lostIncumbent() bool {
	return !e.asking && e.joins() && e.Now() >= e.SuspectAt()
}

// joins reports whether this candidate holds its election against a leader that lives.
func (e *initiator) joins() bool {
	return e.Cause() == election.ReasonJoining || e.Cause() == election.ReasonOutranks
}

// answer receives an OK.
func (e *initiator) answer(m *wire.Message) {
	r := e.RankOf(&m.Header)
	if !e.isCandidate() || !e.asking || !r.Eligible() || !e.Above(r, e.Rank()) {
		return
	}
	if p, known := e.Peer(e.first); !known || e.Above(r, p.Rank()) {
		e.first = m.Sender
	}
}

// nominate ends an election that boards of higher rank have answered: the first
// of them is the new coordinator, and this board tells everybody.
func (e *initiator) nominate(candidates []wire.ID) {
	winner, leader := e.first, wire.Nobody
	if !e.SuspectsLeader() {
		leader = e.Leader() // it lives, and will hand over
	} else {
		e.DeclareDead(e.Leader()) // it did not object
	}
	e.resume(leader, election.ReasonNamedAnother)
	e.Tell(nil, wire.Message{
		Header: wire.Header{Type: wire.TypeCoordinator},
		Coordinator: wire.Coordinator{
			Coordinator: winner, Interval: e.Interval(), Candidates: candidates,
		},
	})
	e.await()
}

// named receives a COORDINATOR with which an initiator names the winner.
func (e *initiator) named(m *wire.Message) {
	winner := m.Coordinator.Coordinator
	mine := winner == e.ID()
	switch {
	case m.Leading || winner == m.Sender: // a leader names nobody but itself
	case e.isLeader() && mine:
		e.Reply() // the initiator has not heard it
	case e.isLeader() && e.Outranks(winner):
		// Kabashi, step 6. It makes the winner release the address, if it has acquired it.
		e.Proclaim()
	case e.isLeader():
		// The winner asks this board to hand over, or the two settle it as rivals.
	case mine && e.eligible() && e.Now() >= e.outrankedUntil:
		e.elected()
	case e.isCandidate() && e.asking && e.Outranks(winner):
		// The winner stands back for the election of this board, which goes on.
	case e.isCandidate():
		e.resume(e.Leader(), election.ReasonNamedAnother)
		e.await()
	default:
		e.await()
	}
}

// elected makes the board that was named the leader. The initiator has sent the
// COORDINATOR; a heartbeat says that it was heard, see election.Board.BecomeLeader.
func (e *initiator) elected() {
	if e.refuted() {
		return
	}
	if e.isCandidate() {
		e.stopAsking()
		e.ClearDeadline(election.AnswersDue)
		e.SetCause(election.ReasonElected)
	} else {
		e.stand(election.ReasonElected)
	}
	e.won()
}

// refuted reports whether this board has heard something since it got the ELECTION that
// speaks against the initiator: the coordinator lives, or it has handed over to another
// board. A living coordinator of lower rank does not: it is asked
// to hand over, see election.Board.Claim.
func (e *initiator) refuted() bool {
	if e.Leader() == wire.Nobody {
		return e.followedThen != wire.Nobody
	}
	p, known := e.Peer(e.Leader())
	return known && p.Leading && p.LastHeard > e.calledAt && !e.Supersedes(e.Leader())
}
