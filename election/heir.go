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
	c      *Core
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

func newHeir(b *Board) Algorithm { return &heir{c: b.core} }

// ElectionDuration is that of all questions to a leader that is gone.
func (h *heir) ElectionDuration() time.Duration { return h.c.detector.Questions().Duration() }

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
	quality := h.c.detector.Quality()
	q := quality.Questions
	step := q.Duration() + 2*q.Spacing + h.c.detector.Grace()
	if quality.Loss >= lossHeeded {
		return max(step, h.c.cfg.Interval)
	}
	return step
}

// TurnDelay is a turn step for each board of higher rank.
func (h *heir) TurnDelay() time.Duration {
	return time.Duration(h.c.succession()) * h.turnStep()
}

// Turn begins to ask. At a cold start all have listened for equally long, so a listener
// that is not the first waits for its turn.
func (h *heir) Turn(reason Reason) {
	if h.c.role == Listener && (!h.c.rank().Eligible() || h.c.succession() > 0) {
		h.c.becomeFollower(wire.Nobody, reason)
		return
	}
	if !h.c.rank().Eligible() {
		return
	}
	h.c.becomeCandidate(reason)
	h.waited = false
	h.c.startProbe()
	h.ask()
}

// ask puts the question once more, or claims when it was put often enough.
func (h *heir) ask() {
	q := h.c.detector.Questions()
	asked := int(h.c.asking.round) >= q.Count
	earliest := h.c.detector.Earliest()
	switch {
	case !asked:
	case !h.c.mayClaimOrWait():
		if h.c.candidacy.address.silent.Set {
			return // AddressFree is called when an answer would have come
		}
	case h.c.candidacy.cause == ReasonSilence && h.c.leader != wire.Nobody && h.c.now < earliest:
		// What the margin was when the turn was planned, and what the questions have
		// left of the grace since, need not make up the whole of it.
		h.c.candidacy.answers = clock.Due(earliest)
		return
	default:
		h.c.claim()
		return
	}
	wait := q.Spacing
	if asked {
		// The probe takes longer than the questions, or the address still answers, or nothing
		// is heard. Go on asking, slower, so that the others know that a board asks already.
		wait = max(wait, h.c.askAgain())
	} else if h.c.asking.round++; int(h.c.asking.round) >= q.Count {
		wait = q.Within
	}
	for range h.copies() {
		h.c.sendElection(nil)
	}
	h.askLeader()
	h.c.candidacy.answers = clock.Due(h.c.now + wait)
}

// askLeader puts the question to the leader alone as well: first to the address that it
// holds, whoever that is by now, and in the last round to the leader's own.
func (h *heir) askLeader() {
	switch {
	case h.c.leader == wire.Nobody || h.c.cfg.Fanout == FanoutUnicast:
	case h.c.asking.round == 1:
		h.c.sendFloating(h.c.question())
	case h.lastRound():
		h.c.send(h.c.leader, h.c.question())
	}
}

// AddressFree lets a candidate claim that has been asking meanwhile.
func (h *heir) AddressFree() { h.ask() }

// Expired puts the next question.
func (h *heir) Expired(Deadline) {
	switch {
	case h.c.wokeLate >= silence.RoundTripMin && !h.waited && int(h.c.asking.round) >= h.c.detector.Questions().Count:
		// Perhaps the whole board stood still, and an answer is waiting to be read.
		// Once is enough: a board that is always late must be able to take over.
		h.waited = true
		h.c.candidacy.answers = clock.Due(h.c.now + silence.RoundTripMin)
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
	above := h.c.above(h.c.rankOf(&m.Header), h.c.rank())
	switch h.c.role {
	case Leader:
		// If a heartbeat is overdue this process was late, and what came meanwhile
		// is still to be received. Perhaps the asker leads by now; the heartbeat
		// answers if it does not.
		if !h.c.leading.heartbeat.Reached(h.c.now) {
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
		case above || !h.c.rank().Eligible() || h.c.lastLeader.predecessor == h.c.cfg.ID:
			// The last: this board has resigned, so it must not stand in the way.
			h.missToo(m)
			if h.defersTo(m) {
				h.c.postpone(h.backOff())
			}
		default:
			h.object(m)
			h.secondWitness(m)
		}
	case Listener:
		h.c.keepListening(h.backOff())
	}
}

// copies is how often this round's question is sent: the first one once. After the third
// one the number of rounds does the rest. There is no hurry at a cold start, and where
// everybody is sent a packet of his own they are enough. One copy of the last question goes
// to the leader alone, see askLeader.
func (h *heir) copies() int {
	switch {
	case h.c.asking.round > copiesMax, h.c.coldStart.pending, h.c.cfg.Fanout == FanoutUnicast:
		return 1
	case h.lastRound() && h.c.leader != wire.Nobody:
		return max(copies(h.c.asking.round)-1, 1)
	default:
		return copies(h.c.asking.round)
	}
}

// lastRound reports whether this board has asked as often as it must.
func (h *heir) lastRound() bool { return int(h.c.asking.round) >= h.c.detector.Questions().Count }

// copies is how often a message of a round is sent.
func copies(round uint8) int { return min(max(int(round), 1), copiesMax) }

// replyToCandidate answers a candidate that suspects this leader, by multicast and by broadcast.
// The copies of a question, and others who ask at the same time, get one answer together. The
// next round gets another one. A candidate that is not reached so gets it alone as well.
func (h *heir) replyToCandidate(m *wire.Message) {
	if h.c.now-h.c.heartbeats.repliedAt < silence.RoundTripMin/2 {
		return
	}
	h.c.heartbeats.repliedAt = h.c.now
	round := m.Election.Round
	if m.Election.NoClaim {
		round = 1 // it may be deaf, and goes on asking
	}
	for range copies(round) {
		h.c.sendHeartbeat(true)
	}
	if round > 1 {
		h.c.replyTo(m.Sender)
	}
}

// firstCopy reports whether a question is not a copy of the one that this follower has
// just answered, and notes that it is answered.
func (h *heir) firstCopy(m *wire.Message) bool {
	t := &h.answered
	if t.candidate == m.Sender && t.round == m.Election.Round && h.c.now-t.at < silence.RoundTripMin {
		return false
	}
	t.candidate, t.round, t.at = m.Sender, m.Election.Round, h.c.now
	return true
}

// secondWitness is for a board that hears a board of lower rank ask for the same leader. It
// has its own turn early, even if it overlooks lost heartbeats because it hears badly.
// Otherwise it would keep boards that hear well from taking over.
func (h *heir) secondWitness(m *wire.Message) {
	if h.c.leader == m.Election.Suspect && h.c.lastLeader.incarnation == m.Election.Incarnation {
		turn := max(h.c.now, h.c.detector.Earliest()) + h.TurnDelay()
		h.c.following.turn = h.c.following.turn.Before(turn)
	}
}

// backOff is how long a board waits for one of higher rank that was heard
// asking: several of its questions may be lost, and at a cold start it asks slowly.
func (h *heir) backOff() time.Duration { return max(h.turnStep(), h.c.cfg.Interval/2) }

func (h *heir) stepBack() {
	h.c.becomeFollower(h.c.leader, ReasonOutranked)
	h.c.following.turn = clock.Due(h.c.now + h.backOff())
}

// knowsBetter reports whether this board still trusts its leader, on evidence
// that the candidate does not have.
func (h *heir) knowsBetter(m *wire.Message) bool {
	if h.c.leader == wire.Nobody || h.c.now >= h.c.detector.Freshness() {
		return false
	}
	if h.c.leader != m.Election.Suspect || h.c.lastLeader.incarnation != m.Election.Incarnation {
		return m.Term <= h.c.lastLeader.term
	}
	return h.c.lastLeader.lastHeard > m.Election.LastHeard
}

// sendEvidence tells a candidate when this board last heard the leader, if it is one
// of those that answer.
func (h *heir) sendEvidence(m *wire.Message) {
	if h.c.succession() > witnesses || !h.firstCopy(m) { // the candidate itself counts as one
		return
	}
	answer := h.c.knownOfLeader()
	answer.Round = m.Election.Round
	for range copies(m.Election.Round) {
		h.c.send(m.Sender, wire.Message{Header: wire.Header{Type: wire.TypeAnswer}, Answer: answer})
	}
}

// defersTo reports whether this board leaves it to a candidate to act. One that hears nothing
// may not claim, and would go on asking for ever if its port is deaf: it is waited for once.
func (h *heir) defersTo(m *wire.Message) bool {
	d := &h.deferred
	if !m.Election.NoClaim || d.leader != h.c.leader || d.lastHeard != h.c.lastLeader.lastHeard {
		d.leader, d.lastHeard, d.until = h.c.leader, h.c.lastLeader.lastHeard, h.c.now+h.backOff()
	}
	return h.c.now < d.until
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
	if !h.c.rank().Eligible() || h.c.succession() >= witnesses || !h.firstCopy(m) {
		return
	}
	h.c.send(m.Sender, wire.Message{
		Header: wire.Header{Type: wire.TypeAnswer},
		Answer: wire.Answer{Round: m.Election.Round},
	})
}

// answer receives what another board knows.
func (h *heir) answer(m *wire.Message) {
	if h.c.role != Candidate {
		return
	}
	a := &m.Answer
	switch {
	case a.Leader == wire.Nobody:
		if h.c.above(h.c.rankOf(&m.Header), h.c.rank()) {
			h.stepBack()
		}
	case a.Leader == h.c.cfg.ID:
		// It still follows this board, which asks because it stood still.
	case a.Leader == h.c.leader && a.Incarnation == h.c.lastLeader.incarnation:
		h.evidence(a)
	default:
		p, known := h.c.Peer(a.Leader)
		if known && p.Incarnation == a.Incarnation && m.Term >= h.c.term {
			h.c.becomeFollower(a.Leader, ReasonEvidence)
		}
	}
}

// evidence counts a heartbeat that another board has heard as if it had been
// heard here, at the time when it was.
func (h *heir) evidence(a *wire.Answer) {
	if a.LastHeard <= h.c.lastLeader.lastHeard {
		return
	}
	h.c.lastLeader.lastHeard = a.LastHeard
	h.c.detector.Evidence(h.c.now - a.Age)
	if h.c.now < h.c.detector.Freshness() {
		h.c.becomeFollower(h.c.leader, ReasonEvidence)
		return
	}
	h.c.heardSince()
}

// Heir defines the algorithm heir, the default. All the others are in package literature.
var Heir = Definition{New: newHeir, Detector: silence.DetectorAsk}
