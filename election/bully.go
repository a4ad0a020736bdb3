package election

import (
	"time"

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
//     boards of higher rank. (b) If nobody answers within the time limit T it wins.
//  2. Whoever gets an ELECTION from below (a) sends an ANSWER, which is often called
//     OK, and (b) holds an election of its own unless it is at it already. (c) A board
//     that was answered says no more and waits for a COORDINATOR. (d) The winner
//     proclaims itself with COORDINATOR, which is also called its victory message.
//  3. A board that recovers holds an election, so the highest always wins.
//
// Its messages are ELECTION, ANSWER and COORDINATOR. With n boards, the dead
// coordinator among them, the worst case is n²-n-1 of them, where those to the dead
// count but for the COORDINATOR: the lowest notices. The best case is n-1: the
// highest notices, and asks only the dead one. A takeover lasts T.
//
// What is ours:
//
//   - A leader that is called upon holds its election while it goes on leading, since to
//     let go of the address for an election that it wins would only cost an outage.
//   - A board that was answered and hears no COORDINATOR holds another election.
//   - A board that recovers and hears a leader of higher rank, but not its answer,
//     believes that.
//   - A living leader of lower rank is asked to hand over before the winner takes
//     the address (see Core.claim).
type bully struct {
	plain
	proclaimedAt Instant // when this board was last called upon as a leader and had nobody to ask
}

func (b *bully) number() wire.Algorithm { return wire.AlgorithmBully }

// patience is none: whoever notices first holds an election.
func (b *bully) patience() time.Duration { return 0 }

// bullies: the biggest in town always wins.
func (b *bully) bullies() bool { return true }

// answerWithin is the time limit T, within which a living board answers.
func (p plain) answerWithin() time.Duration { return p.detector.Questions().Duration() }

// standForElection makes a board a candidate, if it may lead. It reports whether it is one now.
func (p plain) standForElection(reason Reason) bool {
	switch {
	case p.rank().Eligible():
		p.becomeCandidate(reason)
		return true
	case p.role == Listener:
		p.becomeFollower(wire.Nobody, reason)
	}
	return false
}

func (b *bully) turn(reason Reason) {
	if b.standForElection(reason) {
		b.holdElection()
	}
}

// joined is step 3, and followed the same for a board that finds the leader to
// be of lower rank in another way.
func (b *bully) joined() { b.turn(ReasonJoining) }

func (b *bully) followed() {
	if b.outranks(b.leader) {
		b.turn(ReasonOutranks)
	}
}

// higher lists the boards that outrank this one. Nobody knows which of them are
// alive: that is what the election finds out.
func (p plain) higher() []wire.ID {
	mine := p.rank()
	return p.roster.Which(func(other *Peer) bool {
		return other.Rank().Eligible() && p.above(other.Rank(), mine)
	})
}

// holdElection is step 1a, for a candidate or for a leader that was called upon.
func (b *bully) holdElection() {
	b.alarms.clear(alarmVerdict)
	higher := b.higher()
	if len(higher) == 0 {
		b.won()
		return
	}
	b.round++
	b.sendElection(higher)
	b.alarms[alarmAsk] = b.now + b.answerWithin()
}

// won is steps 1b and 2d: it ends an election in which nobody has answered.
func (p plain) won() {
	switch {
	case p.role == Leader:
		p.proclaim()
	case p.cause == ReasonJoining && p.leaderLives():
		p.becomeFollower(p.leader, ReasonLeaderAlive) // its answer was lost
	case p.mayClaim():
		p.claim()
	default:
		// Only the board that nobody answered probes: at a cold start all hold
		// elections, and would take each other's probes for a conflict.
		p.startProbe()
	}
}

func (b *bully) wake(a alarm) {
	switch {
	case a == alarmAsk && b.role == Leader:
		b.won()
	case b.role != Candidate:
	case a == alarmVerdict && b.leaderLives():
		b.becomeFollower(b.leader, ReasonLeaderAlive) // its COORDINATOR was lost
	case a == alarmVerdict:
		b.holdElection() // the board that answered died before it could proclaim itself
	case a == alarmAsk && b.waits():
		// A probe has ended that no longer matters.
	case a == alarmAsk:
		b.won()
	}
}

// waits reports whether a candidate waits for answers, or for the board that answered.
// A probe that it began in an election before must not end that.
func (p plain) waits() bool { return p.alarms[alarmAsk] != never || p.alarms[alarmVerdict] != never }

// leaderLives reports whether there is a leader of higher rank that is not suspected.
func (p plain) leaderLives() bool {
	return p.leader != wire.Nobody && !p.outranks(p.leader) && p.now < p.detector.Freshness()
}

func (b *bully) step(m *wire.Message) {
	switch m.Type {
	case wire.TypeElection:
		b.election(m)
	case wire.TypeAnswer:
		b.answer(m)
	}
}

// election is steps 2a and 2b. It concerns only boards of higher rank. One that still
// listens answers too, and holds its election when it has listened.
func (b *bully) election(m *wire.Message) {
	if b.above(b.rankOf(&m.Header), b.rank()) || !b.rank().Eligible() || b.backsOff() {
		return
	}
	b.sayOK(m)
	switch {
	case b.awaitsSuccessor():
	case b.role == Follower:
		b.turn(ReasonCalledUpon)
	case b.role == Leader && b.alarms[alarmAsk] == never && b.now-b.proclaimedAt >= b.answerWithin():
		b.proclaimedAt = b.now
		b.holdElection()
	}
}

// awaitsSuccessor reports whether the leader has handed over to a board that has
// not been heard to lead yet. It comes first.
func (p plain) awaitsSuccessor() bool {
	return p.role == Follower && p.leader == wire.Nobody && p.alarms[alarmTurn] > p.now
}

// sayOK tells a candidate that this board is alive and outranks it.
func (p plain) sayOK(m *wire.Message) {
	p.send(m.Sender, wire.Message{
		Header: wire.Header{Type: wire.TypeAnswer},
		Answer: wire.Answer{Round: m.Election.Round},
	})
}

// answer is step 2c: a board of higher rank is alive, and takes over the election.
func (b *bully) answer(m *wire.Message) {
	if !b.above(b.rankOf(&m.Header), b.rank()) {
		return
	}
	switch b.role {
	case Candidate:
		b.awaitCoordinator()
	case Leader:
		b.alarms.clear(alarmAsk) // it will ask for the lead
	}
}

// awaitCoordinator gives the board that has taken over the election the time for it.
func (p plain) awaitCoordinator() {
	p.alarms.clear(alarmAsk)
	p.alarms[alarmVerdict] = p.now + 2*p.answerWithin() + p.cfg.Interval
}
