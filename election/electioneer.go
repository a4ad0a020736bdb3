package election

import (
	"time"

	"topdog/wire"
)

// electioneer is what minid and candidates have in common, and what sets them
// apart from the bully: whoever is called upon says OK and leaves it at that. The
// board that has called, the electioneer, collects the answers and names the
// winner in a COORDINATOR that everybody gets. So there is one election, not one
// per board that hears of it.
//
// What the papers leave open, and what is done about it here. None of it costs a
// message of those that they count.
//
//   - The board that was named is dead or does not hear of it. Nobody follows it on
//     the electioneer's word: boards wait for its first heartbeat, and if none
//     comes, they hold another election.
//   - Several boards notice at once. Each waits a moment per board of higher rank,
//     who hears an ELECTION holds none of its own until that one is over, and of
//     two electioneers the lower one gives up.
//   - The coordinator has not failed at all. It answers an ELECTION with its
//     HEARTBEAT, and a board that was named does not lead if it has heard the
//     coordinator since it was called upon.
//   - A board that overslept while it led asks before it claims.
type electioneer struct {
	plain
	asking   bool    // this candidate has sent ELECTION and collects the answers
	first    wire.ID // of the boards that have answered, the first in rank, or Nobody
	calledAt Instant // when the last ELECTION of another board came
	reign    wire.ID // whom this board followed at that time

	enteredAt Instant // when this board had listened
}

// bullies: the first in rank always leads, in one order of ranks or the other.
func (e *electioneer) bullies() bool { return true }

// patience is none for the first in the succession, and the grace for each board
// before all others: enough for its COORDINATOR to be heard.
func (e *electioneer) patience() time.Duration {
	return time.Duration(e.succession()) * Grace(e.cfg.Interval)
}

// standBack leaves the election to another board, until it has named the winner.
func (e *electioneer) standBack() { e.stay(e.answerWithin() + e.cfg.Interval) }

// await gives the winner the time to be heard. It may have to have a living leader
// hand over first.
func (e *electioneer) await() { e.stay(e.cfg.Interval) }

func (e *electioneer) stay(by time.Duration) {
	switch e.role {
	case Follower:
		e.postpone(by + e.patience())
	case Listener:
		e.alarms[alarmListen] = max(e.alarms[alarmListen], e.now+by)
	}
}

// waitsInTurn makes a board a follower that has listened in vain but is not the
// first in the succession, or may not lead. It reports whether it did. At a cold
// start all have listened for equally long, and the first is about to find out
// whether the address is free.
func (e *electioneer) waitsInTurn(reason Reason) bool {
	if e.role != Listener || e.rank().Eligible() && e.succession() == 0 {
		return false
	}
	e.enters()
	e.becomeFollower(wire.Nobody, reason)
	e.standBack()
	return true
}

// enters notes that a board takes part from now on.
func (e *electioneer) enters() { e.enteredAt = e.now }

// obvious reports whether it is clear that the coordinator has failed, so that who
// comes next may claim without asking. It is not to a board that was not running
// for a while, or that has waited in vain for a successor to proclaim itself.
func obvious(reason Reason) bool {
	return reason != ReasonSuspended && reason != ReasonNoLeader
}

// stand makes a board a candidate that has not asked anybody.
func (e *electioneer) stand(reason Reason) {
	if e.role == Listener {
		e.enters()
	}
	e.becomeCandidate(reason)
	e.reset()
}

func (e *electioneer) reset() { e.asking, e.first = false, wire.Nobody }

func (e *electioneer) left() {
	e.reset()
	e.absent = wire.Nobody // by the time that the link is back it may be there again
}

// ask calls upon boards, and gives them the time limit T to say OK.
func (e *electioneer) ask(audience []wire.ID) {
	e.asking, e.first = true, wire.Nobody
	e.round++
	e.sendElection(audience)
	e.alarms[alarmAsk] = e.now + e.answerWithin()
}

// calledUpon takes in the ELECTION of another board as far as that is the same
// in both algorithms. It reports whether this board outranks the electioneer and
// may lead, so that its answer is wanted.
func (e *electioneer) calledUpon(m *wire.Message) bool {
	asker := e.rankOf(&m.Header)
	// Core.above asks the algorithm for its order; the plain one is always by rank.
	outranked := asker.Eligible() && e.Core.above(asker, e.rank())
	e.calledAt, e.reign = e.now, e.leader
	switch {
	case e.role == Leader:
		// If a heartbeat is overdue this process was late, and what came meanwhile is
		// still to be taken in: perhaps there is a new leader.
		if e.alarms[alarmHeartbeat] > e.now {
			e.reply()
		}
		return false
	case e.role == Listener && m.Election.Suspect != wire.Nobody:
		return false // the others need not wait for this board to find out whether the address is free
	case e.role == Candidate && outranked:
		e.resume(e.leader, ReasonOutranked)
	}
	return !outranked && e.rank().Eligible()
}

// resume makes a candidate a follower, which remembers whose failure this is all about.
func (e *electioneer) resume(leader wire.ID, reason Reason) {
	absent := e.predecessor()
	e.reset()
	e.becomeFollower(leader, reason)
	if leader == wire.Nobody {
		e.absent = absent
	}
}

// answer takes in an OK.
func (e *electioneer) answer(m *wire.Message) {
	r := e.rankOf(&m.Header)
	if e.role != Candidate || !e.asking || !r.Eligible() || !e.Core.above(r, e.rank()) {
		return
	}
	if p := e.roster.Peer(e.first); p == nil || e.Core.above(r, p.Rank()) {
		e.first = m.Sender
	}
}

// nominate ends an election that boards of higher rank have answered: the first
// of them is the new coordinator, and this board tells everybody.
func (e *electioneer) nominate(candidates []wire.ID) {
	winner, leader := e.first, wire.Nobody
	if !e.suspicious() {
		leader = e.leader // it lives, and will hand over
	} else if p := e.roster.Peer(e.leader); p != nil {
		p.Gone = true // it did not object
	}
	e.resume(leader, ReasonNamedAnother)
	e.tell(nil, wire.Message{
		Header: wire.Header{Type: wire.TypeCoordinator},
		Coordinator: wire.Coordinator{
			Coordinator: winner, Interval: e.cfg.Interval, Candidates: candidates,
		},
	})
	e.await()
}

// named takes in a COORDINATOR with which an electioneer names the winner.
func (e *electioneer) named(m *wire.Message) {
	winner := m.Coordinator.Coordinator
	mine := winner == e.cfg.ID
	switch {
	case m.Leading: // a leader names nobody but itself
	case e.role == Leader && mine:
		e.reply() // the electioneer has not heard it
	case e.role == Leader && e.outranks(winner):
		// Kabashi, step 6. It makes the winner let go if it believed the electioneer.
		e.proclaim()
	case e.role == Leader:
		// The winner has this board hand over, or settles it as a rival.
	case mine && e.rank().Eligible():
		e.elected()
	case e.role == Candidate:
		e.resume(e.leader, ReasonNamedAnother)
		e.await()
	default:
		e.await()
	}
}

// elected makes the board that was named the leader. The electioneer has sent the
// COORDINATOR; a heartbeat says that it was heard, see Core.becomeLeader.
func (e *electioneer) elected() {
	if e.refuted() {
		return
	}
	if e.role == Candidate {
		e.reset()
		e.alarms.clear(alarmAsk)
		e.cause = ReasonElected
	} else {
		e.stand(ReasonElected)
	}
	e.won()
}

// refuted reports whether what this board has heard since it was called upon speaks
// against the electioneer: the coordinator lives, or it has handed over to another
// board. A living coordinator of lower rank is another matter: it is asked
// to hand over, see Core.claim.
func (e *electioneer) refuted() bool {
	if e.leader == wire.Nobody {
		return e.reign != wire.Nobody
	}
	p := e.roster.Peer(e.leader)
	return p != nil && p.Leading && p.LastHeard > e.calledAt && !e.outranks(e.leader)
}
