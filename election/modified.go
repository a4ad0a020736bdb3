package election

import (
	"time"

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
//   - A. Who notices that the coordinator is gone sends HALT to all others, which set
//     their flags, and forgets the coordinator (steps 1b and 1c). Then it sends
//     ELECTION to all boards of higher rank (step 1a).
//   - B. These answer OK, which is ANSWER here (step 2a). The sender keeps the highest of
//     them in its coordinator variable (steps 2b and 2c). If nobody answers within
//     the time limit T it wins (step 1d).
//   - C. After T it tells that one, with START, to hold its own election.
//   - D. That one asks those above itself in the same way (step 2d).
//   - E. Whom nobody answers proclaims itself with COORDINATOR (step 2e). All enter
//     it in their variables and clear their flags (step 2f).
//   - Step 3. A board that recovers holds an election.
//
// Its messages are HALT, ELECTION, ANSWER, START and COORDINATOR. With n boards,
// the dead coordinator among them, the worst case is 3n-4 of them, where HALT and START
// are not counted: the lowest notices. A takeover lasts 2T, twice as long as the
// bully's, unless the highest notices or all do.
//
// What is ours:
//
//   - A flag is cleared after some time even if no COORDINATOR comes, since whoever
//     held the election may have died (haltFor).
//   - The paper has one board notice. If two do at once, and halt each other, then the
//     election of the higher rank goes on and the other one gives way.
//   - A board that has said START and hears no COORDINATOR begins again.
//   - A leader that is told START goes on leading while it holds its election, and
//     a living leader of lower rank hands over first, as with bully.
type modified struct {
	plain
	// coordinator is the coordinator variable during an election: the highest rank that
	// has answered. Afterwards it is Core.leader.
	coordinator Rank
	haltedUnder wire.ID // the leader when the flag was set
	halter      Rank    // who set it
}

func (b *modified) number() wire.Algorithm { return wire.AlgorithmModified }

// patience is none: whoever notices first halts the others.
func (b *modified) patience() time.Duration { return 0 }

func (b *modified) bullies() bool { return true }

// lasts is T until START, and T again.
func (b *modified) lasts() time.Duration { return 2 * b.answerWithin() }

// turn begins an election, unless the flag is set: then it comes when the flag is
// cleared, if there is still need.
func (b *modified) turn(reason Reason) {
	if b.halted() {
		if b.role == Listener {
			b.becomeFollower(wire.Nobody, reason)
		}
		b.postpone(b.alarms[alarmHalt] - b.now)
		return
	}
	if b.standForElection(reason) {
		b.initiate()
	}
}

// joined is step 3, and followed the same for a board that finds the leader to
// be of lower rank in another way.
func (b *modified) joined() { b.turn(ReasonJoining) }

func (b *modified) followed() {
	if b.leader != b.haltedUnder {
		b.alarms.clear(alarmHalt) // its COORDINATOR was lost, or is just being taken in
	}
	b.challenge()
}

// challenge holds an election against a leader of lower rank.
func (b *modified) challenge() {
	if b.role == Follower && b.outranks(b.leader) {
		b.turn(ReasonOutranks)
	}
}

// initiate is A, for a board that nobody has told to hold an election.
func (b *modified) initiate() {
	b.tell(nil, wire.Message{
		Header: wire.Header{Type: wire.TypeHalt},
		Halt:   wire.Halt{Suspect: b.leader},
	})
	b.holdElection()
}

// holdElection is steps 1c and 1a, and D for a board that was told START. The others
// are halted by then.
func (b *modified) holdElection() {
	b.alarms.clear(alarmHalt)
	b.coordinator = Rank{}
	higher := b.higher()
	if len(higher) == 0 {
		b.won()
		return
	}
	b.round++
	b.sendElection(higher)
	b.alarms[alarmAsk] = b.now + b.answerWithin()
}

// conclude is C, or E if nobody has answered within T.
func (b *modified) conclude() {
	if b.coordinator.ID == wire.Nobody {
		b.won()
		return
	}
	b.send(b.coordinator.ID, wire.Message{
		Header: wire.Header{Type: wire.TypeStart},
		Round:  wire.Round{Number: uint32(b.round)},
	})
	if b.role == Candidate {
		b.awaitCoordinator()
	}
}

func (b *modified) wake(a alarm) {
	switch {
	case a == alarmHalt:
		b.challenge()
	case b.role == Leader && a == alarmAsk:
		b.conclude()
	case b.role != Candidate:
	case a == alarmVerdict && b.leaderLives():
		b.becomeFollower(b.leader, ReasonLeaderAlive) // its COORDINATOR was lost
	case a == alarmVerdict:
		b.initiate() // START was lost, or its addressee has died
	case a == alarmAsk:
		b.conclude()
	}
}

func (b *modified) step(m *wire.Message) {
	switch m.Type {
	case wire.TypeHalt:
		b.halt(m)
	case wire.TypeElection:
		b.election(m)
	case wire.TypeAnswer:
		b.answer(m)
	case wire.TypeStart:
		b.start(m)
	}
}

// halt is step 1b. A board that holds an election itself gives way to a higher
// rank only.
func (b *modified) halt(m *wire.Message) {
	if b.role == Candidate && !b.above(b.rankOf(&m.Header), b.rank()) {
		return
	}
	// Somebody whose START never arrives says HALT for ever. A flag that is set is
	// prolonged by a higher rank only, so that the others get their turn.
	if from := b.rankOf(&m.Header); !b.halted() || b.above(from, b.halter) {
		b.alarms[alarmHalt] = b.now + b.haltFor()
		b.haltedUnder, b.halter = b.leader, from
	}
	if b.role == Candidate {
		b.becomeFollower(b.leader, ReasonOutranked)
	}
}

// haltFor is how long the flag stays set without a COORDINATOR: T until START is
// sent, what its sender then waits for a COORDINATOR, and T more, so that it is the
// one that begins again.
func (b *modified) haltFor() time.Duration { return 4*b.answerWithin() + b.cfg.Interval }

// halted is the election flag.
func (b *modified) halted() bool {
	at := b.alarms[alarmHalt]
	return at != never && at > b.now
}

// election is step 2a. It concerns only boards of higher rank. They do not hold elections
// of their own until they are told so, which is where the bully's messages are saved. A
// board that still listens has not recovered yet, and could not begin when it is told.
func (b *modified) election(m *wire.Message) {
	if b.role != Listener && b.rank().Eligible() && b.above(b.rank(), b.rankOf(&m.Header)) {
		b.sayOK(m)
	}
}

// answer is steps 2b and 2c.
func (b *modified) answer(m *wire.Message) {
	from := b.rankOf(&m.Header)
	if b.above(from, b.rank()) && b.above(from, b.coordinator) {
		b.coordinator = from
	}
}

// start is D. The flag does not forbid this election, it protects it.
func (b *modified) start(m *wire.Message) {
	if !b.rank().Eligible() || b.above(b.rankOf(&m.Header), b.rank()) {
		return
	}
	switch b.role {
	case Follower:
		if b.halted() || !b.awaitsSuccessor() {
			b.becomeCandidate(ReasonCalledUpon)
			b.holdElection()
		}
	case Leader:
		if b.alarms[alarmAsk] == never {
			b.holdElection()
		}
	}
}

// proclaimed is step 2f.
func (b *modified) proclaimed() {
	if b.halted() {
		b.alarms.clear(alarmHalt)
		b.challenge()
	}
}
