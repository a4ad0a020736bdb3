package check

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"topdog/internal/command"
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

// Score is what one run of the score command has come to.
type Score struct {
	Program string `json:"program"` // of the command, which may be another one by now
	Value   uint32 `json:"value"`
	Failure string `json:"failure,omitempty"` // why there is no value
}

// scorer runs the score command again and again.
type scorer struct {
	run    func(ctx context.Context, words []string) ([]byte, error)
	report func(Score)

	command []string // that runs; nil if none does
	end     context.CancelFunc
	running sync.WaitGroup
}

// replace has a command run from now on, and at once if it is another one; or none.
func (s *scorer) replace(words []string) {
	if slices.Equal(words, s.command) {
		return
	}
	if s.end != nil {
		s.end()
	}
	s.command, s.end = words, nil
	if len(words) == 0 {
		return
	}
	ctx, end := context.WithCancel(context.Background())
	s.end = end
	s.running.Go(func() { s.attend(ctx, words) })
}

// attend runs a command at once and then every scoreEvery, one run at a time, until ctx ends.
func (s *scorer) attend(ctx context.Context, words []string) {
	tick := time.NewTicker(scoreEvery)
	defer tick.Stop()
	for {
		score := Score{Program: words[0]}
		value, err := s.runOnce(ctx, words)
		if ctx.Err() != nil {
			return
		}
		if score.Value = value; err != nil {
			score.Failure = err.Error()
		}
		s.report(score)
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// runOnce runs a score command once.
func (s *scorer) runOnce(ctx context.Context, words []string) (uint32, error) {
	ctx, cancel := context.WithTimeout(ctx, scoreWithin)
	defer cancel()
	output, err := s.run(ctx, words)
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
