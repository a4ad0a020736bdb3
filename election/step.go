package election

import (
	"time"

	"topdog/wire"
)

// Step takes in a message that was authenticated and found to be no replay.
func (c *Core) Step(now Instant, m *wire.Message) []Effect {
	c.enter(now)
	if c.role == Isolated || m.Sender == c.cfg.ID || m.Sender == wire.Nobody {
		return c.effects
	}
	if m.Algorithm != c.cfg.Algorithm {
		c.conflict(Notice{
			Kind: NoticeOtherAlgorithm, Board: m.Sender,
			Algorithm: m.Algorithm, Ours: c.cfg.Algorithm,
		}, ReasonOtherAlgorithm, m)
		return c.effects
	}
	if c.role == Barred {
		return c.effects
	}
	if c.late(m) {
		c.overtaken(m)
		return c.effects
	}
	was := c.before(m)
	p := c.roster.Heard(c.now, &m.Header)
	if p == nil {
		c.noticeOnce(Notice{Kind: NoticeRosterFull, Board: m.Sender})
		return c.effects
	}
	learnScore(p, m)
	if ids := m.Coordinator.Candidates; m.Type == wire.TypeCoordinator && len(ids) > 0 && c.hooks.candidates != nil {
		c.hooks.candidates.LearnCandidates(ids)
	}
	exceeded := c.learnTerm(m)
	if m.Leading {
		c.hearLeader(m)
	} else {
		c.hearOther(m, was, exceeded)
	}
	c.dispatch(m)
	return c.effects
}

// past is what a message changes in what is known of its sender.
type past struct {
	led       bool // it led, in this incarnation
	restarted bool // it is in another incarnation
}

// late reports whether a message was overtaken by a later one of the same
// board: it comes by another path, or the network reorders. What it says of its
// sender is no longer true, and would make a board that has resigned a leader again.
func (c *Core) late(m *wire.Message) bool {
	p := c.roster.Peer(m.Sender)
	return p != nil && p.Incarnation == m.Incarnation && m.Sequence < p.newest
}

// overtaken takes in a message that is late. What it says of its sender is no longer true,
// but an answer to a question of this board still is one. It comes by unicast, and a
// multicast that was sent right behind it may well be read first, from another socket.
func (c *Core) overtaken(m *wire.Message) {
	switch m.Type {
	case wire.TypeAnswer, wire.TypeStart, wire.TypeAck, wire.TypeReport:
		c.algorithm.Step(m)
	}
}

// before looks at what the roster said of the sender until now.
func (c *Core) before(m *wire.Message) past {
	p := c.roster.Peer(m.Sender)
	if p == nil {
		return past{}
	}
	restarted := p.Incarnation != m.Incarnation
	return past{led: p.Leading && !restarted, restarted: restarted}
}

// learnTerm keeps the highest term heard. It reports whether a board that does not
// lead knows of a higher one than this leader's: somebody else has led meanwhile.
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

// hearOther takes in a message of a board that does not lead.
func (c *Core) hearOther(m *wire.Message, was past, exceeded bool) {
	switch {
	case c.role == Leader && (was.led || exceeded):
		// A rival has given up, or somebody has led whom this board never heard.
		// Boards and clients that believed it must hear of this board again.
		c.reclaim(m.Term)
	case m.Sender == c.leader && was.restarted:
		c.leaderless(ReasonRestarted)
	case m.Sender == c.leader && m.Type != wire.TypeResign:
		c.leaderless(ReasonResigned) // its RESIGN was lost
	}
}

// hearLeader takes in any message of a board that leads, whatever else it says.
func (c *Core) hearLeader(m *wire.Message) {
	sender := c.rankOf(&m.Header)
	switch c.role {
	case Leader:
		c.hearRival(m)
	case Listener:
		if m.Reply && c.asked == 1 {
			c.timeAnswer() // of several queries, the first may have come before anybody led
		}
		c.becomeFollower(m.Sender, ReasonHeardLeader)
		if c.hooks.leader != nil {
			c.hooks.leader.Joined()
		}
	case Candidate:
		c.answeredByLeader(m)
	case Follower:
		leader := c.roster.Peer(c.leader)
		late := c.now >= c.detector.Freshness()
		switch {
		case m.Sender == c.leader:
			if c.leaderIncarnation != m.Incarnation {
				c.becomeFollower(m.Sender, ReasonRestarted)
			}
		case leader == nil, m.Term > c.reignTerm, m.Term == c.reignTerm && (late || c.above(sender, leader.Rank())):
			c.becomeFollower(m.Sender, ReasonProclaimed)
			c.leaderChanged()
		}
	}
	if c.role != Leader && m.Sender == c.leader {
		c.reignTerm = m.Term
	}
}

// answeredByLeader ends a candidate's suspicion, or its wait for a new leader.
func (c *Core) answeredByLeader(m *wire.Message) {
	if m.Sender == c.leader {
		if m.Reply && c.asked > 0 {
			c.timeAnswer()
		}
		if c.suspicious() || m.Type == wire.TypeCoordinator && !m.Reply {
			// Whatever it says, it lives. Else this board would accuse it again at once.
			c.detector.Evidence(c.now)
			c.becomeFollower(m.Sender, ReasonLeaderAlive)
		}
		return
	}
	if c.leader != wire.Nobody && m.Term < c.reignTerm {
		return // a leader of the past, which will hear so from its successor
	}
	c.becomeFollower(m.Sender, ReasonProclaimed)
	c.leaderChanged()
}

// suspicious reports whether this board is a candidate because the leader fell
// silent. Only then does a word of the leader end the candidacy: one that joins, is
// called upon or outranks the leader holds an election although the leader lives.
func (c *Core) suspicious() bool {
	switch c.cause {
	case ReasonJoining, ReasonCalledUpon, ReasonOutranks:
		return false
	default:
		return true
	}
}

// timeAnswer learns the round trip from an answer. One that comes very late answers
// the question of another board, and the own one was lost.
func (c *Core) timeAnswer() {
	if late := c.now - c.askedLast; late <= max(c.cfg.Interval, soundMin) {
		c.detector.Answered(late, c.now-c.askedAt)
	}
	c.asked = 0
}

// answers reports whether a HEARTBEAT that is a reply may answer a question of this
// board. Candidates are answered by multicast, with a beat of its own. Who times
// the way is answered alone, with the number of the beat before; it must
// not take what others are answered for it.
func (c *Core) answers(m *wire.Message, beat wire.Heartbeat) bool {
	return m.Reply && c.asked > 0 && (c.role == Candidate || beat.Number == c.lastBeat)
}

func (c *Core) dispatch(m *wire.Message) {
	switch m.Type {
	case wire.TypeHeartbeat:
		c.heardBeat(m, m.Heartbeat)
	case wire.TypeCoordinator:
		if m.Coordinator.Coordinator != m.Sender {
			c.algorithm.Step(m)
			return
		}
		c.heardBeat(m, wire.Heartbeat{Interval: m.Coordinator.Interval, Number: m.Coordinator.Number})
		if c.hooks.proclamation != nil {
			c.hooks.proclamation.Proclaimed()
		}
	case wire.TypeHello:
		c.hello(m)
	case wire.TypeQuery:
		c.query(m)
	case wire.TypeResign:
		c.resigned(m)
	default:
		c.algorithm.Step(m)
	}
}

// heardBeat feeds the failure detector.
func (c *Core) heardBeat(m *wire.Message, beat wire.Heartbeat) {
	if c.role != Follower && c.role != Candidate || m.Sender != c.leader {
		return
	}
	if c.answers(m, beat) {
		c.timeAnswer()
	}
	c.forgiven = false
	c.lastBeat = beat.Number
	c.detector.Heard(c.now, beat)
	c.lastHeard = max(c.lastHeard, m.Sequence)
	if c.role == Follower {
		c.awaitTurn()
	}
}

// hello completes the sender's entry in the roster.
func (c *Core) hello(m *wire.Message) {
	p := c.roster.Peer(m.Sender)
	p.Following = m.Hello.Following
	p.HelloInterval = m.Hello.Interval
	p.StartedAt = c.now - m.Hello.Age
	p.Name = m.Hello.Name
	if c.role == Follower && m.Sender == c.leader {
		c.compareRanks() // its rank may be another one now
	}
}

// query answers a board that joins, or hands over to one that outranks this leader.
func (c *Core) query(m *wire.Message) {
	switch {
	case m.Query.Purpose != wire.PurposeHandover:
		c.answerQuery(m)
	case c.role == Leader:
		if r := c.rankOf(&m.Header); r.Eligible() && c.above(r, c.rank()) {
			c.resign(m.Sender, ReasonPreempted)
		}
	}
}

// answerQuery has the leader tell a board that joins whom to follow. The papers
// assume that all know the ranks of all. Where ELECTIONs are unicast a board learns
// the rank of another one only from its next HELLO, so that one is due at once.
func (c *Core) answerQuery(m *wire.Message) {
	switch {
	case c.hooks.query != nil && c.hooks.query.AnswerQuery(m):
	case c.role == Leader:
		c.assure(m.Sender)
	case c.cfg.Fanout == FanoutUnicast && m.Query.Round == 1:
		c.sayHello(m.Sender)
	}
}

// assure tells one board that this one leads. The others do not get this
// heartbeat, so it does not count as a beat.
func (c *Core) assure(board wire.ID) {
	c.send(board, wire.Message{
		Header:    wire.Header{Type: wire.TypeHeartbeat, Reply: true},
		Heartbeat: wire.Heartbeat{Interval: c.cfg.Interval, Number: c.beat},
	})
}

// DuplicateID takes in a message of another live board that has this board's id.
// The one that started later stays out.
func (c *Core) DuplicateID(now Instant, m *wire.Message) []Effect {
	c.enter(now)
	if c.role != Isolated {
		c.conflict(Notice{Kind: NoticeDuplicateID, Board: m.Sender}, ReasonDuplicateID, m)
	}
	return c.effects
}

// conflict settles which of two boards that cannot live together stays: the one
// that is in already, else the one that runs for longer.
func (c *Core) conflict(n Notice, reason Reason, m *wire.Message) {
	c.noticeOnce(n)
	breaksOut := c.now-c.conflictAt >= barredFor
	c.conflictAt = c.now
	if breaksOut {
		c.conflictSince = c.now
	}
	switch {
	case c.role == Barred:
		c.alarms[alarmBarred] = c.now + barredFor
	case c.role == Listener && settled(m):
		c.becomeBarred(reason)
	case m.Type == wire.TypeHello && c.younger(m):
		c.becomeBarred(reason)
	case breaksOut:
		c.sendHello() // so that the other one can compare ages at once
	}
}

// settled reports whether the sender is in already. One that listens, as all do
// when they are switched on together, only sends HELLOs without a leader, and QUERYs.
func settled(m *wire.Message) bool {
	switch m.Type {
	case wire.TypeHello:
		return m.Hello.Following != wire.Nobody
	case wire.TypeQuery:
		return false
	default:
		return true
	}
}

// younger reports whether this process started after the sender of a HELLO. Ages
// travel as whole seconds, so this board cuts its own as well: then both compare
// the same two numbers. Between equal ones the incarnation decides.
//
// Boards that started within one second of each other may look at different
// moments and come to different results. If both have stayed, the conflict lasts,
// and then the incarnation decides between nearly equal ages too.
func (c *Core) younger(m *wire.Message) bool {
	var equal time.Duration
	if c.now-c.conflictSince >= barredFor {
		equal = time.Second
	}
	mine, its := (c.now - c.startedAt).Truncate(time.Second), m.Hello.Age
	if d := mine - its; -equal <= d && d <= equal {
		return c.cfg.Incarnation < m.Incarnation
	}
	return mine < its
}

// noticeOnce gives a notice unless it was given within noticeEvery.
func (c *Core) noticeOnce(n Notice) {
	if at, ok := c.noticed[n]; ok && c.now-at < noticeEvery {
		return
	}
	if len(c.noticed) >= wire.MaxBoards {
		clear(c.noticed)
	}
	c.noticed[n] = c.now
	c.notice(n)
}
