package check

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"topdog/internal/lab/assert"
)

// fakeProber answers as it is told, and notes when it was asked.
type fakeProber struct {
	start  time.Time
	takes  func(n int) time.Duration // of the n-th run, from 1
	fails  func(n int) error
	change chan struct{} // nil for one that is polled
	asked  []time.Duration
	told   []time.Duration // when its results were reported
	asks   int             // at the moment
	most   int             // at a time
	closed bool
}

func (p *fakeProber) probe(ctx context.Context) error {
	p.asked = append(p.asked, time.Since(p.start))
	n := len(p.asked)
	p.asks++
	p.most = max(p.most, p.asks)
	defer func() { p.asks-- }()
	if p.takes != nil {
		select {
		case <-time.After(p.takes(n)):
		case <-ctx.Done():
			return errors.New("gave up")
		}
	}
	if p.fails != nil {
		return p.fails(n)
	}
	return nil
}

func (p *fakeProber) changes() <-chan struct{} {
	return p.change
}

func (p *fakeProber) close() { p.closed = true }

// runWorker runs a check for a while of virtual time, and returns what it reports.
func runWorker(t *testing.T, c Check, p *fakeProber, lasts time.Duration, meanwhile func()) (reports []Report) {
	t.Helper()
	p.start = time.Now()
	ctx, end := context.WithTimeout(t.Context(), lasts)
	defer end()
	if meanwhile != nil {
		go meanwhile()
	}
	w := worker{check: c, prober: p, report: func(r Report) {
		reports, p.told = append(reports, r), append(p.told, time.Since(p.start))
	}}
	w.run(ctx)
	if !p.closed {
		t.Error("the prober was not closed")
	}
	if p.most > 1 {
		t.Errorf("%d runs at a time", p.most)
	}
	return reports
}

var second = Check{Kind: TCP, Target: "127.0.0.1:1", Every: time.Second, Timeout: time.Second, Rise: 2, Fall: 3}

// TestRhythm: the runs keep their distance, whatever each takes.
func TestRhythm(t *testing.T) {
	for name, takes := range map[string]func(int) time.Duration{
		"quick":    nil,
		"slow":     func(int) time.Duration { return 900 * time.Millisecond },
		"too slow": func(int) time.Duration { return time.Minute },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := &fakeProber{takes: takes}
				runWorker(t, second, p, time.Minute, nil)
				if n := len(p.asked); n < 59 || n > 62 {
					t.Errorf("%d runs in a minute", n)
				}
				for i := 3; i < len(p.asked); i++ {
					apart := p.asked[i] - p.asked[i-1]
					if least, most := 900*time.Millisecond, 1100*time.Millisecond; apart < least || apart > most {
						t.Errorf("run %d comes %v after the one before", i, apart)
					}
				}
			})
		})
	}
}

// TestRhythmIsNotThatOfAnother: two checks that begin together do not run together.
func TestRhythmIsNotThatOfAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		seconds := map[time.Duration]bool{}
		for range 20 {
			p := &fakeProber{}
			runWorker(t, second, p, 2*time.Second, nil)
			seconds[p.asked[1]] = true
		}
		if len(seconds) < 15 {
			t.Errorf("twenty checks that begin together run again at %d times", len(seconds))
		}
	})
}

// TestStarvedRunIsNoFailure: a run that takes much longer than its timeout allows was not waiting for the service.
func TestStarvedRunIsNoFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := second
		c.Fall = 1
		p := &fakeProber{fails: func(n int) error {
			if n == 3 {
				time.Sleep(5 * time.Second) // nothing of this process runs
				return errors.New("timeout")
			}
			return nil
		}}
		reports := runWorker(t, c, p, 10*time.Second, nil)
		assert.Equal(t, []Report{{ID: c.ID(), Passing: true}}, reports, "reports")
	})
}

func TestReports(t *testing.T) {
	refused := errors.New("connection refused")
	synctest.Test(t, func(t *testing.T) {
		p := &fakeProber{
			fails: func(n int) error {
				switch {
				case n > 2 && n < 6:
					return refused
				case n == 6:
					return errors.New("something else") // which is told later, if it stays so
				case n > 10 && n < 20:
					return errors.New("another thing")
				}
				return nil
			},
			takes: func(n int) time.Duration {
				if n > 30 {
					return time.Minute
				}
				return 0
			},
		}
		id := second.ID()
		want := []Report{
			{ID: id, Passing: true}, {ID: id, Text: "connection refused"}, {ID: id, Passing: true},
			{ID: id, Text: "another thing"}, {ID: id, Passing: true},
			{ID: id, Text: "no answer within 1s"},
		}
		assert.Equal(t, want, runWorker(t, second, p, time.Minute, nil), "reports")
	})
}

// TestChangesAreSeenAtOnce: what is told of changes is looked at when they come, and slowly otherwise; and
// until it has risen, at its rhythm.
func TestChangesAreSeenAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := Check{Kind: Unit, Target: "a.service", Every: time.Second, Timeout: time.Second, Rise: 2, Fall: 3}
		p := &fakeProber{change: make(chan struct{}, 1)}
		var dead atomic.Bool
		p.fails = func(int) error {
			if dead.Load() {
				return errors.New("dead")
			}
			return nil
		}
		runWorker(t, c, p, 40*time.Second, func() {
			time.Sleep(20*time.Second + time.Millisecond)
			dead.Store(true)
			notify(p.change)
			time.Sleep(5 * time.Second)
			dead.Store(false)
			notify(p.change)
		})
		if n := len(p.asked); n > 15 {
			t.Errorf("%d runs in 40 s", n)
		}
		at := p.told
		if len(at) != 3 || at[1] != 20*time.Second+time.Millisecond {
			t.Fatalf("reports at %v", at)
		}
		if up := at[2] - 25*time.Second; up < 0 || up > 1100*time.Millisecond {
			t.Errorf("it has risen %v after it was back", up)
		}
	})
}

// TestWhatFailsIsLookedAtOften: nothing tells that a process begins. The looks that let it rise are as far apart as any.
func TestWhatFailsIsLookedAtOften(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := second
		c.Kind = Exec
		p := &fakeProber{change: make(chan struct{}, 1)}
		p.fails = func(int) error {
			if since := time.Since(p.start); since > 20*time.Second && since < 40*time.Second {
				return errors.New("there is no such process")
			}
			return nil
		}
		runWorker(t, c, p, time.Minute, nil)
		at := p.told
		if len(at) != 3 {
			t.Fatalf("reports at %v", at)
		}
		if up := at[2] - 40*time.Second; up < 900*time.Millisecond || up > 2200*time.Millisecond {
			t.Errorf("with rise = 2 it has risen %v after it was back", up)
		}
	})
}

// TestChangesAreNotAFlood: something that changes all the time does not keep the board busy.
func TestChangesAreNotAFlood(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := Check{Kind: Unit, Every: time.Second, Timeout: time.Second, Rise: 2, Fall: 3}
		p := &fakeProber{change: make(chan struct{}, 1)}
		runWorker(t, c, p, 10*time.Second, func() {
			for end := time.Now().Add(10 * time.Second); time.Now().Before(end); time.Sleep(time.Millisecond) {
				notify(p.change)
			}
		})
		if n, most := len(p.asked), int(10*time.Second/changesApart)+10; n > most {
			t.Errorf("%d runs in 10 s, more than %d", n, most)
		}
	})
}

// A result is + or -; behind each stands the state that it leads to: p or f.
func TestCounter(t *testing.T) {
	for _, test := range []struct {
		name       string
		fact       bool // of the failures
		rise, fall int
		want       string
	}{
		{"the first result decides", false, 2, 3, "+p"},
		{"also if it is bad", false, 2, 3, "-f"},
		{"three strikes", false, 2, 3, "+p-p-p-f"},
		{"in a row", false, 2, 3, "+p-p-p+p-p-p-f"},
		{"up again", false, 2, 3, "-f+f+p"},
		{"also in a row", false, 3, 1, "-f+f+f-f+f+f+p-f"},
		{"a fact", true, 2, 3, "+p-f+f-f+f+p-f"},
		{"one is enough", false, 1, 1, "+p-f+p-f"},
	} {
		t.Run(test.name, func(t *testing.T) {
			var c counter
			var got strings.Builder
			for i := 0; i < len(test.want); i += 2 {
				before := c.state
				passed := test.want[i] == '+'
				if changed := c.count(passed, test.fact && !passed, test.rise, test.fall); changed != (before != c.state) {
					t.Errorf("after %q: changed is %v", test.want[:i+1], changed)
				}
				got.WriteByte(test.want[i])
				got.WriteByte("?pf"[c.state])
			}
			assert.Is(t, test.want, got.String(), "")
		})
	}
}
