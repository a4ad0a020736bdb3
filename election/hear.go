package election

import (
	"topdog/election/clock"
	"topdog/wire"
)

// Step receives a message that was authenticated and found to be no replay.
func (c *Core) Step(now Instant, m *wire.Message) []Effect {
	c.enter(now)
	if !c.second.present {
		c.evidence.at = c.now // this board's port receives
		if m.Sender != c.leader {
			c.evidence.othersAt = c.now
		}
	}
	if !c.admit(m) {
		return c.effects
	}
	was, _ := c.Peer(m.Sender) // what was known of it until now
	c.second.copied = c.cfg.SecondPath && was.Incarnation == m.Incarnation && was.Newest() == m.Sequence
	p := c.roster.Heard(c.now, &m.Header, c.second.present)
	if p == nil {
		c.notify(Notice{Kind: NoticeRosterFull, Board: m.Sender})
		return c.effects
	}
	p.LearnScore(m)
	if m.Type == wire.TypeCoordinator && len(m.Coordinator.Candidates) > 0 {
		c.algorithm.Step(Event{Kind: EventCandidates, Message: m})
	}
	if c.votes.needed() {
		c.observe(m)
	}
	if c.role != Leader && !c.besideLeader(m) {
		c.term = max(c.term, m.Term)
	}
	if c.named.Set && !c.heededByNamed(m) {
		return c.effects
	}
	if c.role == Leader {
		c.leaderHears(m, &was)
	} else {
		c.otherHears(m, &was)
	}
	if m.Leading && m.Sender == c.leader {
		c.lastLeader.term = m.Term
	}
	if c.role == Leader && !c.paths.direct {
		c.paths.multicastAt, c.paths.noMulticast = c.now, false // multicast reaches this leader, which hears no heartbeats
	}
	c.heardBySecondPath(m)
	c.dispatch(m)
	if c.role == Follower && m.Sender == c.leader && m.Grade != was.Grade {
		c.compareRanks()
	}
	c.considerYield()
	c.beginAnew()
	return c.effects
}

// heededByNamed reports whether a board that was named heeds a message before it claims. Only a leader keeps it from that, or
// a RESIGN that names another board. What others ask and answer comes again. With an election of its own under way, this board
// needs all that it hears.
func (c *Core) heededByNamed(m *wire.Message) bool {
	return m.Leading || m.Type == wire.TypeResign || m.Type == wire.TypeHello || c.candidacy.request.open
}

// StepDirect is Step for a message that came by unicast or broadcast.
func (c *Core) StepDirect(now Instant, m *wire.Message) []Effect {
	c.paths.direct = true
	effects := c.Step(now, m)
	c.paths.direct = false
	return effects
}

// HeardMulticast tells that a copy has come by multicast of a message that came by another way before.
func (c *Core) HeardMulticast(now Instant, sender wire.ID) {
	if sender == c.leader || c.role == Leader {
		c.paths.multicastAt, c.paths.noMulticast = max(c.paths.multicastAt, now), false
	}
}

// admit reports whether a message concerns this board, and is not late.
func (c *Core) admit(m *wire.Message) bool {
	switch {
	case c.role == Isolated || m.Sender == c.cfg.ID || m.Sender == wire.Nobody:
		return false
	case m.Algorithm != c.cfg.Algorithm:
		c.resolveConflict(Notice{
			Kind: NoticeOtherAlgorithm, Board: m.Sender,
			algorithm: m.Algorithm, ours: c.cfg.Algorithm,
		}, ReasonOtherAlgorithm, m)
		return false
	case c.role == Barred, c.ofFormerLife(m):
		return false
	case c.late(m):
		c.overtaken(m)
		return false
	}
	return true
}

// ofFormerLife reports whether a message by the second path, which may be slow, is of the incarnation before the one that this board
// hears. Each path has its own guard against recordings.
func (c *Core) ofFormerLife(m *wire.Message) bool {
	p := c.roster.Peer(m.Sender)
	return c.second.present && p != nil && p.Former == m.Incarnation && m.Incarnation != 0
}

// late reports whether a message was overtaken by a later one of the same
// board: it comes by another path, or the network reorders. What it says of its
// sender is no longer true, and would make a board that has resigned a leader again.
func (c *Core) late(m *wire.Message) bool {
	p := c.roster.Peer(m.Sender)
	return p != nil && p.Incarnation == m.Incarnation && m.Sequence < p.Newest()
}

// overtaken receives a message that is late. What it says of its sender is no longer true,
// but an answer to a question of this board still is one. It comes by unicast, and a
// multicast that was sent right behind it may well be read first, from another socket. So may what the leader
// broadcasts right behind a heartbeat. That heartbeat still tells that the leader is in time, if it still leads.
// The second path is slower than the first, so what comes by it often was overtaken. It still shows that this path works.
func (c *Core) overtaken(m *wire.Message) {
	if c.second.present {
		c.roster.Peer(m.Sender).SecondPathAt = c.now
		c.heardBySecondPath(m)
	}
	switch m.Type {
	case wire.TypeHeartbeat:
		newer := m.Term == c.lastLeader.term && (m.Sequence > c.lastLeader.lastHeard || c.second.present)
		if m.Sender == c.leader && newer && c.roster.Peer(m.Sender).Leading {
			c.receiveHeartbeat(m, m.Heartbeat)
		}
	case wire.TypeElection:
		c.missedOnFirstPath(m)
	case wire.TypeQuery:
		if m.Leading && c.second.present && c.role == Follower {
			c.tellWhetherReceives(m)
		}
	case wire.TypeAnswer, wire.TypeStart, wire.TypeAck, wire.TypeReport, wire.TypeSupport, wire.TypeGrant:
		c.algorithm.Step(Event{Kind: EventMessage, Message: m})
	}
}

// leaderHears is for a leader that hears any message: the sender may lead as well, may have led until now, or may know of a
// higher term, so that somebody else has led meanwhile.
func (c *Core) leaderHears(m *wire.Message, was *Peer) {
	c.hearDeposed(m)
	led := was.Leading && was.Incarnation == m.Incarnation
	switch exceeded := m.Term > c.term && !c.second.present; {
	case m.Leading:
		c.hearRival(m)
	case !led && !exceeded:
	case c.votes.needed():
		c.hearFormerRival(m)
	case led:
		// A rival has given up. Boards that followed it, and clients that sent to it, must hear
		// of this board again.
		c.reclaim(m.Term)
	default:
		c.hearExceeded(m)
	}
}

// otherHears is for a board without the lead that hears any message: of a leader, or of its own leader that leads no more.
func (c *Core) otherHears(m *wire.Message, was *Peer) {
	if m.Leading && m.Sender == c.leader {
		c.named = clock.Deadline{} // it has taken the lead back
	}
	switch {
	case m.Leading && c.role == Listener:
		c.listenerHearsLeader(m)
	case m.Leading && c.role == Candidate:
		c.candidateHearsLeader(m)
	case m.Leading:
		c.followerHearsLeader(m)
	case m.Sender != c.leader:
	case was.ID != wire.Nobody && was.Incarnation != m.Incarnation:
		c.leaderless(ReasonRestarted)
	case m.Type != wire.TypeResign && !c.named.Set:
		c.leaderless(ReasonResigned) // its RESIGN was lost
	}
}

// listenerHearsLeader makes a listener that has found a leader its follower.
func (c *Core) listenerHearsLeader(m *wire.Message) {
	if m.Reply && c.asking.count == 1 && !c.second.present {
		c.timeAnswer() // of several queries, the first may have come before anybody led
	}
	c.becomeFollower(m.Sender, ReasonHeardLeader)
	c.happens(EventJoined)
}

// followerHearsLeader finds out whether a leader that a follower hears is its own, its own
// after a restart, or a new one.
func (c *Core) followerHearsLeader(m *wire.Message) {
	leader := c.roster.Peer(c.leader)
	late := c.now >= c.detector.Freshness()
	switch {
	case c.besideLeader(m):
	case m.Sender == c.leader:
		if c.lastLeader.incarnation != m.Incarnation {
			c.becomeFollower(m.Sender, ReasonRestarted)
		}
	case leader == nil, m.Term > c.lastLeader.term,
		m.Term == c.lastLeader.term && (late || c.Above(c.rankOf(&m.Header), leader.Rank())):
		c.becomeFollower(m.Sender, ReasonProclaimed)
		c.happens(EventLeader)
	}
}

// candidateHearsLeader ends a candidate's suspicion, or its wait for a new leader.
func (c *Core) candidateHearsLeader(m *wire.Message) {
	if m.Sender == c.leader {
		if c.second.present {
			if c.suspectsLeader() {
				c.vouch()
			}
			return
		}
		c.answeredLate()
		if m.Reply && c.asking.count > 0 {
			c.timeAnswer()
		}
		if c.suspectsLeader() || m.Type == wire.TypeCoordinator && !m.Reply || c.waitsInVain(m) {
			// Any message shows that it lives. Without this the board would suspect it again at once.
			c.detector.Evidence(c.now)
			c.becomeFollower(m.Sender, ReasonLeaderAlive)
		}
		return
	}
	if c.leader != wire.Nobody && m.Term < c.lastLeader.term {
		return // a former leader; its successor will tell it
	}
	c.becomeFollower(m.Sender, ReasonProclaimed)
	c.happens(EventLeader)
}

// dispatch receives what a message is about. What the core has no use for is the algorithm's.
func (c *Core) dispatch(m *wire.Message) {
	switch {
	case m.Type == wire.TypeHeartbeat:
		c.receiveHeartbeat(m, m.Heartbeat)
	case m.Type == wire.TypeCoordinator && m.Coordinator.Coordinator == m.Sender:
		first := &m.Coordinator
		c.receiveHeartbeat(m, wire.Heartbeat{Interval: first.Interval, Grace: first.Grace, Number: first.Number})
		c.algorithm.Step(Event{Kind: EventMessage, Message: m})
	case m.Type == wire.TypeRival:
		// It is for a leader, see hearRival.
	case m.Type == wire.TypeHello:
		c.receiveHello(m)
	case m.Type == wire.TypePause:
		c.receivePause(m)
	case m.Type == wire.TypeQuery:
		c.receiveQuery(m)
	case m.Type == wire.TypeResign:
		c.receiveResign(m)
	default:
		c.algorithm.Step(Event{Kind: EventMessage, Message: m})
	}
}

// receiveHeartbeat feeds the failure detector.
func (c *Core) receiveHeartbeat(m *wire.Message, heartbeat wire.Heartbeat) {
	if c.role != Follower && c.role != Candidate || m.Sender != c.leader {
		return
	}
	if c.second.present {
		if c.votes.needed() {
			c.acknowledge(m, heartbeat.Interval, heartbeat.Grace)
		}
		return
	}
	c.second.vouched, c.second.vouches = 0, 0
	if c.answersQuestion(m, heartbeat) {
		c.timeAnswer()
	}
	c.notePath()
	c.lastLeader.forgiven = false
	c.lastLeader.lastNumber = heartbeat.Number
	if c.grace.Hear(c.now, c.leader, &heartbeat) {
		c.wishSoon()
	}
	c.detector.Heard(c.now, heartbeat)
	c.lastLeader.lastHeard = max(c.lastLeader.lastHeard, m.Sequence)
	switch c.role {
	case Follower:
		c.awaitTurn()
	case Candidate:
		c.heardSince() // it joins, say, and goes on with its election
	}
	if c.votes.needed() {
		c.acknowledge(m, heartbeat.Interval, heartbeat.Grace)
	}
}

// receiveHello completes the sender's entry in the roster.
func (c *Core) receiveHello(m *wire.Message) {
	p := c.roster.Peer(m.Sender)
	if m.Hello.NoMulticast && !p.NoMulticast {
		c.notify(Notice{Kind: NoticeNoMulticast, Board: m.Sender}) // once: a status says as long as it is so
	}
	p.Follow(c.now, c.cfg.ID, &m.Hello)
	if c.paths.direct && !c.second.present && m.Hello.Following == c.cfg.ID {
		c.evidence.answeredAt = c.now
	}
	c.hearWish(m)
	if c.role == Follower && m.Sender == c.leader {
		c.compareRanks() // its rank may be another one now
	}
}

// receiveQuery answers a board that joins, or hands over to one that outranks this leader.
func (c *Core) receiveQuery(m *wire.Message) {
	if m.Query.Purpose != wire.PurposeHandover {
		c.answerQuery(m)
		return
	}
	r := c.rankOf(&m.Header)
	if c.role == Leader && r.Eligible() && r.Grade == wire.GradePassing && c.Above(r, c.rank()) && !c.paused() {
		c.resign(m.Sender, ReasonPreempted)
	}
}

// answerQuery has the leader tell a board that joins whom to follow. The papers
// assume that all know the ranks of all. Where ELECTIONs are unicast a board learns
// the rank of another one only from its next HELLO, so that one is due at once.
func (c *Core) answerQuery(m *wire.Message) {
	if !m.Leading && (m.Query.Round == 1 || m.Query.Round > 1 && c.paused()) {
		c.tellNewcomer(m.Sender) // the first question of a board that nobody knows is only challenged, see wire.Guard
	}
	switch {
	case m.Leading && c.second.present:
		c.tellWhetherReceives(m)
	case m.Leading && c.role == Follower && m.Sender == c.leader:
		if c.succession() < witnesses || c.cfg.SecondPath && m.Query.Round > hearingQuestions/2 {
			// Some answer that its port receives. All do if it goes on asking: those may be cut off on the first path.
			c.sayHello(m.Sender)
		}
	case c.algorithm.Step(Event{Kind: EventQuery, Message: m}):
	case c.role == Leader:
		c.replyTo(m.Sender)
	case c.cfg.Fanout == FanoutUnicast && m.Query.Round == 1:
		c.sayHello(m.Sender)
	}
}

// receiveResign receives a RESIGN: the leader hands over, or a board leaves.
func (c *Core) receiveResign(m *wire.Message) {
	if m.Priority == 0 {
		c.roster.Leaves(m.Sender)
	}
	named := m.Resign.Successor == c.cfg.ID
	switch {
	case c.role == Leader && named && c.leading.reclaimedAt != c.now && !c.second.copied: // else that has been done already
		c.acquire() // clients may have sent to that board until now
		c.reply()   // perhaps it has not heard the COORDINATOR
	case c.role == Follower || c.role == Candidate:
		c.hearLeaderResign(m, named)
	}
}

// hearLeaderResign is for a board without the lead that hears a RESIGN. If it is named it
// leads at once: one message after the RESIGN the address is back. Nothing is asked,
// since the only board that could object has just released it. But what has arrived behind the RESIGN is read
// first: if this board stood still, another one was named meanwhile, and may lead by now.
func (c *Core) hearLeaderResign(m *wire.Message, named bool) {
	mine := m.Sender == c.leader
	switch {
	case !mine && (c.leader != wire.Nobody || !named || m.Term < c.lastLeader.term):
		// It is not the leader of this board, nor one whose RESIGN this board awaits.
	case named && c.crossing(m):
		// Both have released the address in favour of the other. The higher rank acquires it.
		c.becomeFollower(wire.Nobody, ReasonResigned)
		c.postpone(c.successorFirst())
	case named && c.rank().Eligible():
		c.named = clock.Due(c.now)
	case mine && m.Resign.Successor != wire.Nobody:
		c.becomeFollower(wire.Nobody, ReasonResigned)
		c.postpone(c.successorFirst())
	case mine:
		c.leaderless(ReasonResigned)
	}
}
