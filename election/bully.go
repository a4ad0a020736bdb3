package election

import (
	"time"

	"topdog/wire"
)

// bully is the algorithm of Garcia-Molina (1982): a board that notices that the
// coordinator is gone sends ELECTION to all boards of higher rank. Whoever gets
// one answers and holds an election of its own. A board that nobody answers
// proclaims itself with COORDINATOR; one that was answered waits for that. A
// board that recovers holds an election, so the highest always wins.
//
// It assumes that messages are delivered within a bounded time and that boards
// do not pause. "To all higher" goes out as one multicast that the others ignore.
//
// What is ours: a living leader that an election of a lower board reaches
// proclaims itself again instead of letting go of the address to hold an
// election that it would win; and one that an election of a higher board reaches
// resigns to it, so that the address is never held twice.
type bully struct{ *Core }

func (b *bully) number() wire.Algorithm { return wire.AlgorithmBully }

// patience is none: whoever notices first holds an election.
func (b *bully) patience() time.Duration { return 0 }

// answerWithin is the paper's time limit T, within which a living board answers.
func (b *bully) answerWithin() time.Duration { return b.detector.Questions().Patience() }

func (b *bully) turn(reason Reason) {
	switch {
	case b.rank().Eligible():
		b.becomeCandidate(reason)
		b.holdElection()
	case b.role == Listener:
		b.becomeFollower(wire.Nobody, reason)
	}
}

func (b *bully) holdElection() {
	b.alarms.clear(alarmVerdict)
	b.round++
	b.sendElection()
	b.alarms[alarmAsk] = b.now + b.answerWithin()
}

func (b *bully) wake(a alarm) {
	switch {
	case b.role != Candidate:
	case a == alarmVerdict:
		// The board that answered died before it could proclaim itself.
		b.holdElection()
	case a == alarmAsk && b.alarms[alarmVerdict] != never:
		// A probe has ended that no longer matters: a higher board has answered.
	case a == alarmAsk && b.mayClaim():
		b.claim()
	case a == alarmAsk:
		// Only the board that nobody answered probes: at a cold start all hold
		// elections, and would take each other's probes for a conflict.
		b.startProbe()
	}
}

// election takes in an ELECTION, which concerns only boards of higher rank.
func (b *bully) election(m *wire.Message) {
	asker := rankOf(&m.Header)
	if asker.Above(b.rank()) {
		if b.role == Leader {
			b.resign(m.Sender, ReasonPreempted)
		}
		return
	}
	if !b.rank().Eligible() || b.role == Listener {
		return
	}
	b.send(m.Sender, wire.Message{
		Header: wire.Header{Type: wire.TypeAnswer},
		Answer: wire.Answer{Round: m.Election.Round},
	})
	switch b.role {
	case Leader:
		b.proclaim()
	case Follower:
		b.turn(ReasonCalledUpon)
	}
}

// answer takes in a sign of life of a board of higher rank, which takes over the election.
func (b *bully) answer(m *wire.Message) {
	if b.role == Candidate && rankOf(&m.Header).Above(b.rank()) {
		b.alarms.clear(alarmAsk)
		b.alarms[alarmVerdict] = b.now + 2*b.answerWithin() + b.cfg.Interval
	}
}

func (b *bully) bullies() bool { return true }

// followed makes a board that outranks the leader which it has just found hold
// an election: the biggest in town wins.
func (b *bully) followed() {
	if p := b.roster.Peer(b.leader); p != nil && b.rank().Above(p.Rank()) {
		b.turn(ReasonOutranks)
	}
}
