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
//
//  1. A board that notices that the coordinator is gone sends ELECTION to all
//     boards of higher rank. If nobody answers within the time limit T it
//     proclaims itself with COORDINATOR.
//  2. Whoever gets an ELECTION sends an ANSWER, and holds an election of its own
//     unless it is at it already. A board that was answered waits for a COORDINATOR.
//  3. A board that recovers holds an election, so the highest always wins.
//
// Its messages are ELECTION, ANSWER and COORDINATOR. With n boards, the dead
// coordinator among them, the worst case is n²-n-1 of them: the lowest notices.
//
// What is ours: a leader that is called upon holds its election while it goes on
// leading, since to let go of the address for an election that it wins would only
// cost an outage; a board that was answered and hears no COORDINATOR holds another
// election; and a living leader of lower rank is asked to hand over before the
// winner takes the address (see Core.claim).
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
func (p plain) answerWithin() time.Duration { return p.detector.Questions().Patience() }

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

// holdElection is step 1, for a candidate or for a leader that was called upon.
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

// won ends an election in which nobody has answered.
func (p plain) won() {
	switch {
	case p.role == Leader:
		p.proclaim()
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
	case a == alarmAsk && b.alarms[alarmVerdict] != never:
		// A probe has ended that no longer matters: a higher board has answered.
	case a == alarmAsk:
		b.won()
	}
}

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

// election is step 2. It concerns only boards of higher rank. One that still
// listens answers too, and holds its election when it has listened.
func (b *bully) election(m *wire.Message) {
	if b.above(b.rankOf(&m.Header), b.rank()) || !b.rank().Eligible() {
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

// answer takes in a sign of life of a board of higher rank, which takes over the election.
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
