package bench

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"topdog/internal/lab/assert"
	"topdog/internal/lab/bench/report"
	"topdog/internal/lab/judge"
)

// testTimeout is for a machine in trouble; what is here takes some seconds.
const testTimeout = 3 * time.Minute

// bounded is the context of a test.
func bounded(t *judge.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
	t.Cleanup(cancel)
	return ctx
}

// programDir is where program has built it, if a test needed it.
var programDir string

// program builds topdog once for all tests.
var program = sync.OnceValues(func() (*topdog, error) {
	var err error
	if programDir, err = os.MkdirTemp("", "topdog-bench-test"); err != nil {
		return nil, err
	}
	var t topdog
	t.path, t.version, err = buildTopdog(context.Background(), programDir)
	return &t, err
})

func TestMain(m *testing.M) {
	judge.Setup()
	status := m.Run()
	if programDir != "" {
		os.RemoveAll(programDir)
	}
	os.Exit(status)
}

// built makes topdog's systems runnable.
func built(t testing.TB, systems []system) []system {
	t.Helper()
	p, err := program()
	assert.NoError(t, err)
	for _, s := range systems {
		if s, ok := s.(*topdog); ok {
			s.path, s.version = p.path, p.version
		}
	}
	return systems
}

// brief is a system that counts as stable soon: the tests judge no figures.
type brief struct{ system }

func (brief) stableFor() time.Duration { return time.Second }

// Each program takes over from a leader whose cable is pulled, and the figures say so.
func TestCablePulled(t *testing.T) {
	judge.Run(t, func(t *judge.T) {
		ctx := bounded(t)
		event := named(allEvents(), report.CablePulled)[0]
		only := newSlot()
		parts := map[string]func(*judge.T){}
		for _, sys := range built(t, named(allSystems(), "topdog-100ms", "keepalived-100ms", "ucarp-1s")) {
			parts[sys.String()] = func(t *judge.T) {
				if err := sys.missing(); err != nil {
					t.Skip(err)
				}
				runs, err := onNewRig(ctx, brief{sys}, event, only)
				assert.NoError(t, err)
				run, back := runs[report.CablePulled], runs[report.Returned]
				if run.Outage < time.Millisecond || run.Outage > testTimeout || run.Censored || run.Moves < 1 {
					t.Errorf("a leader was lost: %+v", run)
				}
				if run.None <= 0 {
					t.Errorf("the address was with somebody all the time: %+v", run)
				}
				if run.RoundTrip <= 0 {
					t.Errorf("the way to the address takes %v", run.RoundTrip)
				}
				if back.Outage <= 0 || back.Outage > run.Outage+time.Second {
					t.Errorf("the leader returned: %+v", back)
				}
			}
		}
		t.Together(parts)
	})
}

// A leader of topdog that nobody hears, one that is cut off for a moment and one whose LAN falls in
// two: each run fills its tables, and the boards were asked.
func TestSeparated(t *testing.T) {
	judge.Run(t, func(t *judge.T) {
		ctx := bounded(t)
		sys := brief{built(t, named(allSystems(), "topdog-100ms"))[0]}
		parts := map[string]func(*judge.T){}
		for _, e := range named(allEvents(), report.Mute, report.CutShort, report.Split) {
			parts[e.String()] = func(t *judge.T) {
				runs, err := onNewRig(ctx, sys, e, newSlot())
				assert.NoError(t, err)
				for _, table := range e.tables {
					if run := runs[table.Key]; run == nil || !run.Probed || run.Outage <= 0 || run.Censored {
						t.Errorf("%s: %+v", table.Key, run)
					}
				}
				// Whoever leads, another board does while nobody hears it.
				if runs[e.String()].Moves < 1 {
					t.Errorf("the address did not move")
				}
			}
		}
		t.Together(parts)
	})
}

// The service of a leader of topdog dies, and the client that asks it hears that of another board. So it does beside keepalived,
// and a board that looks at its service costs something.
func TestService(t *testing.T) {
	judge.Run(t, func(t *judge.T) {
		ctx := bounded(t)
		event := named(allEvents(), report.ServiceKilled)[0]
		only := newSlot()
		parts := map[string]func(*judge.T){}
		for _, sys := range built(t, named(allSystems(), "topdog-service", "keepalived-10ms-process")) {
			parts[sys.String()] = func(t *judge.T) {
				if err := sys.missing(); err != nil {
					t.Skip(err)
				}
				runs, err := onNewRig(ctx, sys, event, only)
				assert.NoError(t, err)
				if run := runs[report.ServiceKilled]; run.Moves < 1 || run.Censored || run.Outage > testTimeout {
					t.Errorf("the service was killed: %+v", run)
				}
			}
		}
		t.Together(parts)
	})
}

// onNewRig does one run of an event on a LAN of its own.
func onNewRig(ctx context.Context, sys system, e event, only slot) (runs map[string]*report.Run, err error) {
	r, err := newRig(sys, e.variant.boards(), e.variant)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.close()) }()
	if err := r.startInTurn(ctx); err != nil {
		return nil, err
	}
	return r.try(ctx, e, only, turn{1, 0.5})
}

// A whole session in small, two halves side by side: every part, and what it says
// can be read again.
func TestSession(t *testing.T) {
	judge.Run(t, func(t *judge.T) {
		ctx := bounded(t)
		null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
		assert.NoError(t, err)
		defer null.Close()
		half := func(parts ...part) (*report.Report, error) {
			p := quickPlan()
			p.parts = parts
			p.systems = []system{brief{built(t, named(allSystems(), "topdog-100ms"))[0]}}
			p.events = named(allEvents(), report.FramesDropped)
			p.runs, p.starts, p.calm, p.lossFor, p.lossRuns = 1, 1, 500*time.Millisecond, 500*time.Millisecond, 1
			p.replicas = func(system) int { return 1 }
			show := newProgress(null)
			defer show.close()
			return measure(ctx, p, t.TempDir(), show)
		}
		built(t, nil) // or fail here, and not in another goroutine
		var r, other *report.Report
		err = together(
			func() (err error) { r, err = half(partFailures, partStarts); return err },
			func() (err error) { other, err = half(partCalm, partLoss); return err },
		)
		assert.NoError(t, err)
		r.Calm, r.Lossy = other.Calm, other.Lossy
		assert.ErrorIs(t, r.Check(), nil, "")
		for _, f := range r.Failures {
			assert.Is(t, 1, len(f.Runs), "%s, %s: runs", f.System, f.Event)
		}
		n := len(r.Systems)
		if n == 0 || len(r.Calm) != n || len(r.Lossy) != n || len(r.Starts) != n || len(r.Failures) != 2*n {
			t.Errorf("%d systems, %d calm, %d lossy, %d starts, %d failures", n, len(r.Calm), len(r.Lossy), len(r.Starts), len(r.Failures))
		}
		for _, c := range r.Calm {
			if c.Packets == 0 || c.Bytes < 40*c.Packets || c.Leader.RSS == 0 || c.Leader.Processor <= 0 || c.Follower.Processes == 0 {
				t.Errorf("calm: %+v", c)
			}
		}
		for _, l := range r.Lossy {
			if l.For < 500*time.Millisecond || len(l.Runs) != 1 {
				t.Errorf("loss: %+v", l)
			}
		}

		// What was published can be loaded and published again, with the same result.
		dir := t.TempDir()
		first := options{json: filepath.Join(dir, "1"), report: filepath.Join(dir, "text"), svg: filepath.Join(dir, "svg")}
		assert.NoError(t, first.publish(r))
		again, err := load(first.json)
		assert.NoError(t, err)
		a, _ := json.Marshal(r)
		b, _ := json.Marshal(again)
		assert.Is(t, string(a), string(b), "the figures, when they have been written and read")
		for _, chart := range report.Charts() {
			if info, err := os.Stat(filepath.Join(dir, "svg", "bench-"+chart+".svg")); err != nil || info.Size() == 0 {
				t.Errorf("%s: %v", chart, err)
			}
		}
	})
}
