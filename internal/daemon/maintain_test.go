package daemon

import (
	"context"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"topdog/election/silence"
	"topdog/internal/config"
	"topdog/internal/console"
	"topdog/internal/lab/assert"
)

// impatient is the context of a caller who gives up as soon as the note may be written.
type impatient struct {
	context.Context
	asked  atomic.Int32
	onDone func()
}

var closed = func() chan struct{} { c := make(chan struct{}); close(c); return c }()

// turn is when the drain waits for its turn to write the note: it looks at the context twice before, to ask whether it may drain.
const turn = 3

func (c *impatient) Done() <-chan struct{} {
	n := c.asked.Add(1)
	if n == turn {
		c.onDone()
	}
	if n <= turn {
		return nil
	}
	return closed
}

func (c *impatient) Err() error {
	if c.asked.Load() <= turn {
		return nil
	}
	return context.Canceled
}

// TestDrainGivenUp: a caller who gives up while the note is written, or whose time is over because the disk is
// slow, leaves a note and a board that agree, and it can be undrained.
func TestDrainGivenUp(t *testing.T) {
	inBubble(t, func(t *testing.T, l *fakeLAN) {
		dir := t.TempDir()
		one := l.drainable(1, dir)
		l.board(2, nil)
		pass(2 * time.Second)
		busy := make(chan struct{})
		ctx := &impatient{Context: t.Context(), onDone: func() { one.tasks.posted <- func() { <-busy } }}
		go func() {
			time.Sleep(10 * time.Millisecond)
			close(busy)
		}()
		_, err := one.Drain(ctx, console.DrainRequest{})
		t.Log("drain:", err)
		pass(100 * time.Millisecond)
		_, missing := os.Stat(filepath.Join(dir, "drained"))
		s := one.mustStatus(t)
		if s.Drained != (missing == nil) {
			t.Errorf("drained: %v, the note: %v", s.Drained, missing)
		}
		if _, err = one.Undrain(t.Context()); err != nil {
			t.Errorf("undrain: %v", err)
		}
		if _, missing := os.Stat(filepath.Join(dir, "drained")); missing == nil {
			t.Error("undrained, the note is still there: the board is drained after the next start")
		}
	})
}

// TestTwoDrains: two callers at once leave a note that can be read.
func TestTwoDrains(t *testing.T) {
	inBubble(t, func(t *testing.T, l *fakeLAN) {
		one := l.drainable(1, t.TempDir())
		l.board(2, nil)
		pass(2 * time.Second)
		for range 200 {
			var wg sync.WaitGroup
			for _, length := range []time.Duration{0, time.Hour} {
				wg.Go(func() {
					if _, err := one.Drain(t.Context(), console.DrainRequest{ForNs: int64(length)}); err != nil {
						t.Error(err)
					}
				})
			}
			wg.Wait()
			note, err := one.drain.file.read()
			assert.NoError(t, err)
			s := one.mustStatus(t)
			if (note.Boot == "") != (s.DrainLeftNs == 0) {
				t.Fatalf("the note is %+v, and %v are left", note, time.Duration(s.DrainLeftNs))
			}
		}
	})
}

// pauseAndKillLeader has three boards, pauses their group, and kills board 3, which alone may lead then.
func (l *fakeLAN) pauseAndKillLeader(t *testing.T) {
	t.Helper()
	one, _, three := l.three()
	_, err := one.Pause(t.Context(), console.PauseRequest{ForNs: int64(time.Hour)})
	assert.NoError(t, err)
	pass(time.Second)
	three.Kill()
}

// TestPausedLeaderTriesAgain: no other board may lead during a pause, so the one that may does not back off when the kernel
// refuses it the address.
func TestPausedLeaderTriesAgain(t *testing.T) {
	inBubble(t, func(t *testing.T, l *fakeLAN) {
		l.pauseAndKillLeader(t)
		pass(time.Second)
		again := l.board(3, func(_ *config.Config, b *fakeBoard) { b.acquireFails = errNoPermission })
		pass(1500 * time.Millisecond)
		again.get(func() { again.acquireFails = nil })
		pass(time.Second)
		l.wantHolders(3)
	})
}

// TestPausedLeaderFrozen: the switch of a leader whose process stands still during a pause releases the address. It is back
// when the leader goes on, as soon as the RESIGN of the switch has been heard and everybody was asked.
func TestPausedLeaderFrozen(t *testing.T) {
	for _, h := range []time.Duration{100 * time.Millisecond, 10 * time.Second} {
		t.Run(h.String(), func(t *testing.T) {
			inBubble(t, func(t *testing.T, l *fakeLAN) {
				slow := func(c *config.Config, _ *fakeBoard) { c.Interval = h }
				one, _ := l.board(1, slow), l.board(2, slow)
				var latest func() *fakeDeadman
				three := l.board(3, func(c *config.Config, b *fakeBoard) {
					slow(c, b)
					latest = withSwitch(b)
				})
				pass(10*time.Second + 5*h)
				l.wantHolders(3)
				_, err := one.Pause(t.Context(), console.PauseRequest{ForNs: int64(time.Hour)})
				assert.NoError(t, err)
				pass(h)
				frozen := time.Now()
				three.freeze(3 * h)
				pass(2 * h)
				if !latest().Fired() || len(l.holders()) > 0 {
					t.Fatal("the switch has not released the address")
				}
				pass(time.Until(frozen.Add(3 * h)))
				woken := time.Now()
				for len(l.holders()) == 0 && time.Since(woken) < 10*h {
					pass(time.Millisecond)
				}
				l.wantHolders(3)
				most := 40*time.Millisecond + silence.DefaultGrace(h)
				if got := time.Since(woken); got > most {
					t.Errorf("nobody has the address for %v, want %v at most", got, most)
				} else {
					t.Logf("nobody has the address for %v", got)
				}
			})
		})
	}
}

// TestNewcomerLearnsOfThePause: a board that boots while the board that alone may lead is gone does not take the address. Its first
// question is only challenged, since nobody knows it. Nine of ten newcomers would hear of the pause behind a HELLO in time, so sixty
// boot.
func TestNewcomerLearnsOfThePause(t *testing.T) {
	inBubble(t, func(t *testing.T, l *fakeLAN) {
		l.pauseAndKillLeader(t)
		pass(5 * time.Second)
		for number := 4; number < 64; number++ {
			newcomer := l.board(number, nil)
			pass(5 * time.Second)
			l.wantHolders()
			newcomer.Kill()
		}
	})
}
