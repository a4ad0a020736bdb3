package gpio

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"topdog/internal/lab/assert"
	"topdog/internal/lab/lamp"
)

// counted is a lamp that counts how often it was closed.
type counted struct {
	*lamp.Recorder
	closed atomic.Int32
}

func newLamp() *counted { return &counted{Recorder: lamp.NewRecorder("lamp", 1000)} }

func (l *counted) Close() error {
	l.closed.Add(1)
	return l.Recorder.Close()
}

// wantDark wants that it is put out, and was closed so often.
func (l *counted) wantDark(t *testing.T, closed int32) {
	t.Helper()
	assert.Is(t, false, l.On(), "lit at the end")
	assert.Is(t, closed, l.closed.Load(), "how often it was closed")
}

const ms = time.Millisecond

// show is a running Blinker in virtual time.
type show struct {
	*Blinker
	*counted
	start   time.Time
	end     func() error // ends the context and returns what Run returned
	reports journal
}

// journal is a list of lines that grows in one goroutine and is read in another.
type journal struct {
	mu    sync.Mutex
	lines []string
}

func (j *journal) add(line string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.lines = append(j.lines, line)
}

func (j *journal) all() []string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.Clone(j.lines)
}

// newShow starts a Blinker on what open gives, or on a lamp.
func newShow(t *testing.T, open func(*counted) (LED, error)) *show {
	t.Helper()
	s := &show{counted: newLamp(), start: time.Now()}
	if open == nil {
		open = func(r *counted) (LED, error) { return r, nil }
	}
	s.Blinker = NewBlinker(
		func() (LED, error) { return open(s.counted) },
		func(err error) { s.reports.add(s.at(time.Now()) + " " + err.Error()) },
	)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	s.end = func() error { cancel(); return <-done }
	synctest.Wait()
	return s
}

func (s *show) at(t time.Time) string { return t.Sub(s.start).String() }

// transcript tells the edges as text: "50ms off".
func (s *show) transcript() []string {
	var lines []string
	for _, e := range s.Edges() {
		lines = append(lines, s.at(e.At)+" "+onOff(e.On))
	}
	return lines
}

// pass lets virtual time go by.
func pass(d time.Duration) {
	time.Sleep(d) // In a synctest bubble: no real time passes.
	synctest.Wait()
}

func expect(t *testing.T, got []string, want ...string) {
	t.Helper()
	assert.Equal(t, want, got, "")
}

// TestShownOverTime: a change of role shows at once, wherever the old pattern was, and the old pattern's timer does not
// cut into the new one. The light stays on if both are lit, and the new pattern counts from its own beginning.
func TestShownOverTime(t *testing.T) {
	type shown struct {
		pattern Pattern
		during  time.Duration
	}
	for _, tc := range []struct {
		name  string
		shown []shown
		want  string
	}{
		{"off", []shown{{Off, time.Hour}}, ""},
		{"follower", []shown{{Follower, 4010 * ms}}, "0s on, 50ms off, 2s on, 2.05s off, 4s on"},
		{"election", []shown{{Election, 210 * ms}}, "0s on, 50ms off, 100ms on, 150ms off, 200ms on"},
		{"leader", []shown{{Leader, 2010 * ms}}, "0s on, 900ms off, 1s on, 1.9s off, 2s on"},
		{"fault", []shown{{Fault, 3010 * ms}}, "0s on, 300ms off, 600ms on, 900ms off, 1.2s on, 1.5s off, 3s on"},
		{"from the dark phase on, and the same again",
			[]shown{{Follower, 1234 * ms}, {Leader, 1000 * ms}, {Leader, 900 * ms}, {Off, time.Minute}, {Election, 60 * ms}},
			"0s on, 50ms off, 1.234s on, 2.134s off, 2.234s on, 3.134s off, 1m3.134s on, 1m3.184s off"},
		{"from the second blink of a long pattern on", []shown{{Fault, 700 * ms}, {Leader, 1000 * ms}},
			"0s on, 300ms off, 600ms on, 1.6s off, 1.7s on"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newShow(t, nil)
				for _, p := range tc.shown {
					s.Show(p.pattern)
					pass(p.during)
				}
				assert.Is(t, tc.want, strings.Join(s.transcript(), ", "), "")
				assert.NoError(t, s.end())
				s.wantDark(t, 1)
			})
		})
	}
}

// What the comments promise of every pattern.
func TestPatternsMove(t *testing.T) {
	for p := range Pattern(len(patterns)) {
		steps := p.Steps()
		if p == Off {
			if len(steps) != 1 || steps[0] != (Step{}) {
				t.Errorf("%v: %v, want dark for good", p, steps)
			}
			continue
		}
		var lit, dark time.Duration
		for i, s := range steps {
			if s.On != (i%2 == 0) || s.For < 50*time.Millisecond {
				t.Errorf("%v: step %d is %+v", p, i, s)
			}
			if s.On {
				lit += s.For
			} else {
				dark += s.For
			}
		}
		if lit == 0 || dark == 0 || lit+dark > 3*time.Second {
			t.Errorf("%v: lit %v, dark %v: a light that does not move may be a dead board's", p, lit, dark)
		}
	}
}

// Show does not wait for the LED: not before Run, not while the LED hangs, not
// after Run. What was wished last counts.
func TestShowNeverBlocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hanging := make(chan struct{})
		s := newShow(t, func(r *counted) (LED, error) {
			<-hanging
			return r, nil
		})
		for range 100 {
			s.Show(Leader)
			s.Show(Fault)
			s.Show(Election)
		}
		close(hanging)
		pass(60 * time.Millisecond)
		expect(t, s.transcript(), "0s on", "50ms off")
		assert.NoError(t, s.end())
		for range 100 {
			s.Show(Leader)
			s.Show(Off)
		}
	})
}

// An LED that cannot be had: one report, attempts that never end, and the pattern of the
// moment once it works.
func TestOpenIsTriedForEver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var attempts journal
		start := time.Now()
		var works atomic.Bool
		s := newShow(t, func(r *counted) (LED, error) {
			attempts.add(time.Since(start).String())
			if !works.Load() {
				return nil, errors.New("no GPIO")
			}
			return r, nil
		})
		s.Show(Follower)
		pass(2 * retryEvery)
		expect(t, attempts.all(), "0s", "5s", "10s")
		assert.Is(t, "", s.State().LED, "the LED")
		assert.ErrorContains(t, s.State().Fail, "no GPIO", "the state")

		pass(24 * time.Hour)
		assert.Is(t, 3+24*60*60/5, len(attempts.all()), "attempts")
		works.Store(true)
		s.Show(Leader)
		pass(retryEvery + time.Second)
		expect(t, s.reports.all(), "0s no GPIO")
		if edges := s.Edges(); len(edges) < 2 || edges[1].At.Sub(edges[0].At) != 900*time.Millisecond {
			t.Errorf("not the leader's pulse: %v", s.transcript())
		}
		assert.Is(t, State{LED: "lamp", Pattern: Leader}, s.State(), "the state")
		assert.NoError(t, s.end())
	})
}

// moody is an LED that fails when told to.
type moody struct {
	*counted
	mood atomic.Pointer[string]
}

// fails sets the error of every Set from now on; "" is none.
func (m *moody) fails(text string) { m.mood.Store(&text) }

func (m *moody) Set(on bool) error {
	if text := m.mood.Load(); text != nil && *text != "" {
		return errors.New(*text)
	}
	return m.counted.Set(on)
}

// An LED that fails while it blinks is closed and opened again.
func TestFailingLEDIsOpenedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &moody{}
		var opened atomic.Int32
		s := newShow(t, func(r *counted) (LED, error) {
			opened.Add(1)
			m.counted = r
			return m, nil
		})
		s.Show(Leader)
		pass(500 * time.Millisecond)
		m.fails("busy")
		pass(450 * time.Millisecond) // fails at 900 ms
		assert.Is(t, 1, opened.Load(), "how often it was opened")
		assert.Is(t, 1, s.closed.Load(), "how often it was closed")
		m.fails("")
		pass(retryEvery)
		assert.Is(t, 2, opened.Load(), "how often it was opened")
		expect(t, s.reports.all(), "900ms busy")
		expect(t, s.transcript(), "0s on", "900ms off", "5.9s on")
		assert.NoError(t, s.end())
		s.wantDark(t, 2)
	})
}

// An LED that fails is reported once, and again when it has worked or fails for another reason.
func TestSameFailureIsReportedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &moody{}
		s := newShow(t, func(r *counted) (LED, error) { m.counted = r; return m, nil })
		s.Show(Follower)
		for _, text := range []string{"busy", "gone", "busy", "", "busy"} {
			m.fails(text)
			pass(time.Minute)
		}
		assert.Is(t, 4, len(s.reports.all()), "reports")
		assert.NoError(t, s.end()) // It could not be had at the end: nothing to close.
	})
}

// Another LED is used when the one before is closed, and that it cannot be closed is told.
func TestAnotherLED(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShow(t, func(r *counted) (LED, error) { return closeFails{r, errors.New("stuck")}, nil })
		s.Show(Leader)
		pass(500 * time.Millisecond)
		other := newLamp()
		s.Use(func() (LED, error) { return other, nil })
		synctest.Wait()
		assert.Is(t, true, other.On(), "the other one is lit")
		s.wantDark(t, 1)
		expect(t, s.reports.all(), "500ms put the LED out at the end: stuck")
		assert.NoError(t, s.end())
		other.wantDark(t, 1)
	})
}

// What cannot be put out is told at the end.
func TestEndReturnsTheErrorOfClosing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stuck := errors.New("stuck")
		s := newShow(t, func(r *counted) (LED, error) { return closeFails{r, stuck}, nil })
		s.Show(Leader)
		pass(time.Second)
		assert.ErrorIs(t, s.end(), stuck, "Run")
	})
}

type closeFails struct {
	*counted
	err error
}

func (c closeFails) Close() error { return errors.Join(c.counted.Close(), c.err) }

// TestNoLEDCostsNothing holds that a board without a light is not woken up for one.
func TestNoLEDCostsNothing(t *testing.T) {
	r := run{Blinker: NewBlinker(func() (LED, error) { return None, nil }, func(error) {})}
	r.follow()
	for range 3 {
		assert.Is(t, 0, r.advance(), "wants to be woken in")
	}
}

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
	*lamp.Recorder
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
		led := &unpluggedAfter{lamp.NewRecorder("lamp", 10), 3}
		out := &stamped{start: time.Now()}
		err := Walk(t.Context(), out, led, 3*time.Second)
		assert.Is(t, true, strings.HasPrefix(fmt.Sprint(err), "switch the LED lamp: no such device"), "error %v", err)
		if since := time.Since(out.start); since > 2*time.Second {
			t.Errorf("it ended after %v", since)
		}
	})
}
