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
// It reads and acts through its board like the algorithms of package literature. Beside
// that it uses the core: the failure detector, whose estimates give all its waiting times,
// and what was heard of the leader last, which answers may correct.
type heir struct {
	*Board
	waited bool // a candidate whose deadline came late has given the last answer more time

	// deferred is the suspicion in which this board has left it to another one to act, and
	// until when it does so if that one hears nothing.
	deferred struct {
		leader    wire.ID
		lastHeard wire.Sequence
		until     Instant
	}

	// answered is the last question that this follower has answered.
	answered struct {
		candidate wire.ID
		round     uint8
		at        Instant
	}
}

func newHeir(b *Board) Algorithm { return &heir{Board: b} }

// ElectionDuration is that of all questions to a leader that is gone.
func (h *heir) ElectionDuration() time.Duration { return h.AnswerTimeout() }

// copiesMax is how often a question or an answer is sent at most at the same time.
//
// How many rounds of questions are needed is learned from the loss, and so comes too late
// for a wire that was good and loses 40 % all of a sudden: three rounds of single
// packets would depose a living leader every fourth time. So each question in vain is
// followed by a better one. A leader that is dead costs three packets more.
const copiesMax = 3

// lossHeeded is the loss of heartbeats from which on boards wait for one more of them
// for each board of higher rank.
const lossHeeded = 0.02

// turnStep is the time that each board of higher rank is given to act first: to ask
// as often as it must, and to be heard. Where heartbeats get lost, each board misses
// others; there it is an interval at least, so that the next one comes first and not all
// who are next in the succession ask as well.
func (h *heir) turnStep() time.Duration {
	quality := h.core.detector.Quality()
	q := quality.Questions
	step := q.Duration() + 2*q.Spacing + h.Grace()
	if quality.Loss >= lossHeeded {
		return max(step, h.Interval())
	}
	return step
}

// TurnDelay is a turn step for each board of higher rank.
func (h *heir) TurnDelay() time.Duration {
	return time.Duration(h.Succession()) * h.turnStep()
}

// Turn begins to ask. At a cold start all have listened for equally long, so a listener
// that is not the first waits for its turn.
func (h *heir) Turn(reason Reason) {
	if h.Role() == Listener && (!h.Rank().Eligible() || h.Succession() > 0) {
		h.BecomeFollower(wire.Nobody, reason)
		return
	}
	if !h.Rank().Eligible() {
		return
	}
	h.BecomeCandidate(reason)
	h.waited = false
	h.StartProbe()
	h.ask()
}

// ask puts the question once more, or claims when it was put often enough.
func (h *heir) ask() {
	q := h.core.detector.Questions()
	asked := int(h.Round()) >= q.Count
	earliest := h.core.detector.Earliest()
	switch {
	case !asked:
	case !h.MayClaim():
		if h.core.candidacy.address.silent.Set {
			return // AddressFree is called when an answer would have come
		}
	case h.Cause() == ReasonSilence && h.Leader() != wire.Nobody && h.Now() < earliest:
		// What the margin was when the turn was planned, and what the questions have
		// left of the grace since, need not make up the whole of it.
		h.SetDeadline(AnswersDue, earliest)
		return
	default:
		h.Claim()
		return
	}
	wait := q.Spacing
	if asked {
		// The probe takes longer than the questions, or the address still answers, or nothing
		// is heard. Go on asking, slower, so that the others know that a board asks already.
		wait = max(wait, h.core.askAgain())
	} else if h.core.asking.round++; int(h.Round()) >= q.Count {
		wait = q.Within
	}
	for range h.copies() {
		h.core.sendElection(nil)
	}
	h.askLeader()
	h.SetDeadline(AnswersDue, h.Now()+wait)
}

// askLeader puts the question to the leader alone as well: first to the address that it
// holds, whoever that is by now, and in the last round to the leader's own.
func (h *heir) askLeader() {
	switch {
	case h.Leader() == wire.Nobody || h.Config().Fanout == FanoutUnicast:
	case h.Round() == 1:
		h.core.sendFloating(h.core.question())
	case h.lastRound():
		h.Send(h.Leader(), h.core.question())
	}
}

// AddressFree lets a candidate claim that has been asking meanwhile.
func (h *heir) AddressFree() { h.ask() }

// Expired puts the next question.
func (h *heir) Expired(Deadline) {
	switch {
	case h.core.wokeLate >= silence.RoundTripMin && !h.waited && int(h.Round()) >= h.core.detector.Questions().Count:
		// Perhaps the whole board stood still, and an answer is waiting to be read.
		// Once is enough: a board that is always late must be able to take over.
		h.waited = true
		h.SetDeadline(AnswersDue, h.Now()+silence.RoundTripMin)
	default:
		h.ask()
	}
}

// Step receives the questions and answers of the others.
func (h *heir) Step(m *wire.Message) {
	switch m.Type {
	case wire.TypeElection:
		h.election(m)
	case wire.TypeAnswer:
		h.answer(m)
	}
}

// election receives the question of another board.
func (h *heir) election(m *wire.Message) {
	above := h.Above(h.RankOf(&m.Header), h.Rank())
	switch h.Role() {
	case Leader:
		// If a heartbeat is overdue this process was late, and what came meanwhile
		// is still to be received. Perhaps the asker leads by now; the heartbeat
		// answers if it does not.
		if !h.HeartbeatOverdue() {
			h.replyToCandidate(m)
		}
	case Candidate:
		if above && h.defersTo(m) {
			h.missToo(m)
			h.stepBack()
		} else {
			h.object(m)
		}
	case Follower:
		switch {
		case h.knowsBetter(m):
			h.sendEvidence(m)
		case above || !h.Rank().Eligible() || h.core.lastLeader.predecessor == h.ID():
			// The last: this board has resigned, so it must not stand in the way.
			h.missToo(m)
			if h.defersTo(m) {
				h.Postpone(h.backOff())
			}
		default:
			h.object(m)
			h.secondWitness(m)
		}
	case Listener:
		h.KeepListening(h.backOff())
	}
}

// copies is how often this round's question is sent: the first one once. After the third
// one the number of rounds does the rest. There is no hurry at a cold start, and where
// everybody is sent a packet of his own they are enough. One copy of the last question goes
// to the leader alone, see askLeader.
func (h *heir) copies() int {
	switch {
	case h.Round() > copiesMax, h.core.coldStart.pending, h.Config().Fanout == FanoutUnicast:
		return 1
	case h.lastRound() && h.Leader() != wire.Nobody:
		return max(copies(h.Round())-1, 1)
	default:
		return copies(h.Round())
	}
}

// lastRound reports whether this board has asked as often as it must.
func (h *heir) lastRound() bool { return int(h.Round()) >= h.core.detector.Questions().Count }

// copies is how often a message of a round is sent.
func copies(round uint8) int { return min(max(int(round), 1), copiesMax) }

// replyToCandidate answers a candidate that suspects this leader, by multicast and by broadcast.
// The copies of a question, and others who ask at the same time, get one answer together. The
// next round gets another one. A candidate that is not reached so gets it alone as well.
func (h *heir) replyToCandidate(m *wire.Message) {
	if h.Now()-h.core.heartbeats.repliedAt < silence.RoundTripMin/2 {
		return
	}
	h.core.heartbeats.repliedAt = h.Now()
	round := m.Election.Round
	if m.Election.NoClaim {
		round = 1 // it may be deaf, and goes on asking
	}
	for range copies(round) {
		h.core.sendHeartbeat(true)
	}
	if round > 1 {
		h.core.replyTo(m.Sender)
	}
}

// firstCopy reports whether a question is not a copy of the one that this follower has
// just answered, and notes that it is answered.
func (h *heir) firstCopy(m *wire.Message) bool {
	t := &h.answered
	if t.candidate == m.Sender && t.round == m.Election.Round && h.Now()-t.at < silence.RoundTripMin {
		return false
	}
	t.candidate, t.round, t.at = m.Sender, m.Election.Round, h.Now()
	return true
}

// secondWitness is for a board that hears a board of lower rank ask for the same leader. It
// has its own turn early, even if it overlooks lost heartbeats because it hears badly.
// Otherwise it would keep boards that hear well from taking over.
func (h *heir) secondWitness(m *wire.Message) {
	if h.Leader() == m.Election.Suspect && h.core.lastLeader.incarnation == m.Election.Incarnation {
		turn := max(h.Now(), h.core.detector.Earliest()) + h.TurnDelay()
		h.core.following.turn = h.core.following.turn.Before(turn)
	}
}

// backOff is how long a board waits for one of higher rank that was heard
// asking: several of its questions may be lost, and at a cold start it asks slowly.
func (h *heir) backOff() time.Duration { return max(h.turnStep(), h.Interval()/2) }

func (h *heir) stepBack() {
	h.BecomeFollower(h.Leader(), ReasonOutranked)
	h.core.following.turn = clock.Due(h.Now() + h.backOff())
}

// knowsBetter reports whether this board still trusts its leader, on evidence
// that the candidate does not have.
func (h *heir) knowsBetter(m *wire.Message) bool {
	if h.Leader() == wire.Nobody || h.Now() >= h.SuspectAt() {
		return false
	}
	if h.Leader() != m.Election.Suspect || h.core.lastLeader.incarnation != m.Election.Incarnation {
		return m.Term <= h.core.lastLeader.term
	}
	return h.core.lastLeader.lastHeard > m.Election.LastHeard
}

// sendEvidence tells a candidate when this board last heard the leader, if it is one
// of those that answer.
func (h *heir) sendEvidence(m *wire.Message) {
	if h.Succession() > witnesses || !h.firstCopy(m) { // the candidate itself counts as one
		return
	}
	answer := h.Evidence()
	answer.Round = m.Election.Round
	for range copies(m.Election.Round) {
		h.Send(m.Sender, wire.Message{Header: wire.Header{Type: wire.TypeAnswer}, Answer: answer})
	}
}

// defersTo reports whether this board leaves it to a candidate to act. One that hears nothing
// may not claim, and would go on asking for ever if its port is deaf: it is waited for once.
func (h *heir) defersTo(m *wire.Message) bool {
	d := &h.deferred
	if !m.Election.NoClaim || d.leader != h.Leader() || d.lastHeard != h.core.lastLeader.lastHeard {
		d.leader, d.lastHeard, d.until = h.Leader(), h.core.lastLeader.lastHeard, h.Now()+h.backOff()
	}
	return h.Now() < d.until
}

// missToo answers a candidate that has heard nothing since it began to ask: this board misses
// the leader as well, and the candidate's port receives.
func (h *heir) missToo(m *wire.Message) {
	if m.Election.NoClaim {
		h.sendEvidence(m)
	}
}

// object tells a candidate that a board of higher rank is alive. Some do, and not
// all: while a foreign machine has the address, everybody asks time and again.
func (h *heir) object(m *wire.Message) {
	if !h.Rank().Eligible() || h.Succession() >= witnesses || !h.firstCopy(m) {
		return
	}
	h.Send(m.Sender, wire.Message{
		Header: wire.Header{Type: wire.TypeAnswer},
		Answer: wire.Answer{Round: m.Election.Round},
	})
}

// answer receives what another board knows.
func (h *heir) answer(m *wire.Message) {
	if h.Role() != Candidate {
		return
	}
	a := &m.Answer
	switch {
	case a.Leader == wire.Nobody:
		if h.Above(h.RankOf(&m.Header), h.Rank()) {
			h.stepBack()
		}
	case a.Leader == h.ID():
		// It still follows this board, which asks because it stood still.
	case a.Leader == h.Leader() && a.Incarnation == h.core.lastLeader.incarnation:
		h.evidence(a)
	default:
		p, known := h.Peer(a.Leader)
		if known && p.Incarnation == a.Incarnation && m.Term >= h.core.term {
			h.BecomeFollower(a.Leader, ReasonEvidence)
		}
	}
}

// evidence counts a heartbeat that another board has heard as if it had been
// heard here, at the time when it was.
func (h *heir) evidence(a *wire.Answer) {
	if a.LastHeard <= h.core.lastLeader.lastHeard {
		return
	}
	h.core.lastLeader.lastHeard = a.LastHeard
	h.core.detector.Evidence(h.Now() - a.Age)
	if h.Now() < h.SuspectAt() {
		h.BecomeFollower(h.Leader(), ReasonEvidence)
		return
	}
	h.core.heardSince()
}

// Heir defines the algorithm heir, the default. All the others are in package literature.
var Heir = Definition{New: newHeir, Detector: silence.DetectorAsk}
