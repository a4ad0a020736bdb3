package election

import (
	"time"

	"topdog/wire"
)

// awaitTurn sets the alarm for this board's turn: when the leader is late, or at
// once when there is none, and later by as much as the boards of higher rank
// need to act first.
func (c *Core) awaitTurn() {
	if !c.rank().Eligible() {
		c.alarms.clear(alarmTurn)
		return
	}
	from := c.now
	if c.leader != wire.Nobody {
		from = c.detector.Freshness()
	}
	c.alarms[alarmTurn] = from + c.algorithm.TurnDelay()
}

// postpone gives a board of higher rank that is at it the time to finish.
func (c *Core) postpone(by time.Duration) {
	if c.rank().Eligible() {
		c.alarms[alarmTurn] = max(c.alarms[alarmTurn], c.now+by)
		if c.alarms[alarmTurn] == never {
			c.alarms[alarmTurn] = c.now + by
		}
	}
}

func (c *Core) myTurn() {
	reason := ReasonSilence
	if c.leader == wire.Nobody {
		reason = ReasonNoLeader
	}
	c.algorithm.Turn(reason)
}

// leaderless is for a board that has learned that its leader is gone.
func (c *Core) leaderless(reason Reason) {
	c.becomeFollower(wire.Nobody, reason)
	if c.rank().Eligible() && c.algorithm.TurnDelay() == 0 {
		c.algorithm.Turn(reason)
	}
}

// succession is how many boards act before this one when the leader is gone.
func (c *Core) succession() int {
	return c.roster.Above(c.now, c.rank(), c.predecessor(), c.above)
}

// predecessor is the leader that this board suspects or has lost, or Nobody.
func (c *Core) predecessor() wire.ID {
	if c.leader != wire.Nobody {
		return c.leader
	}
	return c.absent
}

// resigned takes in a RESIGN: the leader hands over, or a board leaves.
func (c *Core) resigned(m *wire.Message) {
	if m.Priority == 0 {
		c.roster.Peer(m.Sender).Gone = true
	}
	mine := m.Resign.Successor == c.cfg.ID
	switch {
	case c.role == Leader && mine && c.reclaimedAt == c.now: // done already
	case c.role == Leader && mine:
		c.emit(EffectAcquire) // clients may have believed the sender until now
		c.reply()             // perhaps it has not heard the COORDINATOR
	case c.role != Follower && c.role != Candidate:
	case m.Sender != c.leader && (c.leader != wire.Nobody || !mine || m.Term < c.reignTerm):
	case mine && c.crossing(m):
		// Both let go in favour of the other. The higher rank takes it.
		c.becomeFollower(wire.Nobody, ReasonResigned)
		c.postpone(c.cfg.Interval / 2)
	case mine && c.rank().Eligible():
		// One message after the RESIGN the address is back; nothing is asked,
		// since the only board that could object has just let go.
		c.becomeLeader(ReasonHandover)
	case m.Sender == c.leader && m.Resign.Successor != wire.Nobody:
		c.becomeFollower(wire.Nobody, ReasonResigned)
		c.postpone(c.cfg.Interval / 2) // the successor comes first
	case m.Sender == c.leader:
		c.leaderless(ReasonResigned)
	}
}

// compareRanks is called when the rank of this board or of its leader may have changed.
func (c *Core) compareRanks() {
	c.planPreemption()
	c.leaderChanged()
}

// planPreemption sets the alarm for asking for the lead, or clears it.
func (c *Core) planPreemption() {
	wants := c.cfg.Preempt && c.rank().Eligible() && c.outranks(c.leader)
	switch {
	case !wants:
		c.alarms.clear(alarmPreempt)
	case c.alarms[alarmPreempt] == never:
		c.alarms[alarmPreempt] = c.now + preemptAfter*c.cfg.Interval
	}
}

// crossing reports whether a RESIGN in favour of this board has crossed one that
// this board has sent in favour of a sender of higher rank.
func (c *Core) crossing(m *wire.Message) bool {
	return m.Sender == c.yieldedTo && c.now-c.yieldedAt < c.cfg.Interval && c.above(c.rankOf(&m.Header), c.rank())
}

// beg asks the leader for a handover.
func (c *Core) beg() {
	c.send(c.leader, wire.Message{
		Header: wire.Header{Type: wire.TypeQuery},
		Query:  wire.Query{Purpose: wire.PurposeHandover},
	})
}

// askForLead asks a leader of lower rank for a handover, and goes on asking.
func (c *Core) askForLead() {
	c.beg()
	c.alarms[alarmPreempt] = c.now + preemptAfter*c.cfg.Interval
}

// sendQuery asks who leads, as a listener does.
func (c *Core) sendQuery() {
	audience, _ := c.inquiry()
	c.countQuestion()
	m := wire.Message{
		Header: wire.Header{Type: wire.TypeQuery},
		Query:  wire.Query{Purpose: wire.PurposeJoin, Round: uint8(c.asked)},
	}
	if audience == nil {
		c.multicast(m) // to everybody, known or not
	} else {
		c.tell(audience, m)
	}
	c.alarms[alarmQuery] = c.now + c.queryPace()
}

// queryPace is the time until a board that listens asks once more. As long as a foreign
// machine has the address there is no hurry, and everybody listens.
func (c *Core) queryPace() time.Duration {
	if c.retry > 0 {
		return max(c.cfg.Interval/2, probeRetryMin)
	}
	return c.cfg.Interval / 2
}

// sound times the way to the leader and back, so that a candidate knows how long
// an answer may take. Only those boards do it that are next in the succession.
func (c *Core) sound() {
	if c.detectorKind() != DetectorAsk {
		return // nobody waits for as long as an answer takes
	}
	c.soundings++
	c.alarms[alarmSound] = c.now + c.soundingPause()
	if c.leader == wire.Nobody || !c.rank().Eligible() || c.succession() >= witnesses {
		return
	}
	c.asked = 0
	c.countQuestion()
	c.send(c.leader, wire.Message{
		Header: wire.Header{Type: wire.TypeQuery},
		Query:  wire.Query{Purpose: wire.PurposeJoin},
	})
}

func (c *Core) soundingPause() time.Duration {
	if c.soundings < soundingsAtOnce {
		return max(c.cfg.Interval, soundMin)
	}
	return soundEvery
}

// countQuestion remembers when a series of questions began and ended, to time the answer.
func (c *Core) countQuestion() {
	if c.asked == 0 {
		c.askedAt = c.now
	}
	c.askedLast = c.now
	c.asked++
}

// sendHello makes this board known, more rarely the more boards there are.
func (c *Core) sendHello() {
	if c.role == Isolated || c.role == Barred {
		return
	}
	if c.role != Candidate {
		c.weigh() // nobody's importance changes while boards compare it
	}
	c.sayHello(wire.Nobody)
	c.alarms[alarmHello] = c.now + c.helloEvery()
}

// helloEvery is how often this board says HELLO.
func (c *Core) helloEvery() time.Duration {
	return max(helloFloor, time.Duration(c.roster.Live(c.now)+1)*helloShare)
}

// sayHello makes this board known to one board, or to all.
func (c *Core) sayHello(to wire.ID) {
	c.send(to, wire.Message{
		Header: wire.Header{Type: wire.TypeHello},
		Hello: wire.Hello{
			Following: c.leader,
			Age:       (c.now - c.startedAt).Truncate(time.Second),
			Interval:  c.helloEvery(),
			Name:      c.cfg.Name,
			Score:     c.score,
		},
	})
}

// sendElection asks whether the suspect lives, and says that this board is about
// to act. It concerns the audience, or everybody if that is nil.
func (c *Core) sendElection(audience []wire.ID) {
	c.countQuestion()
	c.tell(audience, wire.Message{
		Header: wire.Header{Type: wire.TypeElection},
		Election: wire.Election{
			Suspect: c.leader, Incarnation: c.leaderIncarnation,
			LastHeard: c.lastHeard, Round: c.round, Score: c.score,
		},
	})
}

// HandoverRequests is how often a board asks a living leader of lower rank to hand over.
const HandoverRequests = 3

// claim ends a candidacy that nobody objected to. The papers know no address that
// two boards must not hold at the same time. So, as a mend of ours, a board that
// outranks a living leader, which therefore nobody has asked, has it let go first.
func (c *Core) claim() {
	switch {
	case !c.incumbent():
	case c.begs == HandoverRequests:
		c.becomeFollower(c.leader, ReasonLeaderAlive)
		return
	default:
		c.begs++
		c.beg()
		c.alarms[alarmAsk] = c.now + c.detector.Questions().Duration()
		return
	}
	reason := c.cause
	if reason == ReasonSilence {
		reason = ReasonUnanswered
	}
	c.becomeLeader(reason)
}

// incumbent reports whether a leader that this candidate outranks is alive.
func (c *Core) incumbent() bool {
	return c.definition.HighestLeads && c.outranks(c.leader) && c.now < c.detector.Freshness()
}

// startProbe asks for a probe of the address, before the first claim at a cold
// start only: when there is no hurry, nothing is lost by making sure that no
// foreign machine has it.
func (c *Core) startProbe() {
	if c.cold && c.probe == probeNone {
		c.probe = probePending
		c.emit(EffectProbe)
	}
}

// mayClaim reports whether nothing but the algorithm stands between a candidate and the lead.
func (c *Core) mayClaim() bool { return !c.cold || c.probe == probeFree }
