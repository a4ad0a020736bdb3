package election

import (
	"math"
	"time"
)

// score is this board's own, for algorithms that compare scores.
type score struct {
	told uint32 // as it last told the others
	set  uint32 // as the owner of the core has found it out, for ScoreFromCommand
}

// SetScore tells the score that the owner has found out, for ScoreFromCommand. The
// others learn of it at once.
func (c *Core) SetScore(now Instant, score uint32) []Effect {
	c.enter(now)
	if c.cfg.ScoreSource != ScoreFromCommand || c.score.set == score {
		return c.effects
	}
	c.score.set = score
	if c.role == Candidate {
		return c.effects // it goes out with the next HELLO
	}
	c.sendHello()
	if c.role == Follower {
		c.compareRanks()
	}
	return c.effects
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
