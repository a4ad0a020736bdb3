package daemon

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"topdog/election"
	"topdog/internal/command"
	"topdog/internal/config"
	"topdog/internal/console"
)

const (
	// scoreEvery is how often the score command is run. The boards tell their
	// score about once a second, and one that changed faster than people can
	// follow would drag the address around. To start a small program costs a
	// Raspberry Pi Zero about 10 ms, so this is 0.2 % of it.
	scoreEvery = 5 * time.Second
	// scoreWithin is how long it may take: less than scoreEvery, so that one that
	// hangs each time is still run each time, and as much as a script needs to
	// start from a busy SD card.
	scoreWithin = 4 * time.Second
	// scoreOutputMax is how much it may print. A number needs ten characters.
	scoreOutputMax = 512
)

// score is what the score command says of this board. Until it has said something,
// and while it fails, that is 0: a board that does not know what it is worth does
// not push itself forward.
type score struct {
	shared
	changed func(uint32) // called in the loop after each run

	command  []string      // as it was configured at the start; nil if none is run
	commands chan []string // from the loop to the runner: another one is configured
	value    uint32
	told     bool // that it fails was logged, and not yet that it works again
	toldAt   time.Duration
}

func newScore(s shared, cfg *config.Config, changed func(uint32)) *score {
	c := &score{shared: s, changed: changed, commands: make(chan []string, 1), toldAt: -time.Hour}
	if cfg.ScoreSource == election.ScoreFromCommand {
		c.command = cfg.ScoreCommand
	}
	return c
}

// run runs the score command at once and then every scoreEvery, one run at a
// time, until ctx ends.
func (s *score) run(ctx context.Context) error {
	if s.command == nil {
		return nil
	}
	command := s.command
	tick := time.NewTicker(scoreEvery)
	defer tick.Stop()
	for {
		value, err := s.runOnce(ctx, command)
		if ctx.Err() != nil {
			return nil
		}
		program := command[0] // the loop reads it when command may be another one already
		s.tasks.post(func() { s.computed(value, program, err) })
		select {
		case <-ctx.Done():
			return nil
		case command = <-s.commands:
			tick.Reset(scoreEvery)
		case <-tick.C:
		}
	}
}

// runOnce runs a score command once.
func (s *score) runOnce(ctx context.Context, command []string) (uint32, error) {
	ctx, cancel := context.WithTimeout(ctx, scoreWithin)
	defer cancel()
	output, err := s.platform.RunCommand(ctx, command)
	switch {
	case ctx.Err() != nil:
		return 0, fmt.Errorf("did not end within %v and was killed", scoreWithin)
	case err != nil:
		return 0, err
	}
	return parseScore(output)
}

// runScoreCommand runs a score command on the real machine.
func runScoreCommand(ctx context.Context, words []string) ([]byte, error) {
	return command.Run(ctx, words, scoreOutputMax)
}

// parseScore reads one whole number with nothing but white space around it.
func parseScore(output []byte) (uint32, error) {
	text := strings.TrimSpace(string(output))
	score, err := strconv.ParseUint(text, 10, 32)
	switch {
	case text == "":
		return 0, fmt.Errorf("printed nothing")
	case err != nil:
		return 0, fmt.Errorf("printed %s, which is not one whole number from 0 to 4294967295", command.Quoted(text))
	}
	return uint32(score), nil
}

// computed is told what a run of the score command came to.
func (s *score) computed(value uint32, program string, err error) {
	now := s.now()
	if err != nil {
		text := fmt.Sprintf("the score command %s %v; the score of this board is 0 until it works", program, err)
		s.reporter.note(console.ProblemScoreCommand, text, forever)
		// Once, and not again for each run, also if it fails differently or now and then.
		if now-s.toldAt > tellEvery {
			s.reporter.log.Warn(text)
			s.told, s.toldAt = true, now
		}
		value = 0
	} else {
		s.reporter.solved(console.ProblemScoreCommand)
		if s.told {
			s.reporter.log.Infof("the score command %s works again", program)
			s.told = false
		}
	}
	s.value = value
	s.changed(value)
}

// replaceCommand has another score command run from now on. Without a command
// there is nothing to change: whether one is run at all takes a restart.
func (s *score) replaceCommand(command []string) {
	if s.command == nil || len(command) == 0 {
		return
	}
	select {
	case <-s.commands: // nobody has seen that one
	default:
	}
	s.commands <- command
}
