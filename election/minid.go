package election

import (
	"time"

	"topdog/wire"
)

// minid is the algorithm of Kabashi, Zeqiri and Zabeli, "The reduction of number
// messages in election bully algorithm": the smallest id leads, so who comes next
// is known before it is needed, and takes over with one message.
//
// It assumes that messages arrive, within a bounded time; that boards do not
// pause; and that the smallest id that there can be is known. That is 1 here, which a board has only if
// its configuration says so: by default ids are made from addresses.
// Processes need not know each other's ids, says the paper, but must know whether
// theirs is the second smallest: this board looks into its roster of those that
// it has heard lately. A priority matters only if it is 0: then a board never leads.
//
//  1. A board notices that the coordinator has failed.
//     a. If it has the second smallest id, it sends COORDINATOR at once.
//     b. Otherwise it broadcasts ELECTION and waits for answers.
//  2. If nobody answers, it becomes the coordinator and sends COORDINATOR.
//  3. Who receives an ELECTION from a larger id
//     a. sends COORDINATOR if its own is the second smallest,
//     b. and an OK (ANSWER) otherwise.
//  4. The board that asked names the smallest of those that answered in a COORDINATOR.
//  5. A board joins.
//     a. If its id is the smallest possible one, it sends COORDINATOR at once.
//     b. Otherwise it broadcasts QUERY. The coordinator answers (its HEARTBEAT is
//     the message CID of the paper). If it has the larger id, the new board
//     sends COORDINATOR.
//  6. A board that hears a COORDINATOR for a larger id than its own sends COORDINATOR itself.
//
// A broadcast counts as one message. With n live boards an election costs 1 at
// best (1a), and n+1 at worst: the coordinator and the second smallest are both
// gone, and the largest notices; 1 ELECTION, n-1 OK, 1 COORDINATOR. To join
// costs 1 or 3.
//
// What is ours, besides what electioneer says: in the steps 5 and 6 the coordinator
// lives and holds the address, so it is asked to hand over first (see Core.claim).
// For that, board 1 must know it. It does not ask in 5a, it listens for one
// heartbeat: so it joins with the one message of the paper, and asks only if that
// heartbeat does not come.
type minid struct{ electioneer }

// smallestID is the least one that a board can have; 0 is nobody.
const smallestID wire.ID = 1

func (a *minid) number() wire.Algorithm { return wire.AlgorithmMinID }

// above: the smaller id comes first. Who may not lead comes last, whatever its id.
func (a *minid) above(x, y Rank) bool {
	if x.Eligible() != y.Eligible() {
		return x.Eligible()
	}
	return x.ID < y.ID
}

// second reports whether this board has the smallest id of the live boards other
// than the coordinator that has failed: the second smallest of the paper. It
// cannot say so before it had the time to hear of all boards.
func (a *minid) second() bool {
	p := a.roster.Peer(a.predecessor())
	return a.succession() == 0 && p != nil && p.HelloInterval > 0 && a.now-a.enteredAt > p.HelloInterval+a.cfg.Interval
}

// turn is step 1, and at a cold start what comes of step 5 when nobody answers.
func (a *minid) turn(reason Reason) {
	// Who has listened in vain and comes first claims if the address is free.
	cold := a.role == Listener
	switch {
	case a.waitsInTurn(reason), !a.rank().Eligible():
	case cold, a.second() && obvious(reason):
		a.stand(reason)
		a.won() // 1a
	default:
		a.stand(reason)
		a.ask(nil) // 1b
	}
}

func (a *minid) wake(k alarm) {
	switch {
	case k != alarmAsk || a.role != Candidate:
	case a.asking && a.round == 0:
		a.ask(nil) // it overslept, and with it the answers
	case a.first != wire.Nobody:
		a.nominate(nil) // step 4
	default:
		a.won() // step 2
	}
}

func (a *minid) step(m *wire.Message) {
	switch m.Type {
	case wire.TypeElection:
		a.election(m)
	case wire.TypeAnswer:
		a.answer(m)
	case wire.TypeCoordinator:
		a.named(m)
	}
}

// election is step 3.
func (a *minid) election(m *wire.Message) {
	wanted := a.calledUpon(m)
	switch {
	case wanted && a.role == Follower && a.second() && a.believes(m):
		a.stand(ReasonCalledUpon)
		a.won() // 3a
		return
	case wanted:
		a.sayOK(m) // 3b
	}
	a.standBack()
}

// believes reports whether this board has no better evidence of the coordinator
// than the one that says that it has failed. If it has, an OK is
// enough: either the coordinator answers for itself, or this board is named.
func (a *minid) believes(m *wire.Message) bool {
	switch e := &m.Election; {
	case a.leader == wire.Nobody:
		return false // somebody else is about to lead
	case a.now >= a.detector.Freshness():
		return true
	default:
		return a.leader == e.Suspect && a.leaderIncarnation == e.Incarnation && a.lastHeard <= e.LastHeard
	}
}

// joined is step 5, for a board that has heard who the coordinator is.
func (a *minid) joined() {
	a.enters()
	a.supersede(ReasonJoining)
}

// followed is step 6. If the COORDINATOR comes from another board than it names,
// this happens when the named one is heard.
func (a *minid) followed() { a.supersede(ReasonOutranks) }

// supersede takes the lead from a coordinator with a larger id.
func (a *minid) supersede(reason Reason) {
	if a.outranks(a.leader) && a.rank().Eligible() {
		a.stand(reason)
		a.won()
	}
}

// inquiry lets board 1 hear a heartbeat before it asks who leads.
func (a *minid) inquiry() (audience []wire.ID, after time.Duration) {
	if a.cfg.ID == smallestID && a.rank().Eligible() {
		return nil, a.cfg.Interval + Grace(a.cfg.Interval)
	}
	return nil, 0
}
