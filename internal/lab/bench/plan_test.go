package bench

import (
	"flag"
	"io"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"topdog/internal/lab/assert"
	"topdog/internal/lab/cluster"
	"topdog/internal/lab/netns"
)

func keys[T interface{ String() string }](list []T) (keys []string) {
	for _, one := range list {
		keys = append(keys, one.String())
	}
	return keys
}

func TestFlags(t *testing.T) {
	o, err := parse(nil)
	if err != nil || o.plan.form != "quick" || o.plan.runs != 5 || o.report != "-" {
		t.Errorf("the quick form: %+v, %v", o, err)
	}
	if o, err = parse([]string{"--long"}); err != nil || o.plan.form != "long" || o.plan.runs != 20 || len(o.plan.events) != len(allEvents()) {
		t.Errorf("the long form: %+v, %v", o, err)
	}
	o, err = parse([]string{"--long", "--runs", "3", "--systems", "ucarp-1s,topdog-10ms", "--events", "sigterm,cable-pulled", "--parts", "failures"})
	assert.NoError(t, err)
	if o.plan.runs != 3 || o.plan.starts != 3 || o.plan.lossRuns != 3 {
		t.Errorf("%d runs, %d starts, %d under loss", o.plan.runs, o.plan.starts, o.plan.lossRuns)
	}
	// The order is that of the tables, whatever the user writes first.
	assert.Equal(t, []string{"topdog-10ms", "ucarp-1s"}, keys(o.plan.systems), "systems")
	assert.Equal(t, []string{"cable-pulled", "sigterm"}, keys(o.plan.events), "events")
	assert.Equal(t, []string{"failures"}, keys(o.plan.parts), "parts")
}

// A part leaves out what it is not about.
func TestFit(t *testing.T) {
	for parts, want := range map[string]bool{"service": true, "checks": true, "failures,calm": false} {
		o, err := parse([]string{"--long", "--parts", parts})
		if err != nil || len(o.plan.systems) == 0 || len(o.plan.events) == 0 {
			t.Fatalf("%s: %v and %v, %v", parts, keys(o.plan.systems), keys(o.plan.events), err)
		}
		for _, s := range o.plan.systems {
			assert.Is(t, want, served(s), "%s has %s, which is served", parts, s)
		}
		for _, e := range o.plan.events {
			assert.Is(t, want, e.served, "%s has %s, which is served", parts, e)
		}
	}
}

// Another build stands beside each setting of topdog, as a peer: the goals are not about it.
func TestBeside(t *testing.T) {
	program := filepath.Join(t.TempDir(), "topdog")
	assert.WriteFile(t, program, []byte("#!/bin/sh\necho topdog 0.9\n"), 0o755)
	o, err := parse([]string{"--systems", "topdog-100ms,ucarp-1s", "--beside", program})
	assert.NoError(t, err)
	assert.Equal(t, []string{"topdog-100ms", "other-topdog-100ms", "ucarp-1s"}, keys(o.plan.systems), "")
	if info := o.plan.systems[1].info(); info.Program != otherProgram || info.Version != "0.9" || info.Setting != "default" {
		t.Errorf("the other one is %+v", info)
	}
}

// All boards of a group that is strict name the same voters: themselves.
func TestVoters(t *testing.T) {
	s := named(allSystems(), "topdog-strict")[0]
	for n := 1; n <= 3; n++ {
		own := netip.AddrFrom4([4]byte{10, 77, 0, byte(n)})
		b := &board{Daemon: &cluster.Daemon{Host: &netns.Host{Addr: netip.PrefixFrom(own, 24)}, Number: n}, of: 3}
		if text, want := s.(*topdog).text(b, variant{}), `voters = ["10.77.0.1", "10.77.0.2", "10.77.0.3"]`; !strings.Contains(text, want) {
			t.Errorf("board %d says %q, which does not contain %s", n, text, want)
		}
	}
}

func TestFlagMistakes(t *testing.T) {
	stderr := os.Stderr
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	assert.NoError(t, err)
	defer null.Close()
	os.Stderr = null // package flag prints its usage there
	defer func() { os.Stderr = stderr }()
	for args, want := range map[string]string{
		"--systems=raft":   "topdog-100ms",
		"--systems=list":   "keepalived-10ms",
		"--events=fire":    "cable-pulled",
		"--parts=nothing":  "failures",
		"--runs=-1":        "positive",
		"fast":             "fast",
		"--parts=list":     "calm",
		"--no-such-flag=1": "no-such-flag",
		"--beside=/none":   "/none",
	} {
		_, err := parse([]string{args})
		assert.ErrorContains(t, err, want, "%s", args)
	}
	_, err = parse([]string{"--help"})
	assert.ErrorIs(t, err, flag.ErrHelp, "--help")
}

// Every event fills a table, under a key of its own, and the quick form knows
// what it names.
func TestEventsAndSystems(t *testing.T) {
	seen := map[string]bool{}
	for _, e := range allEvents() {
		if len(e.tables) == 0 {
			t.Fatal("an event without a table")
		}
		for _, table := range e.tables {
			if seen[table.Key] || table.Title == "" {
				t.Errorf("%s: twice, or without a title", table.Key)
			}
			seen[table.Key] = true
		}
	}
	for _, s := range allSystems() {
		if info := s.info(); seen[s.String()] || info.Key != s.String() || info.Interval <= 0 || info.Setting == "" {
			t.Errorf("%s: twice, or %+v", s, info)
		}
		seen[s.String()] = true
	}
	if q := quickPlan(); len(q.systems) != 9 || len(q.events) != 13 {
		t.Errorf("the quick form has %v and %v", keys(q.systems), keys(q.events))
	}
}

func TestJobs(t *testing.T) {
	events := named(allEvents(), "cable-pulled", "both-frozen", "preempt")
	twice := func(event) int { return 2 }
	order := func(s system) (list []string) {
		for _, j := range jobs(s, events, twice) {
			list = append(list, j.event.String()+" "+string(rune('0'+j.run)))
		}
		return list
	}
	// The runs of all events take turns; groups that preempt come last.
	want := []string{"cable-pulled 1", "both-frozen 1", "cable-pulled 2", "both-frozen 2", "preempt 1", "preempt 2"}
	assert.Equal(t, want, order(allSystems()[0]), "")
	peer := named(allSystems(), "keepalived-1s")[0]
	assert.Equal(t, []string{"cable-pulled 1", "cable-pulled 2", "preempt 1", "preempt 2"}, order(peer), "")
	q := queue{jobs: jobs(peer, events, func(event) int { return 1 })}
	for _, want := range []string{"cable-pulled", "preempt"} {
		if j, ok := q.next(); !ok || j.event.String() != want {
			t.Errorf("next is %v, %v, want %s", j.event, ok, want)
		}
	}
	if j, ok := q.next(); ok {
		t.Errorf("%v after the end", j)
	}
}

func TestPriority(t *testing.T) {
	for of, want := range map[int][]int{1: {200}, 3: {100, 150, 200}, 5: {80, 110, 140, 170, 200}} {
		var got []int
		for n := 1; n <= of; n++ {
			got = append(got, priority(n, of))
		}
		assert.Equal(t, want, got, "")
	}
	seen := map[int]bool{}
	for n := 1; n <= 50; n++ {
		if p := priority(n, 50); seen[p] || p < 1 || p > 254 {
			t.Errorf("board %d has the priority %d", n, p)
		}
		seen[priority(n, 50)] = true
	}
}

func TestProgressLine(t *testing.T) {
	for _, test := range []struct {
		all, part time.Duration
		name      string
		count, of int
		want      string
	}{
		{0, 0, "building", 0, 0, "0:00  building"},
		{61 * time.Second, time.Minute, "failures", 1, 20, "1:01  failures: 1 of 20"},
		{2 * time.Minute, time.Minute, "failures", 5, 20, "2:00  failures: 5 of 20, about 3:00 to go"},
		{62 * time.Minute, time.Minute, "loss", 20, 20, "62:00  loss: 20 of 20"},
	} {
		assert.Is(t, test.want, progressLine(test.all, test.part, test.name, test.count, test.of), "")
	}
}

// Where there is no terminal, progress is lines without control characters.
func TestProgressInAFile(t *testing.T) {
	file, err := os.CreateTemp(t.TempDir(), "")
	assert.NoError(t, err)
	defer file.Close()
	p := newProgress(file)
	p.begin("failures", 2)
	p.done()
	p.note("%s is missing", "ucarp")
	p.close()
	p.close()
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(file)
	assert.NoError(t, err)
	assert.Is(t, "0:00  failures: 0 of 2\nucarp is missing\n", string(text), "")
}
