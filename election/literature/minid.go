package literature

import (
	"topdog/election"
	"topdog/wire"
)

// minid is the algorithm of Kabashi, Zeqiri and Zabeli, "The reduction of number
// messages in election bully algorithm": the smallest id leads, so the next leader is
// known before it is needed, and takes over with one message.
//
// It assumes that messages arrive, within a bounded time; that boards do not
// pause; and that the smallest possible id is known. That is 1 here. A board has it only if
// its configuration says so: by default, ids are made from addresses.
// According to the paper, processes need not know each other's ids, but must know whether
// theirs is the second smallest: a board looks into its roster of the boards that
// it has heard lately. The priority matters only if it is 0: then a board never leads.
//
//  1. A board notices that the coordinator has failed.
//     a. If it has the second smallest id, it sends COORDINATOR at once.
//     b. Otherwise it broadcasts ELECTION and waits for answers.
//  2. If nobody answers, it becomes the coordinator and sends COORDINATOR.
//  3. A board that receives an ELECTION from a larger id
//     a. sends COORDINATOR if its own id is the second smallest,
//     b. and an OK (ANSWER) otherwise.
//  4. The board that asked names the smallest of those that answered in a COORDINATOR.
//  5. A board joins.
//     a. If its id is the smallest possible one, it sends COORDINATOR at once.
//     b. Otherwise it broadcasts QUERY. The coordinator answers (its HEARTBEAT is
//     the message CID of the paper). If the coordinator has the larger id, the new board
//     sends COORDINATOR.
//  6. A board that hears a COORDINATOR for a larger id than its own sends COORDINATOR itself.
//
// A broadcast counts as one message. With n live boards an election costs 1 at
// best (1a), and n+1 at worst: the coordinator and the second smallest are both
// gone, and the largest notices; 1 ELECTION, n-1 OK, 1 COORDINATOR. To join
// costs 1 or 3.
//
// What is ours, besides what initiator says: in the steps 5 and 6 the coordinator
// lives and holds the address, so it is asked to hand over first (see election.Board.Claim).
// For that, board 1 must know the coordinator. In 5a it listens for one heartbeat, and asks
// only if that does not come. So it joins with the one message of the paper.
type minid struct{ initiator }

// smallestID is the least one that a board can have; 0 is nobody.
const smallestID wire.ID = 1

func newMinID(b *election.Board) election.Algorithm {
	return &minid{initiator{plain: plain{b}}}
}

// bySmallestID is the order of minid.
func bySmallestID(a, b election.Rank) bool { return a.ID < b.ID }

// second reports whether this board has the smallest id of the live boards, apart from
// the coordinator that has failed: the second smallest id of the paper. It is false until
// this board has had the time to hear of all boards.
func (a *minid) second() bool {
	p, known := a.Peer(a.Predecessor())
	return a.Succession() == 0 && known && p.HelloInterval > 0 && a.Now()-a.enteredAt > p.HelloInterval+a.Interval()
}

// Step does what the steps of the paper say.
func (a *minid) Step(e election.Event) (done bool) {
	switch e.Kind {
	case election.EventTurn:
		a.turn(e.Reason)
	case election.AnswersDue, election.EventAddressFree: // 2, 4
		a.conclude()
	case election.EventJoined: // 5, for a board that has heard who the coordinator is
		a.enters()
		a.supersede(election.ReasonJoining)
	case election.EventLeader:
		// 6. If the COORDINATOR comes from another board than it names, this happens when the named board is heard.
		// Ours: when a leader becomes unfit, many boards outrank it at once, and only the first of them acts.
		if leader, _ := a.Peer(a.Leader()); leader.Grade == wire.GradePassing || a.Succession() == 0 {
			a.supersede(election.ReasonOutranks)
		}
	case election.EventListen:
		if a.ID() == smallestID && a.eligible() {
			a.AskLater(a.Interval() + a.Grace()) // it hears a heartbeat first
		}
	case election.EventCutOff:
		a.cutOff()
	case election.EventMessage:
		switch e.Message.Type {
		case wire.TypeElection:
			a.election(e.Message)
		case wire.TypeAnswer:
			a.answer(e.Message)
		case wire.TypeCoordinator:
			a.named(e.Message)
		}
	}
	return false
}

// turn is step 1, and at a cold start the end of step 5 when nobody answers.
func (a *minid) turn(reason election.Reason) {
	// A board that has listened in vain and comes first claims if the address is free.
	cold := a.isListener()
	switch {
	case a.waitsInTurn(reason), !a.eligible():
	case cold, a.second() && obvious(reason):
		a.stand(reason)
		a.won() // 1a
	default:
		a.stand(reason)
		a.ask(1, nil) // 1b
	}
}

// conclude is the steps 2 and 4.
func (a *minid) conclude() {
	switch {
	case a.missedAnswers():
		a.ask(1, nil)
	case a.first != wire.Nobody:
		a.nominate(nil) // step 4
	case a.lostIncumbent():
		a.SetCause(election.ReasonSilence)
		a.ask(1, nil) // 1b
	default:
		a.won() // step 2
	}
}

// election is step 3.
func (a *minid) election(m *wire.Message) {
	wanted := a.calledUpon(m)
	switch {
	case wanted && a.isFollower() && a.second() && a.believes(m):
		a.stand(election.ReasonCalledUpon)
		a.won() // 3a
		return
	case wanted:
		a.sayOK(m) // 3b
	}
	a.standBack()
}

// believes reports whether this board has no newer heartbeat of the coordinator than the initiator,
// which says that the coordinator has failed. If it has, an OK is enough: either the coordinator
// answers for itself, or the initiator names this board.
func (a *minid) believes(m *wire.Message) bool {
	switch e, mine := &m.Election, a.Evidence(); {
	case a.Leader() == wire.Nobody:
		return false // another board is about to lead
	case a.Now() >= a.SuspectAt():
		return true
	default:
		return mine.Leader == e.Suspect && mine.Incarnation == e.Incarnation && mine.LastHeard <= e.LastHeard
	}
}

// supersede takes the lead from a coordinator with a larger id.
func (a *minid) supersede(reason election.Reason) {
	if a.Supersedes(a.Leader()) && a.eligible() {
		a.stand(reason)
		a.won()
	}
}
