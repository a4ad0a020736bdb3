package daemon

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"topdog/election"
	"topdog/election/literature"
	"topdog/internal/check"
	"topdog/internal/config"
	"topdog/internal/console"
	"topdog/internal/lab/assert"
	"topdog/wire"
)

// commanded has a board compute its score by a command.
func commanded(c *config.Config, _ *fakeBoard) {
	c.Algorithm, c.ScoreSource, c.ScoreCommand = scoreOrOther(), election.ScoreFromCommand, []string{"/bin/score", "-x"}
}

// scoreOrOther is the algorithm that has scores.
func scoreOrOther() wire.Algorithm {
	if a, ok := literature.AlgorithmNamed("score"); ok {
		return a
	}
	return wire.AlgorithmHeir
}

// prints has the command of a board print a number.
func (b *fakeBoard) prints(value uint32) { b.computes(check.Score{Value: value}) }

// breaks has the command of a board fail.
func (b *fakeBoard) breaks(failure string) { b.computes(check.Score{Failure: failure}) }

func (b *fakeBoard) computes(s check.Score) {
	s.Program = "/bin/score"
	b.checker.reports <- check.Report{Score: &s}
	pass(10 * time.Millisecond)
}

// score is what the loop knows of the board's score.
func (b *fakeBoard) score(t *testing.T) (score uint32) {
	t.Helper()
	b.onLoop(t, func() { score = b.Daemon.checks.score })
	return score
}

// loggedWith returns the lines with that text that the board has logged.
func (b *fakeBoard) loggedWith(part string) (lines []string) {
	b.get(func() {
		for _, line := range b.logged {
			if strings.Contains(line, part) {
				lines = append(lines, line)
			}
		}
	})
	return lines
}

// ordered is the score command that the checker has.
func (b *fakeBoard) ordered() []string {
	return b.checker.last().Score
}

// TestScoreCommand: the checker is told the command with its arguments, also if there are no checks, and what it prints is this
// board's score until it prints something else.
func TestScoreCommand(t *testing.T) {
	inBubble(t, func(t *testing.T, l *fakeLAN) {
		one := l.board(1, commanded)
		pass(time.Second)
		assert.Equal(t, []string{"/bin/score", "-x"}, one.ordered(), "the command")
		for _, want := range []uint32{41, 42} {
			one.prints(want)
			assert.Is(t, want, one.score(t), "the score")
		}
		one.wantNoProblem(t)
	})
}

// TestScoreCommandFails: whatever goes wrong is said once in the log and stays
// in the status, and the board counts for nothing, until the command works again.
func TestScoreCommandFails(t *testing.T) {
	inBubble(t, func(t *testing.T, l *fakeLAN) {
		one := l.board(1, commanded)
		pass(time.Second)
		one.prints(7)
		const want = "the score command /bin/score failed (exit status 3); the score of this board is 0 until it works"
		for range 8 {
			one.breaks("failed (exit status 3)")
			pass(5 * time.Second)
		}
		assert.Is(t, 0, one.score(t), "the score")
		if s := one.mustStatus(t); !slices.Contains(texts(s.Problems), want) {
			t.Errorf("the problems are %q, want %q", s.Problems, want)
		}
		assert.Equal(t, []string{"warning: " + want}, one.loggedWith("the score command"), "logged")
		one.prints(8)
		assert.Is(t, 8, one.score(t), "the score")
		one.wantNoProblem(t)
		one.wantLog(t, "the score command /bin/score works again", 1)
	})
}

// TestScoreCommandFlaps: one that fails now and then, each time differently, does not fill the log.
func TestScoreCommandFlaps(t *testing.T) {
	inBubble(t, func(t *testing.T, l *fakeLAN) {
		one := l.board(1, commanded)
		pass(time.Second)
		for n := range 54 {
			one.breaks(fmt.Sprintf("failed for the %dth time", n))
			pass(5 * time.Second)
			one.prints(7)
			pass(5*time.Second - 20*time.Millisecond)
		}
		one.wantLog(t, "the score command", 2) // in 9 min, one that it fails and one that it works
	})
}

// TestScoreOfLostChecker: what was computed is good while the checker is replaced, and not if nothing is heard of any. How
// fit a board without checks is has nothing to do with that.
func TestScoreOfLostChecker(t *testing.T) {
	inBubble(t, func(t *testing.T, l *fakeLAN) {
		one := l.board(1, commanded)
		pass(time.Second)
		one.prints(7)
		one.checker.Kill()
		pass(1500 * time.Millisecond)
		assert.Equal(t, []string{"/bin/score", "-x"}, one.ordered(), "the command of the next checker")
		assert.Is(t, 7, one.score(t), "after the checker was replaced the score")
		one.checker.with(func() { one.checker.mute = true })
		one.checker.Kill()
		pass(5 * time.Second)
		const want = "the score command /bin/score does not run: nothing is heard of the process that runs it; the score of this board is 0 until it works"
		if s := one.mustStatus(t); one.score(t) != 0 || !slices.Contains(texts(s.Problems), want) {
			t.Errorf("nothing is heard of the checker: the score is %d, and the problems are %q", one.score(t), s.Problems)
		}
		one.wantGrade(t, "passing", "")
		one.checker.with(func() { one.checker.mute = false })
		pass(5 * time.Second)
		one.prints(8)
		if s := one.mustStatus(t); one.score(t) != 8 || len(besidesSpares(s)) > 0 {
			t.Errorf("it is heard again: the score is %d, and the problems are %q", one.score(t), s.Problems)
		}
	})
}

// TestScoreCommandReloaded: a new command takes the place of the old one at once;
// no command at all changes nothing, because that takes a restart.
func TestScoreCommandReloaded(t *testing.T) {
	inBubble(t, func(t *testing.T, l *fakeLAN) {
		one := l.board(1, commanded)
		pass(time.Second)
		for _, command := range [][]string{{"/bin/other"}, nil} {
			one.reload(func(c *config.Config) { c.ScoreCommand = command })
			pass(time.Millisecond)
			assert.Equal(t, []string{"/bin/other"}, one.ordered(), "the command")
		}
		one.reload(func(c *config.Config) { c.Checks = []check.Check{webCheck} })
		pass(time.Millisecond)
		assert.Equal(t, []string{"/bin/other"}, one.ordered(), "the command beside checks")
	})
}

// TestNoScoreCommand: a command that nobody asked for is not run.
func TestNoScoreCommand(t *testing.T) {
	inBubble(t, func(t *testing.T, l *fakeLAN) {
		one := l.board(1, func(c *config.Config, _ *fakeBoard) { c.ScoreCommand = []string{"/bin/score"} })
		pass(time.Minute)
		one.reload(func(c *config.Config) { c.ScoreCommand = []string{"/bin/another"} })
		pass(time.Minute)
		assert.Is(t, 0, one.checker.started(), "checkers that were started")
	})
	cfg := config.Defaults()
	cfg.Addresses, cfg.ScoreSource = []config.Address{{IP: floating}}, election.ScoreFromCommand
	if _, err := New(cfg, Platform{}, Options{}); err == nil {
		t.Error("a score from a command that is missing was accepted")
	}
}

// TestStarterEnds: people are told at once, also if nothing has to be started.
func TestStarterEnds(t *testing.T) {
	inBubble(t, func(t *testing.T, l *fakeLAN) {
		one := l.board(1, nil)
		pass(time.Second)
		if one.hasProblem(t, console.ProblemStarter) {
			t.Error("a problem, and nothing has happened")
		}
		close(one.checker.reports)
		pass(10 * time.Millisecond)
		if !one.hasProblem(t, console.ProblemStarter) || len(one.loggedWith("systemctl restart topdog")) != 1 {
			t.Errorf("nobody is told: %q", one.loggedWith(""))
		}
		one.wantGrade(t, "passing", "")
		l.wantHolders(1)
	})
}
