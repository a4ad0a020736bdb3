package daemon

import (
	"fmt"
	"time"

	"topdog/election"
	"topdog/internal/check"
	"topdog/internal/config"
	"topdog/internal/console"
)

// score is what the score command says of this board, which the checker runs. Until it has said something,
// and while it fails, that is 0: a board that does not know what it is worth does
// not push itself forward.
type score struct {
	shared
	changed func(uint32) // called in the loop after each run

	value  uint32
	told   bool // that it fails was logged, and not yet that it works again
	toldAt time.Duration
}

func newScore(s shared, changed func(uint32)) *score {
	return &score{shared: s, changed: changed, toldAt: -time.Hour}
}

// scoreCommand is the command of a configuration; nil if none is run.
func scoreCommand(cfg *config.Config) []string {
	if cfg.ScoreSource != election.ScoreFromCommand {
		return nil
	}
	return cfg.ScoreCommand
}

// computed is told what a run of the score command came to.
func (s *score) computed(c *check.Score) {
	now := s.now()
	if c.Failure != "" {
		text := fmt.Sprintf("the score command %s %s; the score of this board is 0 until it works", c.Program, c.Failure)
		s.reporter.note(console.ProblemScoreCommand, text, forever)
		// Once, and not again for each run, also if it fails differently or now and then.
		if now-s.toldAt > tellEvery {
			s.reporter.log.Warn(text)
			s.told, s.toldAt = true, now
		}
		s.value = 0
	} else {
		s.reporter.solved(console.ProblemScoreCommand)
		if s.told {
			s.reporter.log.Infof("the score command %s works again", c.Program)
			s.told = false
		}
		s.value = c.Value
	}
	s.changed(s.value)
}
