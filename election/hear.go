package election

import "topdog/wire"

// hearLeader receives any message of a board that leads, whatever else it says.
func (c *Core) hearLeader(m *wire.Message) {
	switch c.role {
	case Leader:
		c.hearRival(m)
	case Listener:
		c.listenerHearsLeader(m)
	case Candidate:
		c.candidateHearsLeader(m)
	case Follower:
		c.followerHearsLeader(m)
	}
	if c.role != Leader && m.Sender == c.leader {
		c.lastLeader.term = m.Term
	}
}

// listenerHearsLeader makes a listener that has found a leader its follower.
func (c *Core) listenerHearsLeader(m *wire.Message) {
	if m.Reply && c.asking.count == 1 {
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

// hearOther receives any message of a board that does not lead.
func (c *Core) hearOther(m *wire.Message, was past, exceeded bool) {
	switch {
	case c.role == Leader && (was.led || exceeded) && c.votes.needed():
		c.hearFormerRival(m)
	case c.role == Leader && was.led:
		// A rival has given up. Boards that followed it, and clients that sent to it, must hear
		// of this board again.
		c.reclaim(m.Term)
	case c.role == Leader && exceeded:
		c.hearExceeded(m)
	case m.Sender == c.leader && was.restarted:
		c.leaderless(ReasonRestarted)
	case m.Sender == c.leader && m.Type != wire.TypeResign:
		c.leaderless(ReasonResigned) // its RESIGN was lost
	}
}

// receiveHeartbeat feeds the failure detector.
func (c *Core) receiveHeartbeat(m *wire.Message, heartbeat wire.Heartbeat) {
	if c.role != Follower && c.role != Candidate || m.Sender != c.leader {
		return
	}
	if c.answersQuestion(m, heartbeat) {
		c.timeAnswer()
	}
	c.notePath()
	c.lastLeader.forgiven = false
	c.lastLeader.lastNumber = heartbeat.Number
	if c.grace.Hear(c.now, c.leader, &heartbeat) {
		c.wishSoon()
	}
	c.allow()
	c.detector.Heard(c.now, heartbeat)
	c.lastLeader.lastHeard = max(c.lastLeader.lastHeard, m.Sequence)
	switch c.role {
	case Follower:
		c.awaitTurn()
	case Candidate:
		c.heardSince() // it joins, say, and goes on with its election
	}
	if c.votes.needed() {
		c.support(m, heartbeat.Interval, heartbeat.Grace)
	}
}

// receiveHello completes the sender's entry in the roster.
func (c *Core) receiveHello(m *wire.Message) {
	p := c.roster.Peer(m.Sender)
	if m.Hello.NoMulticast && !p.NoMulticast {
		c.notify(Notice{Kind: NoticeNoMulticast, Board: m.Sender}) // once: a status says as long as it is so
	}
	p.Follow(c.now, c.cfg.ID, &m.Hello)
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
	case m.Leading && c.role == Follower && m.Sender == c.leader:
		if c.succession() < witnesses { // some answer that its port receives, and not all
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
	case c.role == Leader && named && c.leading.reclaimedAt != c.now: // else that has been done already
		c.acquire() // clients may have sent to that board until now
		c.reply()   // perhaps it has not heard the COORDINATOR
	case c.role == Follower || c.role == Candidate:
		c.hearLeaderResign(m, named)
	}
}

// hearLeaderResign is for a board without the lead that hears a RESIGN. If it is named it
// leads at once: one message after the RESIGN the address is back. Nothing is asked,
// since the only board that could object has just released it.
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
		c.lead(ReasonHandover)
	case mine && m.Resign.Successor != wire.Nobody:
		c.becomeFollower(wire.Nobody, ReasonResigned)
		c.postpone(c.successorFirst())
	case mine:
		c.leaderless(ReasonResigned)
	}
}
