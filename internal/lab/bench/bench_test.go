package bench

import (
	"context"
	"errors"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"topdog/internal/lab/assert"
	"topdog/internal/lab/cluster"
	"topdog/internal/lab/judge"
)

// testTimeout is for a machine in trouble; what is here takes some seconds.
const testTimeout = 3 * time.Minute

// programDir is where buildOnce has built it, if a test needed it.
var programDir string

// buildOnce builds topdog once for all tests.
var buildOnce = sync.OnceValues(func() (path string, err error) {
	if programDir, err = os.MkdirTemp("", "topdog-bench-test"); err != nil {
		return "", err
	}
	path = programDir + "/topdog"
	return path, cluster.Build(context.Background(), path)
})

func TestMain(m *testing.M) {
	judge.Setup()
	status := m.Run()
	if programDir != "" {
		os.RemoveAll(programDir)
	}
	os.Exit(status)
}

// brief are systems that can run, and count as stable soon: the tests judge no figures.
func brief(t testing.TB, keys ...string) []*system {
	t.Helper()
	path, err := buildOnce()
	assert.NoError(t, err)
	systems := named(allSystems(), keys...)
	for _, s := range systems {
		s.soon = true
		if s.program == topdog {
			s.Path = path
		}
	}
	return systems
}

// try does one run of an event on a LAN of its own, and returns what was measured, by event.
func try(ctx context.Context, sys *system, e *event) (runs map[string]sample, err error) {
	g, err := newGroup(sys, e.variant)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, g.End()) }()
	if err := g.startInTurn(ctx); err != nil {
		return nil, err
	}
	samples, err := g.try(ctx, e, newSlot(), turn{1, 0.5})
	runs = map[string]sample{}
	for _, s := range samples {
		runs[s.of["event"]] = s
	}
	return runs, err
}

// Each system has one event or more of those that differ most in what they do and measure: the figures of each measure
// are there, and the address has moved where it must.
func TestEvents(t *testing.T) {
	judge.Run(t, func(t *judge.T) {
		ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
		defer cancel()
		built := map[string]*system{}
		wanted := map[string]string{
			"topdog-100ms":   "cable-pulled,mute,cut-300ms,split",
			"topdog-service": "service-killed", "keepalived-10ms-process": "service-killed",
			"keepalived-100ms": "cable-pulled", "ucarp-1s": "cable-pulled",
		}
		for _, sys := range brief(t, slices.Collect(maps.Keys(wanted))...) {
			built[sys.key] = sys
		}
		for _, key := range []string{"topdog-100ms", "keepalived-100ms"} {
			built[key].IPv6 = true
		}
		parts := map[string]func(*judge.T){}
		for system, events := range wanted {
			for _, e := range named(allEvents(), strings.Split(events, ",")...) {
				parts[system+" "+e.String()] = func(t *judge.T) {
					if err := built[system].prepare(); err != nil {
						t.Skip(err)
					}
					runs, err := try(ctx, built[system], e)
					assert.NoError(t, err)
					for _, m := range e.measures {
						v := runs[m.key].values
						for _, of := range families(built[system]) {
							_, probed := v[of+"two-answer-ms"]
							if v == nil || v[of+"unended"] > 0 || v[of+"outage-ms"] <= 0 && !e.is("served") || probed != e.is("probed") {
								t.Errorf("%s: %v", m.key, runs[m.key])
							}
						}
					}
					for _, of := range families(built[system]) {
						if v := runs[e.String()].values; v[of+"moves"] < 1 {
							t.Errorf("the address did not move: %v", v)
						}
					}
				}
			}
		}
		t.Together(parts)
	})
}

// families are what the figures of a system's addresses begin with.
func families(sys *system) []string {
	if sys.IPv6 {
		return []string{"", ipv6}
	}
	return []string{""}
}

// A whole session in small, three parts of it side by side: every part has lines.
func TestSession(t *testing.T) {
	judge.Run(t, func(t *judge.T) {
		ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
		defer cancel()
		systems := brief(t, "topdog-100ms")
		lines := map[string]int{}
		var mu sync.Mutex
		err := together([][]string{{"failures", "starts"}, {"calm", "loss"}, {partCurve}}, func(parts []string) error {
			p := quickPlan()
			p.parts, p.systems, p.events = parts, systems, named(allEvents(), "frames-dropped")
			p.runs, p.starts, p.calm, p.lossFor, p.lossRuns = 1, 1, 500*time.Millisecond, 500*time.Millisecond, 1
			p.curveFor = 500 * time.Millisecond
			p.groups = func(*system) int { return 1 }
			show := newProgress(io.Discard)
			defer show.close()
			r, err := measureAll(ctx, p, t.TempDir(), show)
			mu.Lock()
			defer mu.Unlock()
			for _, s := range r.samples {
				lines[s.bench]++
				for _, unit := range []string{"packets/s", "bytes/packet", "leader-rss-MB", "leader-cpu-%", "follower-cpu-%"} {
					if s.bench == calm && s.values[unit] <= 0 {
						t.Errorf("%s: %v", unit, s)
					}
				}
			}
			return err
		})
		assert.NoError(t, err)
		assert.Equal(t, map[string]int{failover: 2, start: 1, calm: 1, loss0: 1, lossPulled: 1, curve: 4, curvePull: 4}, lines, "lines")
	})
}
