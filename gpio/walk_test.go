package gpio

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"topdog/internal/lab/assert"
)

// stamped writes each line with the time at which it came.
type stamped struct {
	start time.Time
	bytes.Buffer
}

func (s *stamped) Write(b []byte) (int, error) {
	fmt.Fprintf(&s.Buffer, "%v ", time.Since(s.start))
	return s.Buffer.Write(b)
}

// Every pattern is named while it shows.
func TestWalkThroughAllPatterns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		led := newLamp()
		out := &stamped{start: time.Now()}
		assert.NoError(t, Walk(t.Context(), out, led, 3*time.Second))
		want := `0s lamp, each pattern for 3s:
0s   leader    lit, with a short gap every second
3s   follower  a short blink every 2 s
6s   election  a quick flicker
9s   fault     three blinks and a pause
12s   off       dark
15s done; the light is what it was before
`
		assert.Equal(t, want, out.String(), "")
		var lit [5]time.Duration // in the time of each pattern
		edges := led.Edges()
		for i := 0; i+1 < len(edges); i++ {
			if edges[i].On {
				lit[int(edges[i].At.Sub(out.start)/(3*time.Second))] += edges[i+1].At.Sub(edges[i].At)
			}
		}
		assert.Equal(t, [5]time.Duration{2700 * ms, 100 * ms, 1500 * ms, 900 * ms, 0}, lit, "lit during each pattern")
		led.wantDark(t, 1)
	})
}

func TestWalkInterrupted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		led := newLamp()
		ctx, cancel := context.WithTimeout(t.Context(), 3500*time.Millisecond)
		defer cancel()
		out := &stamped{start: time.Now()}
		err := Walk(ctx, out, led, 3*time.Second)
		assert.Is(t, "interrupted; the light was put out", fmt.Sprint(err), "the error")
		led.wantDark(t, 1)
		assert.Is(t, false, strings.Contains(out.String(), "election"), "the next pattern is named in %q", out)
	})
}

// unpluggedAfter is a light that is pulled after some changes.
type unpluggedAfter struct {
	*Recorder
	left int
}

func (u *unpluggedAfter) Set(on bool) error {
	if u.left--; u.left < 0 {
		return errors.New("switch the LED lamp: no such device")
	}
	return u.Recorder.Set(on)
}

func TestWalkEndsWithTheFirstFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		led := &unpluggedAfter{NewRecorder("lamp", 10), 3}
		out := &stamped{start: time.Now()}
		err := Walk(t.Context(), out, led, 3*time.Second)
		assert.Is(t, true, strings.HasPrefix(fmt.Sprint(err), "switch the LED lamp: no such device"), "error %v", err)
		if since := time.Since(out.start); since > 2*time.Second {
			t.Errorf("it ended after %v", since)
		}
	})
}
