package literature

import (
	"time"

	"topdog/election"
	"topdog/wire"
)

// plain is what most of the algorithms have in common. An algorithm embeds it and says
// what it does otherwise.
type plain struct{ *election.Board }

// ElectionDuration is the time limit T of the papers, after which the winner proclaims itself.
func (p plain) ElectionDuration() time.Duration { return p.AnswerTimeout() }

// TurnDelay is none: whoever notices first holds an election.
func (p plain) TurnDelay() time.Duration { return 0 }

// What this board is at the moment.

func (p plain) isLeader() bool    { return p.Role() == election.Leader }
func (p plain) isFollower() bool  { return p.Role() == election.Follower }
func (p plain) isListener() bool  { return p.Role() == election.Listener }
func (p plain) isCandidate() bool { return p.Role() == election.Candidate }

// eligible reports whether this board may lead.
func (p plain) eligible() bool { return p.Rank().Eligible() }

// outrankedBy reports whether the sender of a message comes before this board.
func (p plain) outrankedBy(m *wire.Message) bool { return p.Above(p.RankOf(&m.Header), p.Rank()) }

// standForElection makes a board a candidate, if it may lead. It reports whether it is one now.
func (p plain) standForElection(reason election.Reason) bool {
	switch {
	case p.eligible():
		p.BecomeCandidate(reason)
		return true
	case p.isListener():
		p.BecomeFollower(wire.Nobody, reason)
	}
	return false
}

// higher lists the boards that outrank this one. Nobody knows which of them are
// alive: that is what the election finds out.
func (p plain) higher() []wire.ID {
	mine := p.Rank()
	return p.Peers(func(other *election.Peer) bool {
		return other.Rank().Eligible() && p.Above(other.Rank(), mine)
	})
}

// askHigher asks the boards that outrank this one. It reports whether there are any.
func (p plain) askHigher() bool {
	higher := p.higher()
	if len(higher) > 0 {
		p.CallElection(p.Round()+1, higher, p.AnswerTimeout())
	}
	return len(higher) > 0
}

// sayOK tells a candidate that this board is alive and outranks it.
func (p plain) sayOK(m *wire.Message) {
	p.Send(m.Sender, wire.Message{
		Header: wire.Header{Type: wire.TypeAnswer},
		Answer: wire.Answer{Round: m.Election.Round},
	})
}

// awaitCoordinator gives the board that has taken over the election the time for it.
func (p plain) awaitCoordinator() {
	p.ClearDeadline(election.AnswersDue)
	p.SetDeadline(election.CoordinatorDue, p.Now()+2*p.AnswerTimeout()+p.Interval())
}

// waits reports whether a candidate waits for answers, or for the board that answered.
// A probe that it began in an election before must not end that.
func (p plain) waits() bool {
	return p.DeadlineSet(election.AnswersDue) || p.DeadlineSet(election.CoordinatorDue)
}

// leaderLives reports whether there is a leader that is not suspected, and that this board leaves the lead.
func (p plain) leaderLives() bool {
	return p.Leader() != wire.Nobody && !p.Supersedes(p.Leader()) && p.Now() < p.SuspectAt()
}

// won ends an election in which nobody has answered.
func (p plain) won() {
	switch {
	case p.isLeader():
		p.Proclaim()
	case p.Cause() == election.ReasonJoining && p.leaderLives():
		p.BecomeFollower(p.Leader(), election.ReasonLeaderAlive) // its answer was lost
	case p.MayClaim():
		p.Claim()
	default:
		// Only the board that nobody answered probes: at a cold start all hold
		// elections, and would take each other's probes for a conflict.
		p.StartProbe()
	}
}
