package literature

import (
	"topdog/election"
	"topdog/wire"
)

// bully is the algorithm of Garcia-Molina, "Elections in a distributed computing
// system" (1982).
//
// It assumes that boards know each other's ids but not who is alive, that
// messages are delivered within a bounded time, and that boards do not pause.
// The steps are numbered as in the report of modified.
//
//  1. A board that notices that the coordinator is gone (a) sends ELECTION to all
//     boards of higher rank. (b) If nobody answers within the time limit T, it wins.
//  2. A board that gets an ELECTION from below (a) sends an ANSWER, which is often called
//     OK, and (b) holds an election of its own unless it holds one already. (c) A board
//     that was answered says no more and waits for a COORDINATOR. (d) The winner
//     proclaims itself with COORDINATOR, which is also called its victory message.
//  3. A board that recovers holds an election, so the highest always wins.
//
// Its messages are ELECTION, ANSWER and COORDINATOR. With n boards, including the dead
// coordinator, it takes n²-n-1 of them at worst, when the lowest board notices. (Messages
// to the dead one count, except COORDINATOR.) It takes n-1 at best, when the
// highest notices, and asks only the dead one. A takeover lasts T.
//
// What is ours:
//
//   - A leader that gets an ELECTION holds its own while it goes on leading. To release
//     the address for an election that it wins would only cost an outage.
//   - A board that was answered and hears no COORDINATOR holds another election. But if it
//     still hears the leader's heartbeats, it follows the leader.
//   - A board that recovers and hears a leader of higher rank, but not its answer,
//     follows that leader.
//   - A living leader of lower rank is asked to hand over before the winner acquires
//     the address (see election.Board.Claim).
type bully struct {
	plain
	calledUponAt election.Instant // when this board last held an election as a leader
}

func newBully(b *election.Board) election.Algorithm { return &bully{plain: plain{b}} }

// Step does what the steps of the paper say.
func (b *bully) Step(e election.Event) (done bool) {
	switch e.Kind {
	case election.EventTurn: // 1
		b.standForElection(e.Reason, b.holdElection)
	case election.EventJoined: // 3
		b.standForElection(election.ReasonJoining, b.holdElection)
	case election.EventLeader:
		if b.Supersedes(b.Leader()) { // 3, for a board that finds in another way that the leader has a lower rank
			b.standForElection(election.ReasonOutranks, b.holdElection)
		}
	case election.AnswersDue: // 1b, 2d
		b.won()
	case election.EventAddressFree:
		if !b.waits() {
			b.won()
		}
	case election.CoordinatorDue: // the end of the wait in 2c
		if !b.followsLivingLeader() {
			b.holdElection() // the board that answered died before it could proclaim itself
		}
	case election.EventMessage:
		switch e.Message.Type {
		case wire.TypeElection:
			b.election(e.Message)
		case wire.TypeAnswer:
			b.answer(e.Message)
		}
	}
	return false
}

// holdElection is step 1a, for a candidate or for a leader that got an ELECTION. Steps 1b
// and 2d follow at once if there is nobody to ask.
func (b *bully) holdElection() {
	b.ClearDeadline(election.CoordinatorDue)
	if !b.askHigher() {
		b.won()
	}
}

// election is steps 2a and 2b. It concerns only boards of higher rank. A board that still
// listens answers too, and holds its election when it has listened.
func (b *bully) election(m *wire.Message) {
	if b.outrankedBy(m) || !b.eligible() || b.AddressInUse() {
		return
	}
	b.sayOK(m)
	switch {
	case b.AwaitsSuccessor():
	case b.isFollower():
		b.standForElection(election.ReasonCalledUpon, b.holdElection)
	case b.isLeader() && !b.Deadline(election.AnswersDue).Set && b.Now()-b.calledUponAt >= b.AnswerTimeout():
		b.calledUponAt = b.Now()
		b.holdElection()
	}
}

// answer is step 2c: a board of higher rank is alive, and takes over the election.
func (b *bully) answer(m *wire.Message) {
	if !b.outrankedBy(m) {
		return
	}
	switch b.Role() {
	case election.Candidate:
		b.awaitCoordinator()
	case election.Leader:
		b.ClearDeadline(election.AnswersDue) // the other board will ask for the lead
	}
}
