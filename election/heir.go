package election

import (
	"time"

	"topdog/election/clock"
	"topdog/election/silence"
	"topdog/wire"
)

// heir is the bully algorithm made fast: the next leader is known before it is
// needed, so a takeover costs one message. When the leader is late, the heir asks
// for it, a few times within a few milliseconds. One answer of any board that has
// heard the leader since ends the suspicion. If nobody answers, the heir claims. The
// others wait for their turn by rank, so a dead heir costs one step more.
//
// In the steady state there is one HEARTBEAT per interval, whatever the number
// of boards. A takeover is k rounds of ELECTIONs and one COORDINATOR, all multicast.
//
// It is the core's own algorithm: all its waiting times come from the failure detector, and an ANSWER
// corrects what this board knows about when the leader was last heard. With votes it is the algorithm
// strict, see strict.go.
type heir struct{ c *Core }

// Heir defines the algorithm heir, the default, and Strict the algorithm strict. All the others are in package
// literature.
var (
	Heir   = Definition{New: newHeir, Detector: silence.DetectorAsk, watches: true}
	Strict = Definition{New: newHeir, Detector: silence.DetectorAsk, votes: true}
)

func newHeir(b *Board) Algorithm { return &heir{b.core} }

// Step acts, or hears what the others ask and answer.
func (h *heir) Step(e Event) (done bool) {
	c := h.c
	if c.votes.needed() && c.stepVotes(e) {
		return false
	}
	switch e.Kind {
	case EventTurn:
		c.suspectLeader(e.Reason)
	case EventAddressFree:
		c.ask() // it has been asking meanwhile
	case AnswersDue:
		c.unanswered()
	case EventMessage:
		switch e.Message.Type {
		case wire.TypeElection:
			c.hearElection(e.Message)
		case wire.TypeAnswer:
			c.hearAnswer(e.Message)
		}
	}
	return false
}

// ElectionDuration is that of all questions to a leader that is gone.
func (h *heir) ElectionDuration() time.Duration { return h.c.detector.Questions().Duration() }

// TurnDelay is a turn step for each board of higher rank, and longer for a voter that has given away its vote.
func (h *heir) TurnDelay() time.Duration {
	return max(h.c.turnDelay(), h.c.boundFor())
}

// copiesMax is how often a question or an answer is sent at most at the same time.
//
// The number of rounds is learned from the loss. That is too late for a wire that was good and
// suddenly loses 40 %: three rounds of single packets would depose a living leader every fourth
// time. So a question that nobody has answered is followed by one with more copies. A leader that
// is dead costs three packets more.
const copiesMax = 3

// lossHeeded is the share of lost heartbeats at which a turn step becomes an interval at least.
const lossHeeded = 0.02

// turnStep is the time that each board of higher rank is given to act first: to ask as often as
// it must, and to be heard. Where heartbeats get lost, each board misses different ones. There
// the step is an interval at least: a board behind the heir then hears the next heartbeat
// before its own turn, so not all of them ask.
func (c *Core) turnStep() time.Duration {
	quality := c.detector.Quality()
	q := quality.Questions
	step := q.Duration() + 2*q.Spacing + c.detector.Grace()
	if quality.Loss >= lossHeeded {
		return max(step, c.cfg.Interval)
	}
	return step
}

func (c *Core) turnDelay() time.Duration { return time.Duration(c.succession()) * c.turnStep() }

// suspectLeader begins to ask. At a cold start all have listened for equally long, so a listener
// that is not the first waits for its turn.
func (c *Core) suspectLeader(reason Reason) {
	if c.role == Listener && (!c.rank().Eligible() || c.succession() > 0) {
		c.becomeFollower(wire.Nobody, reason)
		return
	}
	if !c.rank().Eligible() {
		return
	}
	c.becomeCandidate(reason)
	c.startProbe()
	c.ask()
}

// ask puts the question once more, or claims when it was put often enough.
func (c *Core) ask() {
	q := c.detector.Questions()
	asked := int(c.asking.round) >= q.Count
	earliest := c.detector.Earliest()
	switch {
	case !asked:
	case !c.mayClaimOrWait():
		if c.candidacy.address.silent.Set {
			return // EventAddressFree follows when an answer would have come
		}
	case c.missesLeader() && c.leader != wire.Nobody && c.now < earliest:
		// The margin was taken when the turn was planned, and the length of the questions may
		// have changed since. Together they may be shorter than the grace, so wait for the rest
		// of it.
		c.answers = clock.Due(earliest)
		return
	default:
		c.claim()
		return
	}
	wait := q.Spacing
	if asked {
		// The probe takes longer than the questions, or the address still answers, or nothing
		// is heard. Go on asking, slower, so that the others know that a board asks already.
		wait = max(wait, c.askAgain())
	} else if c.asking.round++; int(c.asking.round) >= q.Count {
		wait = q.Within
	}
	for range c.questionCopies() {
		c.sendElection(nil)
	}
	c.askLeader()
	c.answers = clock.Due(c.now + wait)
}

// askLeader puts the question to the leader alone as well: first to the address that it
// holds, whoever that is by now, and in the last round to the leader's own.
func (c *Core) askLeader() {
	switch {
	case c.leader == wire.Nobody || c.cfg.Fanout == FanoutUnicast:
	case c.asking.round == 1:
		c.sendFloating(c.question())
	case c.lastRound():
		c.send(c.leader, c.question())
	}
}

// unanswered puts the next question.
func (c *Core) unanswered() {
	if !c.lastRound() || !c.readsFirst(&c.candidacy.waited, &c.answers) {
		c.ask()
	}
}

// hearElection receives the question of another board.
func (c *Core) hearElection(m *wire.Message) {
	above := c.Above(c.rankOf(&m.Header), c.rank())
	if c.second.present && m.Election.Suspect == wire.Nobody {
		c.showBySecondPath(m)
	}
	switch c.role {
	case Leader:
		// If a heartbeat is overdue this process was late, and what came meanwhile
		// is still to be received. Perhaps the asker leads by now; the heartbeat
		// answers if it does not.
		if !c.leading.heartbeat.Reached(c.now) {
			c.replyToCandidate(m)
		}
		c.missedOnFirstPath(m)
	case Candidate:
		if above && c.defersTo(m) {
			c.missToo(m)
			c.stepBack()
		} else {
			c.object(m)
		}
	case Follower:
		switch {
		case c.knowsBetter(m):
			c.sendEvidence(m)
		case above || !c.rank().Eligible() || c.lastLeader.predecessor == c.cfg.ID:
			// In the last case this board has resigned, so it must not stand in the way.
			c.missToo(m)
			if c.defersTo(m) {
				c.postpone(c.backOff())
			}
		default:
			c.object(m)
			c.secondWitness(m)
		}
	case Listener:
		if c.defersTo(m) {
			c.keepListening(c.backOff())
		}
	}
}

// questionCopies is how often this round's question is sent: the first one once. From the fourth
// round on one copy is enough, because there are many rounds. So it is at a cold start, when
// there is no hurry, and with unicast, where each board gets a packet of its own. One copy of
// the last question goes to the leader alone, see askLeader.
func (c *Core) questionCopies() int {
	switch {
	case c.asking.round > copiesMax, c.coldStart.pending, c.cfg.Fanout == FanoutUnicast:
		return 1
	case c.lastRound() && c.leader != wire.Nobody:
		return max(copies(c.asking.round)-1, 1)
	default:
		return copies(c.asking.round)
	}
}

// lastRound reports whether this board has asked as often as it must.
func (c *Core) lastRound() bool { return int(c.asking.round) >= c.detector.Questions().Count }

// copies is how often a message of a round is sent.
func copies(round uint8) int { return min(max(int(round), 1), copiesMax) }

// replyToCandidate answers a candidate that suspects this leader, by multicast and by broadcast.
// The copies of a question, and others who ask at the same time, get one answer together. The
// next round gets another one. A candidate that is not reached so gets it alone as well.
func (c *Core) replyToCandidate(m *wire.Message) {
	if c.now-c.heartbeats.repliedAt < silence.RoundTripMin/2 {
		return
	}
	c.heartbeats.repliedAt = c.now
	round := m.Election.Round
	if m.Election.NoClaim {
		round = 1 // it may be deaf, and goes on asking
	}
	for range copies(round) {
		c.sendHeartbeat(true)
	}
	if round > 1 {
		c.replyTo(m.Sender)
	}
}

// firstCopy reports whether a question is not a copy of the one that this follower has
// just answered, and notes that it is answered.
func (c *Core) firstCopy(m *wire.Message) bool {
	t := &c.answered
	if t.candidate == m.Sender && t.round == m.Election.Round && c.now-t.at < silence.RoundTripMin {
		return false
	}
	t.candidate, t.round, t.at = m.Sender, m.Election.Round, c.now
	return true
}

// secondWitness is for a board that hears a board of lower rank ask for the same leader. It
// has its own turn early, even if it overlooks lost heartbeats because it hears badly.
// Otherwise it would keep boards that hear well from taking over.
func (c *Core) secondWitness(m *wire.Message) {
	if c.leader == m.Election.Suspect && c.lastLeader.incarnation == m.Election.Incarnation && !c.vouchedFor() {
		turn := max(c.now, c.detector.Earliest()) + c.turnDelay()
		c.following.turn = c.following.turn.Before(turn)
	}
}

// backOff is how long a board waits for one of higher rank that was heard
// asking: several of its questions may be lost, and at a cold start it asks slowly.
func (c *Core) backOff() time.Duration { return max(c.turnStep(), c.cfg.Interval/2) }

// stepBack has this candidate leave it to another board to act.
func (c *Core) stepBack() {
	c.becomeFollower(c.leader, ReasonOutranked)
	c.following.turn = clock.Due(c.now + c.backOff())
}

// knowsBetter reports whether this board still trusts its leader, on evidence
// that the candidate does not have.
func (c *Core) knowsBetter(m *wire.Message) bool {
	if c.leader == wire.Nobody || c.now >= c.detector.Freshness() {
		return false
	}
	if c.leader != m.Election.Suspect || c.lastLeader.incarnation != m.Election.Incarnation {
		return m.Term <= c.lastLeader.term
	}
	return c.lastLeader.lastHeard > m.Election.LastHeard
}

// sendEvidence tells a candidate when this board last heard the leader, if it is one
// of those that answer.
func (c *Core) sendEvidence(m *wire.Message) {
	if c.succession() > witnesses || !c.firstCopy(m) { // the candidate itself counts as one
		return
	}
	answer := c.knownOfLeader()
	answer.Round = m.Election.Round
	for range copies(m.Election.Round) {
		c.sendAnswer(m.Sender, answer)
	}
}

// defersTo reports whether this board leaves it to a candidate to act. A candidate that hears
// nothing may not claim, and would ask for ever if its port is deaf. So this board waits only
// once for such a candidate.
func (c *Core) defersTo(m *wire.Message) bool {
	d := &c.deferred
	if !m.Election.NoClaim || d.leader != c.leader || d.lastHeard != c.lastLeader.lastHeard {
		d.leader, d.lastHeard, d.until = c.leader, c.lastLeader.lastHeard, c.now+c.backOff()
	}
	return c.now < d.until
}

// missToo answers a candidate that has heard nothing since it began to ask: this board misses
// the leader as well, and the candidate's port receives.
func (c *Core) missToo(m *wire.Message) {
	if m.Election.NoClaim {
		c.sendEvidence(m)
	}
}

// object tells a candidate that a board of higher rank is alive. Only the first boards in the
// succession do so: while a foreign machine has the address, everybody asks time and again.
func (c *Core) object(m *wire.Message) {
	if !c.rank().Eligible() || c.succession() >= witnesses || !c.firstCopy(m) {
		return
	}
	c.sendAnswer(m.Sender, wire.Answer{Round: m.Election.Round})
}

// hearAnswer receives what another board knows.
func (c *Core) hearAnswer(m *wire.Message) {
	if c.role != Candidate {
		c.hearReceives(m)
		return
	}
	a := &m.Answer
	switch {
	case a.Leader == wire.Nobody:
		if c.Above(c.rankOf(&m.Header), c.rank()) {
			c.stepBack()
		}
	case a.Leader == c.cfg.ID:
		// It still follows this board, which asks because it stood still.
	case a.Leader == c.leader && a.Incarnation == c.lastLeader.incarnation:
		c.heardByAnother(a)
	default:
		p, known := c.Peer(a.Leader)
		if known && p.Incarnation == a.Incarnation && m.Term >= c.term {
			c.becomeFollower(a.Leader, ReasonEvidence)
		}
	}
}

// heardByAnother counts a heartbeat that another board has heard as if it had been
// heard here, at the time when it was.
func (c *Core) heardByAnother(a *wire.Answer) {
	if a.LastHeard <= c.lastLeader.lastHeard {
		return
	}
	if c.second.present { // it hears the leader on the first path, and this board may not
		c.vouch()
		return
	}
	c.lastLeader.lastHeard = a.LastHeard
	c.detector.Evidence(c.now - a.Age)
	if c.now < c.detector.Freshness() {
		c.becomeFollower(c.leader, ReasonEvidence)
		return
	}
	c.heardSince()
}
