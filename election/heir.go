package election

import (
	"time"

	"topdog/wire"
)

// heir is the bully algorithm made fast: who takes over is known before it is
// needed, so a takeover costs one message. When the leader is late its heir
// asks for it, a few times within a few milliseconds; one reply of anybody who
// knows better ends the suspicion, and silence ends the reign. The others wait
// for their turn by rank, so a dead heir costs one step more.
//
// In the steady state there is one HEARTBEAT per interval, whatever the number
// of boards. A takeover is k rounds of ELECTIONs and one COORDINATOR, all multicast.
type heir struct {
	plain
	waited bool // a candidate that woke up late has given the last answer more time

	// told is the last question that this follower has answered.
	told struct {
		candidate wire.ID
		round     uint8
		at        Instant
	}
}

// witnesses is how many followers answer a candidate that has missed a
// heartbeat which they have heard: enough to survive loss, and few enough that a
// lost heartbeat in a group of 255 is not followed by 254 answers.
const witnesses = 3

func (h *heir) number() wire.Algorithm { return wire.AlgorithmHeir }

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

// pace is the time that each board of higher rank is given to act first: to ask
// as often as it must, and to be heard. Where heartbeats get lost, each board misses
// others; there it is an interval at least, so that the next one comes first and not all
// who are next in the succession ask as well.
func (h *heir) pace() time.Duration {
	quality := h.detector.Quality()
	q := quality.Questions
	pace := q.Duration() + 2*q.Spacing + Grace(h.cfg.Interval)
	if quality.Loss >= lossHeeded {
		return max(pace, h.cfg.Interval)
	}
	return pace
}

func (h *heir) patience() time.Duration {
	return time.Duration(h.succession()) * h.pace()
}

func (h *heir) turn(reason Reason) {
	if h.role == Listener && (!h.rank().Eligible() || h.succession() > 0) {
		// At a cold start all have listened for equally long.
		h.becomeFollower(wire.Nobody, reason)
		return
	}
	if !h.rank().Eligible() {
		return
	}
	h.becomeCandidate(reason)
	h.waited = false
	h.startProbe()
	h.ask()
}

// ask puts the question once more, or claims when it was put often enough.
func (h *heir) ask() {
	q := h.detector.Questions()
	asked := int(h.round) >= q.Count
	earliest := h.detector.Earliest()
	switch {
	case !asked || !h.mayClaim():
	case h.cause == ReasonSilence && h.leader != wire.Nobody && h.now < earliest:
		// What the margin was when the turn was planned, and what the questions have
		// left of the grace since, need not make up the whole of it.
		h.alarms[alarmAsk] = earliest
		return
	default:
		h.claim()
		return
	}
	wait := q.Spacing
	if asked {
		// The probe takes longer than the questions. Go on asking, slower, so that
		// the others know that somebody is at it.
		wait = max(wait, h.cfg.Interval/5)
	} else if h.round++; int(h.round) >= q.Count {
		wait = q.Within
	}
	for range h.copies() {
		h.sendElection(nil)
	}
	h.alarms[alarmAsk] = h.now + wait
}

func (h *heir) wake(a alarm) {
	switch {
	case a != alarmAsk || h.role != Candidate:
	case h.wokeLate >= roundTripMin && !h.waited && int(h.round) >= h.detector.Questions().Count:
		// Perhaps the whole board stood still, and an answer is waiting to be read.
		// Once is enough: a board that is always late must be able to take over.
		h.waited = true
		h.alarms[alarmAsk] = h.now + roundTripMin
	default:
		h.ask()
	}
}

func (h *heir) bullies() bool { return false }

func (h *heir) step(m *wire.Message) {
	switch m.Type {
	case wire.TypeElection:
		h.election(m)
	case wire.TypeAnswer:
		h.answer(m)
	}
}

// election takes in the question of another board.
func (h *heir) election(m *wire.Message) {
	above := h.above(h.rankOf(&m.Header), h.rank())
	switch h.role {
	case Leader:
		// If a heartbeat is overdue this process was late, and what came meanwhile
		// is still to be taken in. Perhaps the asker leads by now; the heartbeat
		// answers if it does not.
		if h.alarms[alarmHeartbeat] > h.now {
			h.reassure(m.Election.Round)
		}
	case Candidate:
		if above {
			h.stepBack()
		} else {
			h.object(m)
		}
	case Follower:
		switch {
		case h.knowsBetter(m):
			h.testify(m)
		case above || !h.rank().Eligible() || h.absent == h.cfg.ID:
			// The last: this board has resigned, so it must not stand in the way.
			h.postpone(h.courtesy())
		default:
			h.object(m)
			h.secondWitness(m)
		}
	case Listener:
		h.alarms[alarmListen] = max(h.alarms[alarmListen], h.now+h.courtesy())
	}
}

// copies is how often this round's question is sent: the first one once. After the third
// one the number of rounds does the rest. There is no hurry at a cold start, and where
// everybody is sent a packet of his own they are enough.
func (h *heir) copies() int {
	if h.round > copiesMax || h.cold || h.cfg.Fanout == FanoutUnicast {
		return 1
	}
	return copies(h.round)
}

// copies is how often a message of a round is sent.
func copies(round uint8) int { return min(max(int(round), 1), copiesMax) }

// reassure answers a candidate that doubts this leader. What it has lost already was
// a heartbeat at least, so even the first answer is sent twice. One answer does for the
// copies of a question, and for others who ask at the same time, but not for the next round.
func (h *heir) reassure(round uint8) {
	if h.now-h.repliedAt < roundTripMin/2 {
		return
	}
	h.repliedAt = h.now
	for range copies(round + 1) {
		h.sendHeartbeat(true)
	}
}

// tells reports whether a follower that may answer a candidate's question does: the
// copies of a question are answered once.
func (h *heir) tells(m *wire.Message) bool {
	t := &h.told
	if t.candidate == m.Sender && t.round == m.Election.Round && h.now-t.at < roundTripMin {
		return false
	}
	t.candidate, t.round, t.at = m.Sender, m.Election.Round, h.now
	return true
}

// secondWitness is for a board of higher rank than one that misses the same leader: even
// if it overlooks lost heartbeats, because it hears badly, it looks for itself now.
// Otherwise it would keep boards that hear well from taking over.
func (h *heir) secondWitness(m *wire.Message) {
	if h.leader == m.Election.Suspect && h.leaderIncarnation == m.Election.Incarnation {
		turn := max(h.now, h.detector.Earliest()) + h.patience()
		h.alarms[alarmTurn] = min(h.alarms[alarmTurn], turn)
	}
}

// courtesy is how long a board waits for one of higher rank that was heard
// asking: several of its questions may be lost, and at a cold start it asks slowly.
func (h *heir) courtesy() time.Duration { return max(h.pace(), h.cfg.Interval/2) }

func (h *heir) stepBack() {
	h.becomeFollower(h.leader, ReasonOutranked)
	h.alarms[alarmTurn] = h.now + h.courtesy()
}

// knowsBetter reports whether this board still trusts its leader, on evidence
// that the candidate does not have.
func (h *heir) knowsBetter(m *wire.Message) bool {
	if h.leader == wire.Nobody || h.now >= h.detector.Freshness() {
		return false
	}
	if h.leader != m.Election.Suspect || h.leaderIncarnation != m.Election.Incarnation {
		return m.Term <= h.reignTerm
	}
	return h.lastHeard > m.Election.LastHeard
}

// testify tells a candidate when this board last heard the leader, if it is one
// of those that answer.
func (h *heir) testify(m *wire.Message) {
	if h.succession() > witnesses || !h.tells(m) { // the candidate itself counts as one
		return
	}
	for range copies(m.Election.Round) {
		h.send(m.Sender, wire.Message{
			Header: wire.Header{Type: wire.TypeAnswer},
			Answer: wire.Answer{
				Leader: h.leader, Incarnation: h.leaderIncarnation, LastHeard: h.lastHeard,
				Age:   h.detector.Age(h.now),
				Round: m.Election.Round,
			},
		})
	}
}

// object tells a candidate that a board of higher rank is alive. Some do, and not
// all: while the address is taken by a foreign machine, everybody asks time and again.
func (h *heir) object(m *wire.Message) {
	if !h.rank().Eligible() || h.succession() >= witnesses || !h.tells(m) {
		return
	}
	h.send(m.Sender, wire.Message{
		Header: wire.Header{Type: wire.TypeAnswer},
		Answer: wire.Answer{Round: m.Election.Round},
	})
}

// answer takes in what another board knows.
func (h *heir) answer(m *wire.Message) {
	if h.role != Candidate {
		return
	}
	a := &m.Answer
	switch {
	case a.Leader == wire.Nobody:
		if h.above(h.rankOf(&m.Header), h.rank()) {
			h.stepBack()
		}
	case a.Leader == h.cfg.ID:
		// It still follows this board, which asks because it overslept.
	case a.Leader == h.leader && a.Incarnation == h.leaderIncarnation:
		h.evidence(a)
	default:
		p := h.roster.Peer(a.Leader)
		if p != nil && p.Incarnation == a.Incarnation && m.Term >= h.term {
			h.becomeFollower(a.Leader, ReasonEvidence)
		}
	}
}

// evidence counts a heartbeat that another board has heard as if it had been
// heard here, at the time when it was.
func (h *heir) evidence(a *wire.Answer) {
	if a.LastHeard <= h.lastHeard {
		return
	}
	h.lastHeard = a.LastHeard
	h.detector.Evidence(h.now - a.Age)
	if h.now < h.detector.Freshness() {
		h.becomeFollower(h.leader, ReasonEvidence)
	}
}
