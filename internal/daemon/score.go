package daemon

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"topdog/election"
	"topdog/internal/console"
)

const (
	// scoreEvery is how often the score command is run. The boards tell their
	// importance about once a second, and one that changed faster than people can
	// follow would drag the address around. To start a small program costs a
	// Raspberry Pi Zero about 10 ms, so this is 0.2 % of it.
	scoreEvery = 5 * time.Second
	// scoreWithin is how long it may take: less than scoreEvery, so that one that
	// hangs each time is still run each time, and as much as a script needs to
	// start from a busy SD card.
	scoreWithin = 4 * time.Second
)

// importance is what the score command says of this board. Until it has said
// something, and while it fails, that is 0: a board that does not know what it
// is worth does not push itself forward.
type importance struct {
	score    uint32
	commands chan []string // from the loop to the runner: another one is configured
	told     bool          // that it fails was logged, and not yet that it works again
	toldAt   time.Duration
}

// measure runs the score command at once and then every scoreEvery, one run at a
// time, until ctx ends.
func (d *Daemon) measure(ctx context.Context, command []string) error {
	tick := time.NewTicker(scoreEvery)
	defer tick.Stop()
	for {
		run, cancel := context.WithTimeout(ctx, scoreWithin)
		output, err := d.platform.RunCommand(run, command)
		late := run.Err() != nil
		cancel()
		if ctx.Err() != nil {
			return nil
		}
		var score uint32
		switch {
		case late:
			err = fmt.Errorf("did not end within %v and was killed", scoreWithin)
		case err == nil:
			score, err = parseScore(output)
		}
		program := command[0] // the loop reads it when command may be another one already
		d.request(func() { d.measured(score, program, err) })
		select {
		case <-ctx.Done():
			return nil
		case command = <-d.importance.commands:
			tick.Reset(scoreEvery)
		case <-tick.C:
		}
	}
}

// parseScore reads one whole number with nothing but white space around it.
func parseScore(output []byte) (uint32, error) {
	text := strings.TrimSpace(string(output))
	score, err := strconv.ParseUint(text, 10, 32)
	switch {
	case text == "":
		return 0, fmt.Errorf("printed nothing")
	case err != nil:
		return 0, fmt.Errorf("printed %s, which is not one whole number from 0 to 4294967295", quoted(text))
	}
	return uint32(score), nil
}

// quoted shows what a program has printed: short, and on one line.
func quoted(text string) string {
	const most = 60
	if runes := []rune(text); len(runes) > most {
		text = string(runes[:most]) + "…"
	}
	return strconv.Quote(text)
}

// measured takes in what a run of the score command came to.
func (d *Daemon) measured(score uint32, program string, err error) {
	m := &d.importance
	now := d.now()
	if err != nil {
		text := fmt.Sprintf("the score command %s %v; this board counts as one of importance 0 until it works", program, err)
		d.news.trouble(console.ProblemScoreCommand, text, forever)
		// Once, and not again for each run, also if it fails differently or now and then.
		if now-m.toldAt > tellEvery {
			d.log.Warn(text)
			m.told, m.toldAt = true, now
		}
		score = 0
	} else {
		d.news.over(console.ProblemScoreCommand)
		if m.told {
			d.log.Infof("the score command %s works again", program)
			m.told = false
		}
	}
	m.score = score
	if d.core != nil {
		d.act(d.core.SetScore(now, score))
	}
}

// replaceCommand has another score command run from now on. Without a command
// there is nothing to change: whether one is run at all takes a restart.
func (d *Daemon) replaceCommand(command []string) {
	if d.cfg.ScoreSource != election.ScoreFromCommand || len(command) == 0 {
		return
	}
	select {
	case <-d.importance.commands: // nobody has seen that one
	default:
	}
	d.importance.commands <- command
}
