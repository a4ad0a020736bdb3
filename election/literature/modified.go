package literature

import (
	"time"

	"topdog/election"
	"topdog/wire"
)

// modified is the O(n) bully algorithm of Kuang, Schildt, Sørensen and Johansen,
// "Leader Election: Improving the Bully Algorithm" (Aarhus University), who took it
// from Soundarabai and others, "Improved Bully Election Algorithm for Distributed
// Systems" (2014). Of all boards that answer, only the highest holds another election.
//
// It assumes what the bully algorithm does (see bully), and that every board has
// an election flag, which forbids elections while it is set, and a variable for
// the coordinator (assumptions 11 and 12).
//
//   - A. A board that notices that the coordinator is gone sends HALT to all others, which set
//     their flags, and forgets the coordinator (steps 1b and 1c). Then it sends
//     ELECTION to all boards of higher rank (step 1a).
//   - B. These answer OK, which is ANSWER here (step 2a). The sender keeps the highest of
//     them in its coordinator variable (steps 2b and 2c). If nobody answers within
//     the time limit T, it wins (step 1d).
//   - C. After T it sends START to the highest, which then holds its own election.
//   - D. The highest asks the boards above itself in the same way (step 2d).
//   - E. A board that nobody answers proclaims itself with COORDINATOR (step 2e). All enter
//     it in their variables and clear their flags (step 2f).
//   - Step 3. A board that recovers holds an election.
//
// Its messages are HALT, ELECTION, ANSWER, START and COORDINATOR. With n boards,
// including the dead coordinator, it takes 3n-4 of them at worst, when the lowest board
// notices. (HALT and START do not count.) A takeover lasts 2T, twice as long as the
// bully's, unless the highest board notices, or all do.
//
// What is ours:
//
//   - A flag is cleared after some time even if no COORDINATOR comes, since the board that
//     held the election may have died (haltFor).
//   - In the paper, one board notices. If two do at once, and halt each other, the
//     election of the higher rank goes on and the other one gives way.
//   - A board that has sent START and hears no COORDINATOR begins again.
//   - A leader that gets START goes on leading while it holds its election, and
//     a living leader of lower rank hands over first, as with bully.
type modified struct {
	plain
	// coordinator is the coordinator variable during an election: the highest rank that
	// has answered. Afterwards it is Board.Leader.
	coordinator election.Rank
	haltedUnder wire.ID       // the leader when the flag was set
	halter      election.Rank // the board that set it
}

func newModified(b *election.Board) election.Algorithm { return &modified{plain: plain{b}} }

// flagCleared is the deadline at which the election flag is cleared.
const flagCleared = election.OwnDeadline

// ElectionDuration is T before START, and T after it.
func (b *modified) ElectionDuration() time.Duration { return 2 * b.AnswerTimeout() }

// Step does what the steps of the paper say.
func (b *modified) Step(e election.Event) (done bool) {
	switch e.Kind {
	case election.EventTurn: // A
		b.stand(e.Reason)
	case election.EventJoined: // 3
		b.stand(election.ReasonJoining)
	case election.EventLeader:
		// 2f, if the leader is a new one: its COORDINATOR was lost, or is just being received.
		if b.Leader() != b.haltedUnder {
			b.ClearDeadline(flagCleared)
		}
		b.challenge()
	case flagCleared:
		b.challenge()
	case election.AnswersDue, election.EventAddressFree: // C, E
		b.conclude()
	case election.CoordinatorDue: // the end of the wait after C
		if !b.followsLivingLeader() {
			b.initiate() // START was lost, or its receiver has died
		}
	case election.EventMessage:
		b.receive(e.Message)
	}
	return false
}

// receive receives the messages of A to E.
func (b *modified) receive(m *wire.Message) {
	switch m.Type {
	case wire.TypeHalt:
		b.halt(m)
	case wire.TypeElection:
		b.election(m)
	case wire.TypeAnswer:
		b.answer(m)
	case wire.TypeStart:
		b.start(m)
	case wire.TypeCoordinator: // 2f
		if m.Coordinator.Coordinator == m.Sender && b.halted() {
			b.ClearDeadline(flagCleared)
			b.challenge()
		}
	}
}

// stand begins an election. If the flag is set, the turn is postponed until the flag is cleared.
func (b *modified) stand(reason election.Reason) {
	if b.halted() {
		if b.isListener() {
			b.BecomeFollower(wire.Nobody, reason)
		}
		b.Postpone(b.Deadline(flagCleared).At - b.Now())
		return
	}
	b.standForElection(reason, b.initiate)
}

// challenge is step 3 for a board that finds in another way that the leader has a lower rank.
func (b *modified) challenge() {
	if b.isFollower() && b.Supersedes(b.Leader()) {
		b.stand(election.ReasonOutranks)
	}
}

// initiate is A, for a board that nobody has told to hold an election.
func (b *modified) initiate() {
	b.Tell(nil, wire.Message{
		Header: wire.Header{Type: wire.TypeHalt},
		Halt:   wire.Halt{Suspect: b.Leader()},
	})
	b.holdElection()
}

// holdElection is steps 1c and 1a, and D for a board that got START. By then, the others
// are halted.
func (b *modified) holdElection() {
	b.ClearDeadline(flagCleared)
	b.coordinator = election.Rank{}
	if !b.askHigher() {
		b.won()
	}
}

// conclude is C, or E if nobody has answered within T.
func (b *modified) conclude() {
	if b.coordinator.ID == wire.Nobody {
		b.won()
		return
	}
	b.Send(b.coordinator.ID, round(wire.TypeStart, uint32(b.Round())))
	if b.isCandidate() {
		b.awaitCoordinator()
	}
}

// halt is step 1b. A board that holds an election itself gives way to a higher
// rank only.
func (b *modified) halt(m *wire.Message) {
	if b.isCandidate() && !b.outrankedBy(m) {
		return
	}
	// A board whose START never arrives says HALT for ever. Only a higher rank prolongs a
	// flag that is set, so that the others get their turn.
	if from := b.RankOf(&m.Header); !b.halted() || b.Above(from, b.halter) {
		b.SetDeadline(flagCleared, b.Now()+b.haltFor())
		b.haltedUnder, b.halter = b.Leader(), from
	}
	if b.isCandidate() {
		b.BecomeFollower(b.Leader(), election.ReasonOutranked)
	}
}

// haltFor is how long the flag stays set without a COORDINATOR: T until START is
// sent, the time that its sender then waits for a COORDINATOR, and T more, so that the
// sender begins again before the others.
func (b *modified) haltFor() time.Duration { return 4*b.AnswerTimeout() + b.Interval() }

// halted is the election flag.
func (b *modified) halted() bool { return b.Deadline(flagCleared).Ahead(b.Now()) }

// election is step 2a. It concerns only boards of higher rank. They do not hold elections
// of their own until they are told to, which saves most of the bully's messages. A
// board that still listens has not recovered yet, and could not begin when it is told.
func (b *modified) election(m *wire.Message) {
	if !b.isListener() && b.eligible() && b.Above(b.Rank(), b.RankOf(&m.Header)) {
		b.sayOK(m)
	}
}

// answer is steps 2b and 2c.
func (b *modified) answer(m *wire.Message) {
	from := b.RankOf(&m.Header)
	if b.outrankedBy(m) && b.Above(from, b.coordinator) {
		b.coordinator = from
	}
}

// start is D. The flag does not forbid this election: it keeps others from holding one.
func (b *modified) start(m *wire.Message) {
	if !b.eligible() || b.outrankedBy(m) {
		return
	}
	switch b.Role() {
	case election.Follower:
		if b.halted() || !b.AwaitsSuccessor() {
			b.BecomeCandidate(election.ReasonCalledUpon)
			b.holdElection()
		}
	case election.Leader:
		if !b.Deadline(election.AnswersDue).Set {
			b.holdElection()
		}
	}
}
