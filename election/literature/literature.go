// Package literature has the algorithms for electing a leader that the literature
// describes, each written to be read next to its paper. The file of each begins with the
// paper, its assumptions, its steps, its messages, its cost, and what is ours in it:
//
//	bully.go       Garcia-Molina 1982
//	score.go       the same over a score that need not be the id
//	modified.go    Kuang and others: two elections instead of many
//	candidates.go  Murshed and Allen 2012: only the upper half is asked
//	minid.go       Kabashi and others: the smallest id leads, so the next leader is known
//	agents.go      Li, Zhao and Wang: agreement on trusted boards,
//	               and a judge that names the leader (agents_judge.go)
//
// initiator.go has what candidates and minid have in common. This file has what most of
// them have in common, and lists all algorithms, heir of package election among them.
//
// An algorithm gets an election.Board, through which it reads what its board knows, and
// acts. It never sees the core. The core tells it what happens (election.Event), and the
// Step of each algorithm says which step of the paper that is.
package literature

import (
	"fmt"
	"time"

	"topdog/election"
	"topdog/election/silence"
	"topdog/wire"
)

// definitions are all algorithms of topdog. Most take a silence of some intervals for a
// failure, like their papers, because several of them act on a suspicion without asking
// anybody. The paper of agents has a detector of its own.
var definitions = []election.Definition{
	wire.AlgorithmHeir:       election.Heir,
	wire.AlgorithmStrict:     election.Strict,
	wire.AlgorithmBully:      {New: newBully, Detector: silence.DetectorFixed, HighestLeads: true},
	wire.AlgorithmModified:   {New: newModified, Detector: silence.DetectorFixed, HighestLeads: true},
	wire.AlgorithmScore:      {New: newScore, Detector: silence.DetectorFixed, HighestLeads: true, Order: byScore, ComparesScores: true},
	wire.AlgorithmCandidates: {New: newCandidates, Detector: silence.DetectorFixed, HighestLeads: true},
	wire.AlgorithmMinID:      {New: newMinID, Detector: silence.DetectorFixed, HighestLeads: true, Order: bySmallestID},
	wire.AlgorithmAgents:     {New: newAgents, Detector: silence.DetectorNFDE},
}

// NewCore returns the core of a board that runs the algorithm cfg.Algorithm: one of this
// package, or heir. Its link is down. now is when its process started.
func NewCore(cfg election.Config, now election.Instant) (*election.Core, error) {
	if !exists(cfg.Algorithm) {
		return nil, fmt.Errorf("election: no such algorithm: %v", cfg.Algorithm)
	}
	return election.New(cfg, definitions[cfg.Algorithm], now)
}

func exists(n wire.Algorithm) bool { return int(n) < len(definitions) && definitions[n].New != nil }

// Algorithms returns the names of the algorithms that need nothing but boards, the default
// first: all but strict, which needs a list of voters.
func Algorithms() (names []string) {
	for i := range definitions {
		if n := wire.Algorithm(i); exists(n) && n != wire.AlgorithmStrict {
			names = append(names, n.String())
		}
	}
	return names
}

// AlgorithmNamed returns the number of an algorithm.
func AlgorithmNamed(name string) (wire.Algorithm, bool) {
	for i := range definitions {
		if n := wire.Algorithm(i); exists(n) && n.String() == name {
			return n, true
		}
	}
	return 0, false
}

// Detector returns the failure detector of a board that runs an algorithm: the one that
// was configured, or the one that suits the algorithm.
func Detector(n wire.Algorithm, configured silence.DetectorKind) silence.DetectorKind {
	return configured.Or(definitions[n].Detector)
}

// plain is what most of the algorithms have in common. An algorithm embeds it, and replaces
// the methods in which it differs.
type plain struct{ *election.Board }

// ElectionDuration is the time limit T of the papers, after which the winner proclaims itself.
func (p plain) ElectionDuration() time.Duration { return p.AnswerTimeout() }

// TurnDelay is 0: the board that notices first holds an election.
func (p plain) TurnDelay() time.Duration { return 0 }

func (p plain) isLeader() bool    { return p.Role() == election.Leader }
func (p plain) isFollower() bool  { return p.Role() == election.Follower }
func (p plain) isListener() bool  { return p.Role() == election.Listener }
func (p plain) isCandidate() bool { return p.Role() == election.Candidate }

// eligible reports whether this board may lead.
func (p plain) eligible() bool { return p.Rank().Eligible() }

// outrankedBy reports whether the sender of a message comes before this board.
func (p plain) outrankedBy(m *wire.Message) bool { return p.Above(p.RankOf(&m.Header), p.Rank()) }

// standForElection makes a board a candidate, and has it hold an election, if it may lead.
func (p plain) standForElection(reason election.Reason, hold func()) {
	switch {
	case p.eligible():
		p.BecomeCandidate(reason)
		hold()
	case p.isListener():
		p.BecomeFollower(wire.Nobody, reason)
	}
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

// round returns a message that says nothing but the number of a round.
func round(kind wire.Type, number uint32) wire.Message {
	return wire.Message{Header: wire.Header{Type: kind}, Round: wire.Round{Number: number}}
}

// awaitCoordinator gives the board that has taken over the election the time for it.
func (p plain) awaitCoordinator() {
	p.ClearDeadline(election.AnswersDue)
	p.SetDeadline(election.CoordinatorDue, p.Now()+2*p.AnswerTimeout()+p.Interval())
}

// waits reports whether a candidate waits for answers, or for the board that answered.
// A probe that it began in an earlier election must not end this one.
func (p plain) waits() bool {
	return p.Deadline(election.AnswersDue).Set || p.Deadline(election.CoordinatorDue).Set
}

// leaderLives reports whether there is a leader that is not suspected, and that this board does not replace.
func (p plain) leaderLives() bool {
	return p.Leader() != wire.Nobody && !p.Supersedes(p.Leader()) && p.Now() < p.SuspectAt()
}

// followsLivingLeader has a candidate follow the leader if it lives: its answer or its COORDINATOR was lost.
func (p plain) followsLivingLeader() bool {
	if !p.leaderLives() {
		return false
	}
	p.BecomeFollower(p.Leader(), election.ReasonLeaderAlive)
	return true
}

// won ends an election in which nobody has answered.
func (p plain) won() {
	switch {
	case p.isLeader():
		p.Proclaim()
	case p.Cause() == election.ReasonJoining && p.followsLivingLeader():
	case p.MayClaim():
		p.Claim()
	default:
		// Only a board that nobody answered probes: at a cold start all boards hold
		// elections, and would take each other's probes for a conflict.
		p.StartProbe()
	}
}
