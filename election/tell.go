package election

import (
	"math"
	"time"

	"topdog/election/clock"
	"topdog/election/roster"
	"topdog/wire"
)

// Signature returns the header that the owner must give to messages of its own,
// such as the replay guard's challenges and proofs: they speak for this board too.
func (c *Core) Signature() wire.Header {
	return wire.Header{
		Algorithm: c.cfg.Algorithm,
		Leading:   c.role == Leader,
		Sender:    c.cfg.ID,
		Term:      c.term,
		Priority:  c.toldRank().Priority,
		Grade:     c.fitness.told,
	}
}

// send sends a message to one board, or to the whole group if that is wire.Nobody.
func (c *Core) send(to wire.ID, m wire.Message) {
	header := c.Signature()
	header.Type, header.Reply = m.Type, m.Reply
	m.Header = header
	// A leader that hears nobody broadcasts its HELLO: perhaps there is another one, to which multicast does not get.
	alone := m.Type == wire.TypeHello && c.role == Leader && c.roster.Live(c.now) == 0
	e := Effect{Kind: EffectSend, To: to, Message: m}
	e.Broadcast = to == wire.Nobody && (alone || !steady(&m) || c.losesMulticast())
	e.SecondPath = c.cfg.SecondPath && c.bySecondPath(&m)
	if c.votes.needed() && c.role == Leader && (m.Type == wire.TypeHeartbeat || m.Type == wire.TypeCoordinator) {
		e.Beat = c.numberHeartbeat(to, m.Type)
	}
	c.effects = append(c.effects, e)
}

// Sent tells which sequence a message has got whose effect has that Beat. It is to be called
// when the message was sent, before the next call. The effects stay good.
func (c *Core) Sent(beat uint32, sequence wire.Sequence) { c.votes.support.Sequenced(beat, sequence) }

// sendFloating sends a message to whoever has the floating address. It finds a leader of
// whom no other address is known, and to which neither multicast nor broadcast gets through.
func (c *Core) sendFloating(m wire.Message) {
	c.send(wire.Nobody, m)
	e := &c.effects[len(c.effects)-1]
	e.Broadcast, e.SecondPath, e.Floating = false, false, true
}

// steady reports whether a message is of those that are sent all the time, or for seconds. Only multicast
// is cheap enough for them: a broadcast wakes every host on the LAN.
func steady(m *wire.Message) bool {
	switch m.Type {
	case wire.TypeHeartbeat:
		return !m.Reply
	case wire.TypeHello, wire.TypeOK, wire.TypeReport, wire.TypePause, wire.TypeRival:
		return true
	default:
		return false
	}
}

// A switch that snoops IGMP and has no querier forgets who wants multicast, and passes none.
// Unicast and broadcast still work. A board that hears its leader only by these says so in its HELLO. While a board says
// that, all that goes to everybody is sent by broadcast as well.

// multicastMissed is for how many intervals a follower hears its leader without its
// multicasts before it believes that they are lost. At 40 % loss, ten in a row are lost by chance
// once in ten thousand times. Until then it asks every interval, and is answered.
const multicastMissed = 10

// losesMulticast reports whether this board, or one that it hears, gets no multicast. While no peer
// lives, there is nobody to broadcast to. A leader cannot tell at first: another leader, which
// nobody could tell, must hear of it as well.
func (c *Core) losesMulticast() bool {
	return c.paths.noMulticast && c.roster.Live(c.now) > 0 || c.roster.LosesMulticast(c.now) ||
		c.role == Leader && c.now-c.leading.since <= multicastMissed*c.cfg.Interval
}

// tell sends what concerns several boards: as one multicast that the others ignore, or as
// a unicast to each, as the configuration has it. nil means everybody.
func (c *Core) tell(audience []wire.ID, m wire.Message) {
	if c.cfg.Fanout == FanoutMulticast {
		c.multicast(m)
		c.effects[len(c.effects)-1].Audience = audience
		return
	}
	if audience == nil {
		audience = c.roster.All()
	}
	for _, id := range audience {
		c.send(id, m)
	}
}

// multicast sends to the whole group.
func (c *Core) multicast(m wire.Message) { c.send(wire.Nobody, m) }

func (c *Core) emit(kind EffectKind) { c.effects = append(c.effects, Effect{Kind: kind}) }

// noticeInterval bounds how often the same notice is given.
const noticeInterval = time.Minute

// notify tells people of something, unless they were told within noticeInterval.
func (c *Core) notify(n Notice) {
	if at, ok := c.notices[n]; ok && c.now-at < noticeInterval {
		return
	}
	if len(c.notices) >= wire.MaxBoards {
		clear(c.notices)
	}
	c.notices[n] = c.now
	c.effects = append(c.effects, Effect{Kind: EffectNotice, Notice: n})
}

// computeScore finds out this board's score. From then on it stays the same until
// the board tells the others anew, so that any two boards that compare
// themselves compare the same two numbers.
func (c *Core) computeScore() {
	if !c.definition.ComparesScores {
		return // messages need not carry it
	}
	switch c.cfg.ScoreSource {
	case ScoreFromAge:
		c.score.told = uint32(min((c.now-c.startedAt)/time.Second, math.MaxUint32))
	case ScoreFromCommand:
		c.score.told = c.score.set
	default:
		c.score.told = uint32(c.cfg.Priority)
	}
}

// sendHello makes this board known, more rarely the more boards there are.
func (c *Core) sendHello() {
	switch {
	case c.role == Isolated && c.cfg.SecondPath:
		c.sayHello(wire.Nobody)
		c.copyBySecondPath()
		c.hello = clock.Due(c.now + secondPathHellos*c.helloInterval())
		return
	case c.role == Isolated, c.role == Barred:
		return
	}
	if c.role != Candidate {
		c.computeScore() // nobody's score changes while boards compare it
	}
	c.sayHello(wire.Nobody)
	if c.helloBySecondPath() {
		c.copyBySecondPath()
	}
	if c.paused() {
		c.sendPause(wire.Nobody)
	}
	c.grace.Told()
	c.hello = clock.Due(c.now + c.helloInterval())
	c.conflict.told = c.now
}

// helloInterval is how often this board says HELLO. Nobody finds out by the HELLOs of a leader whether it lives, so where each
// group of a board costs packets, it says half as many. The HELLOs of a follower tell its leader that the port receives.
func (c *Core) helloInterval() time.Duration {
	every := roster.HelloInterval(c.roster.Live(c.now) + 1)
	if c.cfg.Several && c.role == Leader {
		every *= 2
	}
	return every
}

// sayHello makes this board known to one board, or to all. It says that it gets no multicast even
// when it hears nobody any more: unless the others broadcast, it cannot hear them.
func (c *Core) sayHello(to wire.ID) {
	var wished time.Duration
	if c.role == Follower {
		wished = c.grace.Wished()
	}
	c.send(to, wire.Message{
		Header: wire.Header{Type: wire.TypeHello},
		Hello: wire.Hello{
			Following:   c.leader,
			Age:         (c.now - c.startedAt).Truncate(time.Second),
			Interval:    c.helloInterval(),
			NoMulticast: c.paths.noMulticast,
			Name:        c.cfg.Name,
			Grace:       wished,
			Score:       c.score.told,
		},
	})
}

// sendPause tells one board, or all, of the latest pause.
func (c *Core) sendPause(to wire.ID) {
	m := wire.Message{
		Header: wire.Header{Type: wire.TypePause},
		Pause:  wire.Pause{Number: c.pause.number, Leader: c.pause.leader},
	}
	if c.paused() {
		m.Pause.Left = c.pause.end.At - c.now
	} else {
		m.Pause.Leader = wire.Nobody
	}
	c.send(to, m)
}

// tellNewcomer tells a board that joins of the latest pause. The boards of the highest ids do.
func (c *Core) tellNewcomer(board wire.ID) {
	if c.pause.number > 0 && c.roster.LiveWithHigherID(c.now, c.cfg.ID, board) < witnesses {
		c.sendPause(board)
	}
}

// askLAN asks the witnesses, and the address of the leader that is suspected, if there is one.
func (c *Core) askLAN() {
	suspect := c.leader
	if c.role == Leader {
		suspect = wire.Nobody
	}
	c.effects = append(c.effects, Effect{Kind: EffectAskLAN, To: suspect})
}

// answerWithin is how long the answer to an ARP request may take. The kernel answers it, so
// it takes no longer than the answer of a daemon.
func (c *Core) answerWithin() time.Duration { return c.detector.RoundTripBound() }

// sendElection asks whether the suspect lives, and says that this board is about
// to act. It concerns the audience, or everybody if that is nil.
func (c *Core) sendElection(audience []wire.ID) {
	c.asking.ask(c.now)
	c.tell(audience, c.question())
}

// question returns the ELECTION of this board as it is now.
func (c *Core) question() wire.Message {
	return wire.Message{
		Header: wire.Header{Type: wire.TypeElection},
		Election: wire.Election{
			Suspect: c.leader, Incarnation: c.lastLeader.incarnation,
			LastHeard: c.lastLeader.lastHeard, Round: c.asking.round, Score: c.score.told,
			NoClaim: c.asking.round > 1 && !c.receives(),
		},
	}
}

// query returns a QUERY: a board asks who leads, or for the lead. round counts the questions of a board that listens.
func query(purpose wire.Purpose, round int) wire.Message {
	return wire.Message{
		Header: wire.Header{Type: wire.TypeQuery},
		Query:  wire.Query{Purpose: purpose, Round: uint8(min(round, math.MaxUint8))},
	}
}

// sendAnswer answers the ELECTION of another board.
func (c *Core) sendAnswer(to wire.ID, answer wire.Answer) {
	c.send(to, wire.Message{Header: wire.Header{Type: wire.TypeAnswer}, Answer: answer})
}

// sendResign tells everybody that this board does not lead, and who leads instead.
func (c *Core) sendResign(successor wire.ID) {
	c.multicast(wire.Message{Header: wire.Header{Type: wire.TypeResign}, Resign: wire.Resign{Successor: successor}})
}

// heartbeat returns the HEARTBEAT of this leader that has the present number.
func (c *Core) heartbeat(reply bool) wire.Message {
	interval, grace := c.announced()
	return wire.Message{
		Header:    wire.Header{Type: wire.TypeHeartbeat, Reply: reply},
		Heartbeat: wire.Heartbeat{Interval: interval, Grace: grace, Number: c.heartbeats.number},
	}
}

// ballot returns a VOTE.
func (c *Core) ballot(kind wire.Ballot, number uint32) wire.Message {
	interval, grace := c.announced()
	return wire.Message{
		Header: wire.Header{Type: wire.TypeVote},
		Vote:   wire.Vote{Ballot: kind, Number: number, Interval: interval, Grace: grace, Voters: c.votes.hash},
	}
}

// announced is the interval and the grace that this board leads with.
func (c *Core) announced() (interval, grace time.Duration) {
	return c.cfg.Interval, c.grace.OnWire()
}

// coordinator returns a COORDINATOR with which this board proclaims itself.
func (c *Core) coordinator() wire.Message {
	return wire.Message{
		Header: wire.Header{Type: wire.TypeCoordinator},
		Coordinator: wire.Coordinator{
			Coordinator: c.cfg.ID, Interval: c.cfg.Interval, Number: c.heartbeats.number, Grace: c.grace.OnWire(), Score: c.score.told,
		},
	}
}

// rival returns the RIVAL that tells another leader the reach of this one within that time. It
// is a reply if the younger one of the two reigns is known to have begun then.
func (c *Core) rival(other wire.ID, within time.Duration) wire.Message {
	return wire.Message{
		Header: wire.Header{Type: wire.TypeRival},
		Rival: wire.Rival{
			Rival: other, Reach: uint8(min(c.roster.Reach(c.now, within), math.MaxUint8)), Age: c.reign().Truncate(time.Millisecond),
		},
	}
}

// knownOfLeader is what this board knows of its leader, as an ANSWER tells it.
func (c *Core) knownOfLeader() wire.Answer {
	return wire.Answer{
		Leader: c.leader, Incarnation: c.lastLeader.incarnation, LastHeard: c.lastLeader.lastHeard,
		Age: c.detector.Age(c.now),
	}
}
