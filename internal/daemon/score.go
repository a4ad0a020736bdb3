package daemon

import (
	"fmt"
	"time"

	"topdog/election"
	"topdog/internal/check"
	"topdog/internal/config"
	"topdog/internal/console"
)

// score is this board's score, which the checker computes by the score command. Until the command has printed one, and
// while it fails, the score is 0: a board that doesn't know its score must not push itself forward.
type score struct {
	shared
	changed func(uint32) // called in the loop after each run

	value  uint32
	told   bool // it was logged that the command fails, and not yet that it works again
	toldAt time.Duration
}

func newScore(s shared, changed func(uint32)) *score {
	return &score{shared: s, changed: changed, toldAt: -time.Hour}
}

// scoreCommand returns the score command of a configuration, or nil if none is run.
func scoreCommand(cfg *config.Config) []string {
	if cfg.ScoreSource != election.ScoreFromCommand {
		return nil
	}
	return cfg.ScoreCommand
}

// computed takes the result of a run of the score command.
func (s *score) computed(c *check.Score) {
	now := s.now()
	if c.Failure != "" {
		text := fmt.Sprintf("the score command %s %s; the score of this board is 0 until it works", c.Program, c.Failure)
		s.reporter.note(console.ProblemScoreCommand, text, forever)
		// Log it once and not for each run, also if the failures differ or come and go.
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
