package election

import (
	"time"

	"topdog/election/clock"
	"topdog/wire"
)

// A board may have a second path to the others, such as Wi-Fi beside the cable. The address is on the first path alone, so what
// is heard by the second says nothing of the port: whether a board may claim, whether it lives, and whether the leader is late, is
// decided on the first. The second path tells four things.
//
//   - A leader that is silent on the first path, and answers by the second, lives. Nobody claims then (vouch). It hears so that
//     it is missed, asks the LAN and the others on the first path, and hands over if nobody answers it there while another board
//     says by the second path that its own port receives (doubtFirstPath). A leader that is deaf learns it from that as well.
//   - A leader whose link is lost names its successor by the second path (nameByOtherPath).
//   - Whoever joins hears by it who leads, or that it is not alone, so that it does not claim on a dead port (showBySecondPath).
//   - With votes, a promise is a promise whichever way it was told: what was heard by the second path counts for the lease.
//
// A board whose leader is heard on the first path heeds no other leader by the second (besideLeader). So a group in which only
// some boards have a second path is as it was without.
//
// What is urgent goes by both paths, with the same sequence number: a copy says the same, so it does no harm that both are heeded.
// Heartbeats and HELLOs go by the second path now and then, so that each board knows whether it works.

const (
	// SecondPathEvery is the time between two heartbeats by the second path, and between the first suspicions of a leader that is
	// heard by that path alone. There is no hurry: the address is where it was.
	SecondPathEvery = time.Second
	// secondPathHellos is of how many HELLOs one goes by the second path.
	secondPathHellos = 5
	// maxSecondPathWait bounds how long a candidate waits for an answer by the second path. Wi-Fi on which a station saves power keeps a
	// multicast until the next DTIM beacon (IEEE 802.11), mostly for up to 307 ms, and both the question and the answer may be kept.
	maxSecondPathWait = time.Second
	// After vouchesSoon suspicions from which nothing has followed, the time until the next one doubles, up to maxVouch.
	vouchesSoon = 4
	maxVouch    = 16 * SecondPathEvery
	// secondPathLost is for how long a leader that is not heard by the second path is still expected to answer by it: two
	// heartbeats may be lost.
	secondPathLost = 5 * SecondPathEvery / 2
)

// secondPath is what a board knows of its second path.
type secondPath struct {
	present bool          // the present message came by it
	copied  bool          // the present message has come by the other path already
	beatAt  Instant       // when a heartbeat was last sent by it
	hellos  int           // that were sent since one went by it
	heardAt Instant       // when the leader was last heard by it; 0 for never
	askedAt Instant       // when a question went out on the first path that the leader answers by both; 0 for none
	trip    time.Duration // from then until the answer came by this path
	vouched Instant       // a follower leaves its leader alone until then, if it hears that by the second path
	vouches int           // how often it was left alone since it was last heard on the first path
	// countedAt is when a majority of the voters was last heard by this path alone.
	countedAt Instant
	toldAt    Instant // when this follower last heard by it that its leader asks who hears it on the first path
}

// StepBySecondPath is Step for a message that came by the second path.
func (c *Core) StepBySecondPath(now Instant, m *wire.Message) []Effect {
	c.second.present = true
	effects := c.StepDirect(now, m)
	c.second.present = false
	return effects
}

// bySecondPath reports whether a message goes by the second path as well. What tells whether the first path works must not.
func (c *Core) bySecondPath(m *wire.Message) bool {
	switch m.Type {
	case wire.TypeHeartbeat:
		return m.Reply
	case wire.TypeHello:
		return false
	case wire.TypeQuery:
		return m.Query.Round > 0 || m.Query.Purpose == wire.PurposeHandover // the others time the way on the first path
	case wire.TypeSupport:
		return c.second.present
	default:
		return true
	}
}

// copyBySecondPath has the message that was sent last go by the second path as well, whatever it is.
func (c *Core) copyBySecondPath() { c.effects[len(c.effects)-1].SecondPath = c.cfg.SecondPath }

// beatBySecondPath reports whether a scheduled heartbeat goes by the second path as well.
func (c *Core) beatBySecondPath() bool {
	s := &c.second
	counts := s.countedAt > 0 && c.now-s.countedAt <= 2*c.cfg.Interval
	if !c.cfg.SecondPath || !counts && c.now-s.beatAt < SecondPathEvery && s.beatAt >= c.leading.since {
		return false
	}
	s.beatAt = c.now
	return true
}

// helloBySecondPath is the same for a HELLO.
func (c *Core) helloBySecondPath() bool {
	if !c.cfg.SecondPath {
		return false
	}
	due := c.second.hellos == 0
	c.second.hellos = (c.second.hellos + 1) % secondPathHellos
	return due
}

// heardBySecondPath takes note of a message of this board's leader.
func (c *Core) heardBySecondPath(m *wire.Message) {
	s := &c.second
	if s.present && c.role == Leader {
		c.leading.hearing.secondPath = true
	}
	if !s.present || !m.Leading || m.Sender != c.leader {
		return
	}
	s.heardAt = c.now
	if c.role == Follower && s.vouched > c.now {
		c.awaitTurn()
	}
	if m.Reply && s.askedAt > 0 {
		s.trip = max(c.now-s.askedAt, s.trip-s.trip/8)
		s.askedAt = 0
	}
	if m.Reply && c.role == Follower && c.now >= c.detector.Due() { // another board asked, perhaps, and this one misses it too
		c.vouch()
	}
}

// vouch leaves the leader alone for a while, since it was heard by the second path. It lives, and knows that it is missed.
func (c *Core) vouch() {
	s := &c.second
	s.vouches++
	s.vouched = c.now + min(SecondPathEvery<<min(max(0, s.vouches-vouchesSoon), 10), maxVouch)
	if c.role == Candidate {
		c.becomeFollower(c.leader, ReasonSecondPath)
		return
	}
	c.awaitTurn()
}

// vouchedUntil is until when this follower leaves its leader alone because of that.
func (c *Core) vouchedUntil() Instant { return min(c.second.vouched, c.second.heardAt+secondPathLost) }

// vouchedFor reports whether it does so now.
func (c *Core) vouchedFor() bool { return c.now < c.vouchedUntil() }

// secondPathWait is how long the answer of a leader by the second path may take.
func (c *Core) secondPathWait() time.Duration {
	return min(max(3*c.second.trip, c.answerWithin()), maxSecondPathWait)
}

// secondPathSilent reports whether the suspected leader has had the time to answer by the second path. If it was not heard by it
// of late, it is not waited for.
func (c *Core) secondPathSilent() bool {
	s := &c.second
	return s.heardAt == 0 || c.now-s.heardAt > secondPathLost || c.now >= c.candidacy.since+c.secondPathWait()
}

// awaitSecondPath sets when a new candidate has waited for that.
func (c *Core) awaitSecondPath() {
	if !c.secondPathSilent() {
		c.candidacy.second = clock.Due(c.now + c.secondPathWait())
	}
}

// nameByOtherPath names a successor by the second path, since this leader has lost its link and released the address.
func (c *Core) nameByOtherPath(successor wire.ID) {
	if c.cfg.SecondPath && successor != wire.Nobody && !c.paused() {
		c.sendResign(successor)
	}
}

// missedOnFirstPath is for a leader that hears by the second path that another board misses it.
func (c *Core) missedOnFirstPath(m *wire.Message) {
	if c.second.present && m.Election.Suspect == c.cfg.ID && m.Election.Incarnation == c.cfg.Incarnation {
		c.doubtFirstPath()
	}
}

// doubtFirstPath is for a leader that learns by the second path that it is missed on the first. It asks the followers and the LAN
// there. Meanwhile the followers find out whether their own ports receive. If nobody answers it on the first path, and a board
// says by the second that its own port receives, either direction of this leader's port may be dead: it hands over to that board.
// Otherwise it stays: the switch may have stopped, and of two boards without a witness neither can tell whose port is dead.
func (c *Core) doubtFirstPath() {
	h := &c.leading.hearing
	if !c.cfg.SecondPath || c.role != Leader || c.paused() || h.again.Set || h.answers && c.now-h.since < SecondPathEvery/2 {
		return
	}
	*h = hearing{since: c.now, answers: true}
	c.askHearing()
}

// unansweredOnFirstPath is for a leader that nobody has answered there.
func (c *Core) unansweredOnFirstPath() {
	h := &c.leading.hearing
	switch {
	case h.receives != wire.Nobody:
		c.handOver(h.receives, ReasonDeaf, 1)
	case !h.answers && !h.secondPath:
		// The others may still hear this board, so it names one successor. It could not hear the answer, and
		// to name another one would make two holders.
		c.handOver(wire.Nobody, ReasonDeaf, 1)
	case h.asked == hearingQuestions:
		h.asked++
		h.again = clock.Due(c.now + c.cfg.Interval) // the second path may be slow
	}
}

// tellWhetherReceives is for a follower that hears by the second path that its leader asks who hears it on the first. It shows itself
// to the others there, whose ports it so tells, and asks the LAN. If something has come of that since the leader asked before, its
// own port receives, which it tells the leader.
func (c *Core) tellWhetherReceives(m *wire.Message) {
	s := &c.second
	if m.Sender != c.leader || c.succession() >= witnesses {
		return
	}
	if m.Query.Round > 1 && s.toldAt > 0 && c.evidence.othersAt > s.toldAt && c.now-s.toldAt < c.cfg.Interval && c.rank().Eligible() {
		c.sendAnswer(m.Sender, c.knownOfLeader())
	}
	s.toldAt = c.now
	c.askLAN()
	c.sayHello(wire.Nobody)
	c.copyBySecondPath() // so the leader knows that somebody could answer
}

// hearReceives is for a leader that hears such an answer.
func (c *Core) hearReceives(m *wire.Message) {
	h, a := &c.leading.hearing, &m.Answer
	mine := a.Leader == c.cfg.ID && a.Incarnation == c.cfg.Incarnation
	if c.role != Leader || !c.second.present || !mine || !h.again.Set {
		return
	}
	if best := c.roster.Peer(h.receives); best == nil || c.Above(c.rankOf(&m.Header), best.Rank()) {
		h.receives = m.Sender
	}
	if h.asked > hearingQuestions {
		h.again = clock.Due(c.now)
	}
}

// showBySecondPath shows a board that finds no leader that it is not alone. If it hears this board by the second path alone, its port
// may be what is dead, and it does not claim (receives).
func (c *Core) showBySecondPath(m *wire.Message) {
	if m.Election.Round <= 2 && c.role != Leader {
		c.sayHello(m.Sender)
		c.copyBySecondPath()
	}
}

// besideLeader reports whether a message came by the second path, and not of the leader that this follower hears on the first. It
// says nothing of who leads there: of two leaders, one may have no second path.
func (c *Core) besideLeader(m *wire.Message) bool {
	return c.second.present && c.role == Follower && c.leader != wire.Nobody && m.Sender != c.leader && c.now < c.detector.Freshness()
}
