package main

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"topdog/internal/console"
	"topdog/internal/lab/cluster"
	"topdog/internal/lab/observe"
)

// disturbance is something that happens to a leader, and how it ends.
type disturbance struct {
	name     string
	settings settings
	// strike does it. The time is taken from before the call.
	strike func(b *testing.B, leader *board)
	// undo ends it when another board leads, and returns the time from which
	// two holders count.
	undo func(c *testCluster, leader *board, struck time.Time) time.Time
}

var disturbances = []disturbance{
	{
		name:   "pulled cable",
		strike: pull,
		undo:   plug,
	},
	{
		name:     "pulled cable, heartbeat 10ms",
		settings: settings{"heartbeat": quote("10ms")},
		strike:   pull,
		undo:     plug,
	},
	{
		// Each side of the split has a holder, which nobody could prevent; two
		// holders count from when the frames pass again.
		name:   "frames dropped",
		strike: func(b *testing.B, l *board) { must(b, l.Mute()) },
		undo: func(c *testCluster, l *board, _ time.Time) time.Time {
			healed := time.Now()
			must(c.t, l.Unmute())
			return healed
		},
	},
	{
		name: "resign",
		strike: func(b *testing.B, l *board) {
			_, err := l.Client().Resign(b.Context())
			must(b, err)
		},
		undo: func(_ *testCluster, _ *board, struck time.Time) time.Time { return struck },
	},
	{
		name:   "SIGTERM",
		strike: func(_ *testing.B, l *board) { l.signal(syscall.SIGTERM) },
		undo:   restart,
	},
	{
		name:   "SIGKILL",
		strike: func(_ *testing.B, l *board) { l.signal(syscall.SIGKILL) },
		undo:   restart,
	},
	{
		name:     "SIGKILL, hold lifetime",
		settings: settings{"hold": quote("lifetime")},
		strike:   func(_ *testing.B, l *board) { l.signal(syscall.SIGKILL) },
		undo:     restart,
	},
	{
		name:   "SIGSTOP",
		strike: func(_ *testing.B, l *board) { l.signal(syscall.SIGSTOP) },
		undo: func(_ *testCluster, l *board, struck time.Time) time.Time {
			l.signal(syscall.SIGCONT)
			return struck
		},
	},
}

func pull(b *testing.B, leader *board) { must(b, leader.Pull()) }

func plug(c *testCluster, leader *board, struck time.Time) time.Time {
	must(c.t, leader.Plug())
	return struck
}

func restart(_ *testCluster, l *board, struck time.Time) time.Time {
	l.gone()
	l.start()
	return struck
}

// BenchmarkOutage measures for how long a client that asks every millisecond
// gets no answer, and for how long two boards have the address. A run begins
// when all boards have followed one leader for 30 heartbeats, at a random
// moment between two of them.
func BenchmarkOutage(b *testing.B) {
	release := build(b)
	for _, d := range disturbances {
		b.Run(d.name, func(b *testing.B) {
			c := newClusterOf(b, release, 3, d.settings)
			c.set(settings{"log_level": quote("info")})
			c.start(c.boards...)
			var f figures
			for b.Loop() {
				leader, heir := c.calm()
				struck := time.Now()
				d.strike(b, leader)
				c.answeredByOther(leader)
				c.untilHolders("one holder, or one on each side of a split", func(h []int) bool {
					return len(h) == 1 && h[0] != leader.Number || d.name == "frames dropped"
				})
				outage, pause := c.asker.Report(struck).Longest.Duration(), c.asker.Report(struck).Pause
				counts := d.undo(c, leader, struck)
				c.untilHolders("one holder", func(h []int) bool { return len(h) == 1 })
				f.add(outage, c.Holders.Since(counts).Overlap(), pause)
				if outage > heartbeat+heartbeat/4 {
					b.Logf("%s: %.1f ms, the machine late by %.1f ms: %s; heir: %+v", leader, ms(outage), ms(pause), c.spans(struck), heir)
				}
			}
			c.agree() // nothing may be in the middle of its start when it is ended
			f.report(b)
		})
	}
	b.Run("preempting return", func(b *testing.B) {
		c := newClusterOf(b, release, 3, settings{"preempt": "true", "log_level": quote("info")})
		c.start(c.boards...)
		highest := c.board(3)
		c.agreeOn(highest, c.boards...)
		var f figures
		for b.Loop() {
			c.calm()
			must(b, highest.Pull())
			c.answeredByOther(highest)
			c.untilTakenFrom(highest)
			returned := time.Now()
			must(b, highest.Plug())
			c.answeredBy(highest)
			c.untilHolders("it leads", func(h []int) bool { return len(h) == 1 && h[0] == highest.Number })
			report := c.asker.Report(returned)
			f.add(report.Longest.Duration(), c.Holders.Since(returned).Overlap(), report.Pause)
		}
		f.report(b)
	})
}

// set changes settings of all boards.
func (c *testCluster) set(changes settings) {
	for _, b := range c.boards {
		b.set(changes)
	}
}

// calm waits until every board has followed one leader for 30 heartbeats, and
// then for a random part of a heartbeat. It returns the leader, and what the heir
// has learned of the network by then. It asks nobody before it is likely to be
// so: to answer keeps the boards busy while they time the way to their leader.
func (c *testCluster) calm() (leader *board, heir console.Detector) {
	c.t.Helper()
	deadline := time.Now().Add(cluster.Timeout)
	for lack := "30 heartbeats"; lack != ""; {
		if time.Now().After(deadline) {
			c.t.Fatalf("the group is not calm within %v: %s", cluster.Timeout, lack)
		}
		c.watchFor(32 * heartbeat)
		leader, heir, lack = c.atPeace()
	}
	c.answeredBy(leader)
	c.watchFor(rand.N(heartbeat))
	return leader, heir
}

// atPeace finds the leader that every board has followed for 30 heartbeats.
func (c *testCluster) atPeace() (leader *board, heir console.Detector, lack string) {
	if leader, lack = c.agreed(c.boards); lack != "" {
		return leader, heir, lack
	}
	for _, b := range c.boards {
		s, err := b.Status()
		if err != nil {
			return leader, heir, err.Error()
		}
		if s.LeaderSinceMs == nil || *s.LeaderSinceMs < ms(30*heartbeat) {
			return leader, heir, fmt.Sprintf("%s has not followed for so long", b)
		}
		if s.HeirName == b.String() {
			heir = s.Detector
		}
	}
	return leader, heir, ""
}

// answeredByOther waits for an answer of any other board to the client.
func (c *testCluster) answeredByOther(than *board) {
	c.t.Helper()
	if _, err := c.asker.WaitAnswer(c.t.Context(), func(n int) bool { return n != than.Number }); err != nil {
		c.t.Fatal(err)
	}
}

// figures are those of all runs of a benchmark.
type figures struct{ outages, overlaps, pauses []time.Duration }

func (f *figures) add(outage, overlap, pause time.Duration) {
	f.outages = append(f.outages, outage)
	f.overlaps = append(f.overlaps, overlap)
	f.pauses = append(f.pauses, pause)
}

func (f *figures) report(b *testing.B) {
	slices.Sort(f.outages)
	b.ReportMetric(0, "ns/op") // says nothing here
	b.ReportMetric(ms(observe.Percentile(f.outages, 50)), "median-ms")
	b.ReportMetric(ms(observe.Percentile(f.outages, 95)), "p95-ms")
	b.ReportMetric(ms(f.outages[len(f.outages)-1]), "max-ms")
	b.ReportMetric(ms(slices.Max(f.overlaps)), "two-holders-ms")
	// How much of it all may be the fault of the machine that measures.
	b.ReportMetric(ms(slices.Max(f.pauses)), "late-ms")
}

// build builds the program as it is released.
func build(b *testing.B) cluster.Program {
	b.Helper()
	path := filepath.Join(b.TempDir(), "topdog")
	must(b, cluster.Build(b.Context(), path))
	return cluster.Program{Path: path}
}
