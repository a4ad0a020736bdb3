package election

import (
	"math"
	"time"

	"topdog/wire"
)

// SetScore tells the importance that the owner has found out, for
// ScoreFromCommand. The others learn of it at once.
func (c *Core) SetScore(now Instant, score uint32) []Effect {
	c.enter(now)
	if c.cfg.ScoreSource != ScoreFromCommand || c.measured == score {
		return c.effects
	}
	c.measured = score
	if c.role == Candidate {
		return c.effects // it goes out with the next HELLO
	}
	c.sendHello()
	if c.role == Follower {
		c.compareRanks()
	}
	return c.effects
}

// weighs reports whether boards of this group compare their importance.
func (c *Core) weighs() bool { return c.definition.ComparesScores }

// weigh finds out this board's importance. From then on it stays the same until
// the board tells the others anew, so that any two boards that compare
// themselves compare the same two numbers.
func (c *Core) weigh() {
	if !c.weighs() {
		return // messages need not carry it
	}
	switch c.cfg.ScoreSource {
	case ScoreFromAge:
		c.score = uint32(min((c.now-c.startedAt)/time.Second, math.MaxUint32))
	case ScoreFromCommand:
		c.score = c.measured
	default:
		c.score = uint32(c.cfg.Priority)
	}
}

// learnScore takes in the importance that a message tells of its sender.
func learnScore(p *Peer, m *wire.Message) {
	switch m.Type {
	case wire.TypeHello:
		p.Score = m.Hello.Score
	case wire.TypeElection:
		p.Score = m.Election.Score
	case wire.TypeCoordinator:
		if m.Coordinator.Coordinator != m.Sender {
			return
		}
		p.Score = m.Coordinator.Score
	default:
		return
	}
	p.ScoreKnown = true
}
