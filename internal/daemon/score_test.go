package daemon

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"topdog/election"
	"topdog/election/literature"
	"topdog/internal/config"
	"topdog/wire"
)

// prints is a command that prints a text.
func prints(text string) func(context.Context, []string) ([]byte, error) {
	return func(context.Context, []string) ([]byte, error) { return []byte(text), nil }
}

// commanded has a board compute its score by a command.
func commanded(command func(context.Context, []string) ([]byte, error)) func(*config.Config, *fakeBoard) {
	return func(c *config.Config, b *fakeBoard) {
		c.Algorithm, c.ScoreSource, c.ScoreCommand = scoreOrOther(), election.ScoreFromCommand, []string{"/bin/score", "-x"}
		b.command = command
	}
}

// scoreOrOther is the algorithm that has scores.
func scoreOrOther() wire.Algorithm {
	if a, ok := literature.AlgorithmNamed("score"); ok {
		return a
	}
	return wire.AlgorithmHeir
}

// setCommand changes what the board's command does from its next run on.
func (b *fakeBoard) setCommand(command func(context.Context, []string) ([]byte, error)) {
	b.get(func() { b.command = command })
}

// score is what the loop knows of the board's score.
func (b *fakeBoard) score(t *testing.T) (score uint32) {
	t.Helper()
	if err := b.tasks.call(t.Context(), func() { score = b.Daemon.score.value }); err != nil {
		t.Fatal(err)
	}
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

func TestParseScore(t *testing.T) {
	for _, test := range []struct {
		output string
		want   uint32
		err    string
	}{
		{"7", 7, ""},
		{" 7\n\n", 7, ""},
		{"007", 7, ""},
		{"0\n", 0, ""},
		{"4294967295\r\n", 4294967295, ""},
		{"4294967296", 0, `printed "4294967296", which is not one whole number from 0 to 4294967295`},
		{"-1", 0, `printed "-1", which is not one whole number from 0 to 4294967295`},
		{"+1", 0, `printed "+1", which is not one whole number from 0 to 4294967295`},
		{"0x10", 0, `printed "0x10", which is not one whole number from 0 to 4294967295`},
		{"1_000", 0, `printed "1_000", which is not one whole number from 0 to 4294967295`},
		{"3.7", 0, `printed "3.7", which is not one whole number from 0 to 4294967295`},
		{"1 2", 0, `printed "1 2", which is not one whole number from 0 to 4294967295`},
		{"load: 7\n", 0, `printed "load: 7", which is not one whole number from 0 to 4294967295`},
		{"\x1b[31m7\nrm", 0, `printed "\x1b[31m7\nrm", which is not one whole number from 0 to 4294967295`},
		{"\xff", 0, `printed "\xff", which is not one whole number from 0 to 4294967295`},
		{" \n", 0, "printed nothing"},
		{strings.Repeat("ü", 61), 0, `printed "` + strings.Repeat("ü", 60) + `…", which is not one whole number from 0 to 4294967295`},
	} {
		got, err := parseScore([]byte(test.output))
		text := ""
		if err != nil {
			text = err.Error()
		}
		if got != test.want || text != test.err {
			t.Errorf("%q: got %d, %q; want %d, %q", test.output, got, text, test.want, test.err)
		}
	}
}

// TestScoreCommand: the command is run at once and then every 5 s, with its
// arguments, and what it prints is this board's score until it prints
// something else.
func TestScoreCommand(t *testing.T) {
	inBubble(t, func(t *testing.T, l *fakeLAN) {
		number := 40
		one := l.board(1, commanded(func(context.Context, []string) ([]byte, error) {
			number++
			return fmt.Appendln(nil, number), nil
		}))
		pass(time.Second)
		if n := one.score(t); n != 41 {
			t.Errorf("after the first run the score is %d, want 41", n)
		}
		pass(scoreEvery)
		if n := one.score(t); n != 42 {
			t.Errorf("after the second run the score is %d, want 42", n)
		}
		one.get(func() {
			if diff := cmp.Diff([]string{"/bin/score", "-x"}, one.ran); diff != "" {
				t.Errorf("the command (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff([]time.Duration{0, scoreEvery}, one.runs); diff != "" {
				t.Errorf("the runs (-want +got):\n%s", diff)
			}
		})
		if s := one.mustStatus(t); len(s.Problems) > 0 {
			t.Errorf("problems: %q", s.Problems)
		}
	})
}

// TestScoreCommandFails: whatever goes wrong is said once in the log and stays
// in the status, and the board counts for nothing, until the command works again.
func TestScoreCommandFails(t *testing.T) {
	for _, test := range []struct {
		name    string
		command func(context.Context, []string) ([]byte, error)
		want    string
	}{
		{"fails", func(context.Context, []string) ([]byte, error) { return nil, errors.New("failed (exit status 3)") },
			"the score command /bin/score failed (exit status 3); the score of this board is 0 until it works"},
		{"hangs", func(ctx context.Context, _ []string) ([]byte, error) { <-ctx.Done(); return nil, ctx.Err() },
			"the score command /bin/score did not end within 4s and was killed; the score of this board is 0 until it works"},
		{"is too late with its number", func(ctx context.Context, _ []string) ([]byte, error) { <-ctx.Done(); return []byte("7"), nil },
			"the score command /bin/score did not end within 4s and was killed; the score of this board is 0 until it works"},
		{"prints no number", prints("high\n"),
			`the score command /bin/score printed "high", which is not one whole number from 0 to 4294967295; the score of this board is 0 until it works`},
	} {
		t.Run(test.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, l *fakeLAN) {
				one := l.board(1, commanded(prints("7")))
				pass(time.Second)
				one.setCommand(test.command)
				pass(8 * scoreEvery)
				if n := one.score(t); n != 0 {
					t.Errorf("the score is %d, want 0", n)
				}
				if s := one.mustStatus(t); !slices.Contains(texts(s.Problems), test.want) {
					t.Errorf("the problems are %q, want %q", s.Problems, test.want)
				}
				if diff := cmp.Diff([]string{"warning: " + test.want}, one.loggedWith("the score command")); diff != "" {
					t.Errorf("logged (-want +got):\n%s", diff)
				}
				one.get(func() {
					if n := len(one.runs); n != 9 {
						t.Errorf("it was run %d times in 41 s, want 9 times", n)
					}
				})

				one.setCommand(prints("8"))
				pass(2 * scoreEvery)
				if n := one.score(t); n != 8 {
					t.Errorf("the score is %d, want 8", n)
				}
				if s := one.mustStatus(t); len(s.Problems) > 0 {
					t.Errorf("it works again, and the problems are %q", s.Problems)
				}
				if n := len(one.loggedWith("the score command /bin/score works again")); n != 1 {
					t.Errorf("that it works again was logged %d times", n)
				}
			})
		})
	}
}

// TestScoreCommandFlaps: one that fails now and then, each time differently, does not fill the log.
func TestScoreCommandFlaps(t *testing.T) {
	inBubble(t, func(t *testing.T, l *fakeLAN) {
		n := 0
		one := l.board(1, commanded(func(context.Context, []string) ([]byte, error) {
			n++
			if n%2 == 0 {
				return []byte("7"), nil
			}
			return nil, fmt.Errorf("failed for the %dth time", n)
		}))
		pass(9 * time.Minute)
		if lines := one.loggedWith("the score command"); len(lines) != 2 {
			t.Errorf("%d lines were logged in 9 min, want one that it fails and one that it works:\n%s", len(lines), strings.Join(lines, "\n"))
		}
	})
}

// TestScoreCommandStops: a command that hangs ends with the daemon, at once.
func TestScoreCommandStops(t *testing.T) {
	inBubble(t, func(t *testing.T, l *fakeLAN) {
		ended := false
		one := l.board(1, commanded(func(ctx context.Context, _ []string) ([]byte, error) {
			<-ctx.Done()
			ended = true
			return nil, ctx.Err()
		}))
		pass(time.Second)
		one.Kill()
		pass(time.Millisecond)
		if !ended {
			t.Error("the command was not ended")
		}
		if lines := one.loggedWith("the score command"); len(lines) > 0 {
			t.Errorf("the daemon's own end was taken for a failure of the command: %q", lines)
		}
	})
}

// TestScoreCommandReloaded: a new command takes the place of the old one at once;
// no command at all changes nothing, because that takes a restart.
func TestScoreCommandReloaded(t *testing.T) {
	inBubble(t, func(t *testing.T, l *fakeLAN) {
		one := l.board(1, commanded(prints("7")))
		pass(time.Second)
		one.reload(func(c *config.Config) { c.ScoreCommand = []string{"/bin/other"} })
		pass(time.Millisecond)
		one.reload(func(c *config.Config) { c.ScoreCommand = nil })
		pass(scoreEvery)
		one.get(func() {
			if diff := cmp.Diff([]time.Duration{0, time.Second, time.Second + scoreEvery}, one.runs); diff != "" {
				t.Errorf("the runs (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff([]string{"/bin/other"}, one.ran); diff != "" {
				t.Errorf("the command (-want +got):\n%s", diff)
			}
		})
	})
}

// TestScoreCommandReloadedWhileItFails: what is said of a run is said of the command
// that was run, though another one is there by then. (The race detector looks on.)
func TestScoreCommandReloadedWhileItFails(t *testing.T) {
	inBubble(t, func(t *testing.T, l *fakeLAN) {
		board := make(chan *fakeBoard, 1)
		n := 0
		one := l.board(1, commanded(func(_ context.Context, words []string) ([]byte, error) {
			switch n++; n {
			case 2:
				b := <-board
				b.reload(func(c *config.Config) { c.ScoreCommand = []string{"/bin/other"} })
			case 3: // follows at once
				<-time.After(time.Second)
			}
			return nil, fmt.Errorf("failed as %s", words[0])
		}))
		board <- one
		for _, step := range []struct {
			pass time.Duration
			want string
		}{
			{scoreEvery + time.Second/2, "the score command /bin/score failed as /bin/score;"},
			{time.Second, "the score command /bin/other failed as /bin/other;"},
		} {
			pass(step.pass)
			if problems := texts(one.mustStatus(t).Problems); len(problems) != 1 || !strings.HasPrefix(problems[0], step.want) {
				t.Errorf("the problems are %q, want %q", problems, step.want)
			}
		}
	})
}

// TestNoScoreCommand: a command that nobody asked for is not run.
func TestNoScoreCommand(t *testing.T) {
	inBubble(t, func(t *testing.T, l *fakeLAN) {
		one := l.board(1, func(c *config.Config, _ *fakeBoard) { c.ScoreCommand = []string{"/bin/score"} })
		pass(time.Minute)
		one.reload(func(c *config.Config) { c.ScoreCommand = []string{"/bin/another"} })
		pass(time.Minute)
		one.get(func() {
			if len(one.runs) > 0 {
				t.Errorf("it was run at %v", one.runs)
			}
		})
	})
	cfg := config.Defaults()
	cfg.Addresses, cfg.ScoreSource = []config.Address{{IP: floating}}, election.ScoreFromCommand
	if _, err := New(cfg, Platform{}, Options{}); err == nil {
		t.Error("a score from a command that is missing was accepted")
	}
}

// TestRealScore runs a real script in a real daemon, in real time.
func TestRealScore(t *testing.T) {
	shell, err := exec.LookPath("sh")
	if err != nil {
		t.Skipf("needs a shell: %v", err)
	}
	path := filepath.Join(t.TempDir(), "score")
	if err := os.WriteFile(path, []byte("#!"+shell+"\necho 4294967295\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	l := newFakeLAN(t)
	one := l.board(1, func(c *config.Config, b *fakeBoard) {
		commanded(runScoreCommand)(c, b)
		c.ScoreCommand = []string{path}
	})
	defer l.close()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(30 * time.Second)
	for one.score(t) != 4294967295 {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("the score is %d; problems: %q", one.score(t), one.mustStatus(t).Problems)
		}
	}
}
