package election

import "topdog/wire"

// Step receives a message that was authenticated and found to be no replay.
func (c *Core) Step(now Instant, m *wire.Message) []Effect {
	c.enter(now)
	c.evidence.at = c.now // this board's port receives
	if !c.admit(m) {
		return c.effects
	}
	was := c.before(m)
	if !c.learn(m) {
		return c.effects
	}
	if c.votes.needed() {
		c.observe(m)
	}
	exceeded := c.learnTerm(m)
	c.hearDeposed(m)
	if m.Leading {
		c.hearLeader(m)
	} else {
		c.hearOther(m, was, exceeded)
	}
	if c.role == Leader && !c.paths.direct {
		c.paths.multicastAt, c.paths.noMulticast = c.now, false // multicast reaches this leader, which hears no heartbeats
	}
	c.dispatch(m)
	if c.role == Follower && m.Sender == c.leader && m.Grade != was.grade {
		c.compareRanks()
	}
	c.considerYield()
	c.beginAnew()
	return c.effects
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
	case c.role == Barred:
		return false
	case c.late(m):
		c.overtaken(m)
		return false
	}
	return true
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
func (c *Core) overtaken(m *wire.Message) {
	switch m.Type {
	case wire.TypeHeartbeat:
		if m.Sender == c.leader && m.Term == c.lastLeader.term && m.Sequence > c.lastLeader.lastHeard && c.roster.Peer(m.Sender).Leading {
			c.receiveHeartbeat(m, m.Heartbeat)
		}
	case wire.TypeAnswer, wire.TypeStart, wire.TypeAck, wire.TypeReport, wire.TypeSupport, wire.TypeGrant:
		c.algorithm.Step(Event{Kind: EventMessage, Message: m})
	}
}

// past is what a message changes in what is known of its sender.
type past struct {
	led       bool // it led, in this incarnation
	restarted bool // it is in another incarnation
	grade     wire.Grade
}

// before looks at what the roster said of the sender until now.
func (c *Core) before(m *wire.Message) past {
	p := c.roster.Peer(m.Sender)
	if p == nil {
		return past{}
	}
	restarted := p.Incarnation != m.Incarnation
	return past{led: p.Leading && !restarted, restarted: restarted, grade: p.Grade}
}

// learn enters what a message tells of its sender. It returns false when there is no room
// for one more board.
func (c *Core) learn(m *wire.Message) bool {
	p := c.roster.Heard(c.now, &m.Header)
	if p == nil {
		c.notify(Notice{Kind: NoticeRosterFull, Board: m.Sender})
		return false
	}
	p.LearnScore(m)
	if m.Type == wire.TypeCoordinator && len(m.Coordinator.Candidates) > 0 {
		c.algorithm.Step(Event{Kind: EventCandidates, Message: m})
	}
	return true
}

// learnTerm keeps the highest term heard, unless this board leads. exceeded says that it
// leads, and that a board which does not lead knows of a higher term: somebody else has led
// meanwhile.
func (c *Core) learnTerm(m *wire.Message) (exceeded bool) {
	switch {
	case m.Term <= c.term:
		return false
	case c.role == Leader:
		return !m.Leading // else it is a rival, and hearRival needs to see both terms
	}
	c.term = m.Term
	return false
}

// dispatch receives what a message is about. What the core has no use for is the algorithm's.
func (c *Core) dispatch(m *wire.Message) {
	switch {
	case m.Type == wire.TypeHeartbeat:
		c.receiveHeartbeat(m, m.Heartbeat)
	case m.Type == wire.TypeCoordinator && m.Coordinator.Coordinator == m.Sender:
		c.receiveHeartbeat(m, wire.Heartbeat{Interval: m.Coordinator.Interval, Grace: m.Coordinator.Grace, Number: m.Coordinator.Number})
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
