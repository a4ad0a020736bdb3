package check

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"topdog/internal/lab/assert"
)

func TestParseScore(t *testing.T) {
	for _, test := range []struct {
		output string
		want   uint32
		err    string
	}{
		{"7", 7, "<nil>"},
		{" 7\n\n", 7, "<nil>"},
		{"007", 7, "<nil>"},
		{"0\n", 0, "<nil>"},
		{"4294967295\r\n", 4294967295, "<nil>"},
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
		assert.Is(t, test.want, got, "%q", test.output)
		assert.Is(t, test.err, fmt.Sprint(err), "%q", test.output)
	}
}

// scoring is a checker that runs a score command for a test, and what it has done.
type scoring struct {
	*checker
	began time.Time
	runs  []time.Duration
	ran   []string // the words of the last run
	told  []Score
}

// newScoring returns one that lasts as long as the test.
func newScoring(t *testing.T, command func(context.Context, []string) ([]byte, error)) *scoring {
	s := &scoring{checker: newChecker(io.Discard), began: time.Now()}
	s.score = func(ctx context.Context, words []string) ([]byte, error) {
		s.runs, s.ran = append(s.runs, time.Since(s.began)), words
		return command(ctx, words)
	}
	go func() {
		for m := range s.messages {
			s.told = append(s.told, *m.Score)
		}
	}()
	t.Cleanup(func() { s.end(); close(s.messages) })
	return s
}

// replace gives another order.
func (s *scoring) replace(words []string) { s.carryOut(request{Order: &Order{Score: words}}) }

// pass lets time pass.
func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// prints is a command that prints a text.
func prints(text string) func(context.Context, []string) ([]byte, error) {
	return func(context.Context, []string) ([]byte, error) { return []byte(text), nil }
}

// TestScorer: the command is run at once and then every 5 s, with its arguments, and each run is reported.
func TestScorer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		number := 40
		s := newScoring(t, func(context.Context, []string) ([]byte, error) {
			number++
			return fmt.Appendln(nil, number), nil
		})
		s.replace([]string{"/bin/score", "-x"})
		pass(time.Second)
		s.replace([]string{"/bin/score", "-x"}) // another order, and the same command
		pass(2 * scoreEvery)
		assert.Equal(t, []time.Duration{0, scoreEvery, 2 * scoreEvery}, s.runs, "the runs")
		assert.Equal(t, []string{"/bin/score", "-x"}, s.ran, "the command")
		want := []Score{{Program: "/bin/score", Value: 41}, {Program: "/bin/score", Value: 42}, {Program: "/bin/score", Value: 43}}
		assert.Equal(t, want, s.told, "the reports")
	})
}

// TestScorerFails: whatever goes wrong is reported for each run, and the next run is on time.
func TestScorerFails(t *testing.T) {
	for _, test := range []struct {
		name    string
		command func(context.Context, []string) ([]byte, error)
		want    string
	}{
		{"fails", func(context.Context, []string) ([]byte, error) { return nil, errors.New("failed (exit status 3)") }, "failed (exit status 3)"},
		{"hangs", func(ctx context.Context, _ []string) ([]byte, error) { <-ctx.Done(); return nil, ctx.Err() },
			"did not end within 4s and was killed"},
		{"is too late with its number", func(ctx context.Context, _ []string) ([]byte, error) { <-ctx.Done(); return []byte("7"), nil },
			"did not end within 4s and was killed"},
		{"prints no number", prints("high\n"), `printed "high", which is not one whole number from 0 to 4294967295`},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newScoring(t, test.command)
				s.replace([]string{"/bin/score"})
				pass(8*scoreEvery + scoreWithin)
				assert.Is(t, 9, len(s.runs), "runs in 44 s")
				want := slices.Repeat([]Score{{Program: "/bin/score", Failure: test.want}}, 9)
				assert.Equal(t, want, s.told, "the reports")
			})
		})
	}
}

// TestScorerReplaced: a new command takes the place of the old one at once, which is ended, and what that one says then is not
// reported.
func TestScorerReplaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ended := 0
		s := newScoring(t, func(ctx context.Context, words []string) ([]byte, error) {
			if words[0] == "/bin/other" {
				return nil, fmt.Errorf("failed as %s", words[0])
			}
			<-ctx.Done()
			ended++
			return nil, ctx.Err()
		})
		s.replace([]string{"/bin/score"})
		pass(time.Second)
		s.replace([]string{"/bin/other"})
		pass(scoreEvery)
		assert.Equal(t, []time.Duration{0, time.Second, time.Second + scoreEvery}, s.runs, "the runs")
		want := Score{Program: "/bin/other", Failure: "failed as /bin/other"}
		assert.Equal(t, []Score{want, want}, s.told, "the reports")
		assert.Is(t, 1, ended, "runs of the former one that were ended")
		s.replace(nil)
		pass(time.Minute)
		assert.Is(t, 3, len(s.runs), "runs when there is no command any more")
	})
}

// scores waits for the next run of the score command.
func (p *starting) scores(t *testing.T) Score {
	t.Helper()
	return *p.await(t, func(r Report) bool { return r.Score != nil }).Score
}

// TestCheckerRunsTheScoreCommand: a real one, that of another order instead, and one that hangs, which is killed and leaves
// nothing behind.
func TestCheckerRunsTheScoreCommand(t *testing.T) {
	if testing.Short() {
		t.Skip("a command runs into its limit, 4 s")
	}
	t.Parallel()
	p := startChecker(t)
	send(t, p, Order{Score: []string{"/bin/sh", "-c", "echo 4294967295"}})
	assert.Is(t, Score{Program: "/bin/sh", Value: 4294967295}, p.scores(t), "a number")
	file := filepath.Join(t.TempDir(), "pids")
	send(t, p, Order{Score: []string{"/bin/sh", "-c", `sleep 1000 & echo $$ $! >"$0"; wait`, file}})
	assert.Is(t, Score{Program: "/bin/sh", Failure: "did not end within 4s and was killed"}, p.scores(t), "it hangs")
	text, err := os.ReadFile(file)
	if err != nil || len(strings.Fields(string(text))) != 2 {
		t.Fatalf("%q, %v", text, err)
	}
	for word := range strings.FieldsSeq(string(text)) {
		pid := 0
		fmt.Sscan(word, &pid)
		assert.Until(t, "process "+word+" is gone", func() bool { return syscall.Kill(pid, 0) != nil || isZombie(pid) })
	}
}

// isZombie reports whether a process only waits for its parent to notice that it has ended.
func isZombie(pid int) bool {
	stat, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return strings.Contains(string(stat), ") Z ")
}
