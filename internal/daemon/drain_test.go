package daemon

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"topdog/internal/config"
	"topdog/internal/console"
	"topdog/internal/lab/assert"
)

// drainable makes a board that keeps its notes in a directory.
func (l *fakeLAN) drainable(number int, dir string) *fakeBoard {
	return l.board(number, func(_ *config.Config, b *fakeBoard) { b.stateDir = dir })
}

// mustDrain drains a board, and returns what that has come to.
func (b *fakeBoard) mustDrain(t *testing.T, asked console.DrainRequest) string {
	t.Helper()
	h, err := b.Drain(t.Context(), asked)
	assert.NoError(t, err)
	pass(10 * time.Millisecond) // until the others know
	return h.Text
}

func (b *fakeBoard) wantDrained(t *testing.T, want string) {
	t.Helper()
	if s := b.mustStatus(t); s.Board.Grade != want || s.Drained != (want == "drained") {
		t.Errorf("board %d is %s (drained: %v), want %s", b.number, s.Board.Grade, s.Drained, want)
	}
}

// TestDrainFor: it ends by itself. What asks for less than a second is a mistake.
func TestDrainFor(t *testing.T) {
	inBubble(t, func(t *testing.T, l *fakeLAN) {
		dir := t.TempDir()
		one := l.drainable(1, dir)
		l.board(2, nil)
		pass(2 * time.Second)
		for _, wrong := range []time.Duration{-1, 1, time.Second - 1, 31 * 24 * time.Hour} {
			if _, err := one.Drain(t.Context(), console.DrainRequest{ForNs: int64(wrong)}); err == nil {
				t.Errorf("%v is accepted", wrong)
			}
		}
		one.mustDrain(t, console.DrainRequest{ForNs: int64(10 * time.Minute)})
		if left := one.mustStatus(t).DrainLeftNs; time.Duration(left).Round(time.Second) != 10*time.Minute {
			t.Errorf("%v are left", time.Duration(left))
		}
		pass(10*time.Minute - time.Second)
		one.wantDrained(t, "drained")
		pass(2 * time.Second)
		one.wantDrained(t, "passing")
		if _, err := os.Stat(filepath.Join(dir, "drained")); !os.IsNotExist(err) {
			t.Errorf("the note is still there: %v", err)
		}
	})
}

// TestDrainOutlivesTheDaemon: a board that is drained is so after a restart, unless the note is of another board
// or of another boot.
func TestDrainOutlivesTheDaemon(t *testing.T) {
	for _, test := range []struct {
		name, note, want string
		problem          string
		stays            bool // the note
	}{
		{"by this board", `{"board":"10.0.0.1"}`, "drained", "", true},
		{"by this board for a time", `{"board":"10.0.0.1","boot":"` + bootID() + `","until_ns":3600000000000}`, "drained", "", true},
		{"until a time that is over", `{"board":"10.0.0.1","boot":"` + bootID() + `","until_ns":1}`, "passing", "", false},
		{"in another boot", `{"board":"10.0.0.1","boot":"another","until_ns":3600000000000}`, "passing", "", false},
		{"by another board", `{"board":"10.0.0.9"}`, "passing", "is of board 10.0.0.9, and this is board 10.0.0.1, so this board is not drained", true},
		{"nothing", ``, "passing", "does not say which board is drained", true},
		{"something else", `[1]`, "passing", "does not say which board is drained", true},
		{"a piece", `{"board":`, "passing", "does not say which board is drained", true},
	} {
		t.Run(test.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, l *fakeLAN) {
				dir := t.TempDir()
				path := filepath.Join(dir, "drained")
				assert.NoError(t, os.WriteFile(path, []byte(test.note), 0o600))
				one := l.drainable(1, dir)
				pass(2 * time.Second)
				one.wantDrained(t, test.want)
				if test.problem != "" {
					one.wantProblem(t, test.problem)
				}
				if _, err := os.Stat(path); (err == nil) != test.stays {
					t.Errorf("the note: %v", err)
				}
				if test.want == "drained" {
					return
				}
				one.mustDrain(t, console.DrainRequest{Force: true})
				if note, err := newDrainFile(dir, new(config.Config)).read(); err != nil || note.Board != "10.0.0.1" {
					t.Errorf("drained, it notes %+v, %v", note, err)
				}
				if problems := one.mustStatus(t).Problems; strings.Contains(strings.Join(texts(problems), "\n"), "drained, or remove") {
					t.Errorf("the problem stays: %q", problems)
				}
			})
		})
	}
}

// TestDrainThatCannotBeNoted: a board that would not be drained after a power cut says so, and is not drained.
func TestDrainThatCannotBeNoted(t *testing.T) {
	inBubble(t, func(t *testing.T, l *fakeLAN) {
		dir := filepath.Join(t.TempDir(), "missing")
		one := l.drainable(1, dir)
		l.board(2, nil)
		pass(2 * time.Second)
		if _, err := one.Drain(t.Context(), console.DrainRequest{}); err == nil || !strings.Contains(err.Error(), "cannot note that this board is drained") {
			t.Errorf("the error is %v", err)
		}
		one.wantDrained(t, "passing")
	})
}

// TestStatusOfAPause: the status of each board says who alone may lead, and for how long. What people are told is in pause.scene.
func TestStatusOfAPause(t *testing.T) {
	inBubble(t, func(t *testing.T, l *fakeLAN) {
		one, two, three := l.three()
		_, err := one.Pause(t.Context(), console.PauseRequest{ForNs: int64(time.Hour)})
		assert.NoError(t, err)
		pass(10 * time.Millisecond)
		for _, b := range []*fakeBoard{one, two, three} {
			s := b.mustStatus(t)
			if !s.Paused || s.PauseLeader != "10.0.0.3" || time.Duration(s.PauseLeftNs).Round(time.Minute) != time.Hour {
				t.Errorf("board %d shows %v, %q, %v", b.number, s.Paused, s.PauseLeader, time.Duration(s.PauseLeftNs))
			}
		}
	})
}

// TestUndrainIsGivenUp: a request that waits for another one ends when its caller gives up.
func TestUndrainIsGivenUp(t *testing.T) {
	inBubble(t, func(t *testing.T, l *fakeLAN) {
		one := l.board(1, nil)
		pass(2 * time.Second)
		one.tasks.post(func() { <-time.After(time.Minute) }) // the daemon stands still
		go one.Undrain(t.Context())
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		start := time.Now()
		if _, err := one.Undrain(ctx); !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != time.Second {
			t.Errorf("%v after %v", err, time.Since(start))
		}
		pass(2 * time.Minute)
	})
}
