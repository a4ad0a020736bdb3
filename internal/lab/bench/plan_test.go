package bench

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"topdog/internal/lab/assert"
)

func keys[T fmt.Stringer](list []T) (keys []string) {
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
	o, err = parse([]string{"--long"})
	if err != nil || o.plan.form != "long" || o.plan.runs != 20 || len(o.plan.events) != len(allEvents()) {
		t.Errorf("the long form: %+v, %v", o, err)
	}
	args := "--long --runs 3 --systems ucarp-1s,topdog-10ms --events sigterm,cable-pulled --parts failures"
	o, err = parse(strings.Fields(args))
	assert.NoError(t, err)
	if o.plan.runs != 3 || o.plan.starts != 3 || o.plan.lossRuns != 3 {
		t.Errorf("%d runs, %d starts, %d under loss", o.plan.runs, o.plan.starts, o.plan.lossRuns)
	}
	// The order is that of the tables, whatever the user writes first.
	assert.Equal(t, []string{"topdog-10ms", "ucarp-1s"}, keys(o.plan.systems), "systems")
	assert.Equal(t, []string{"cable-pulled", "sigterm"}, keys(o.plan.events), "events")
	assert.Equal(t, []string{"failures"}, o.plan.parts, "parts")
	o, err = parse([]string{"--ipv6", "--systems", "topdog-10ms,ucarp-1s"})
	assert.NoError(t, err)
	assert.Is(t, true, o.plan.systems[0].IPv6, "topdog has IPv6")
	assert.ErrorContains(t, o.plan.systems[1].prepare(), "ucarp has no IPv6", "")
}

// A part leaves out what it is not about.
func TestFit(t *testing.T) {
	for parts, want := range map[string]bool{"service": true, "checks": true, "failures,calm": false} {
		o, err := parse([]string{"--long", "--parts", parts})
		if err != nil || len(o.plan.systems) == 0 || len(o.plan.events) == 0 {
			t.Fatalf("%s: %v and %v, %v", parts, keys(o.plan.systems), keys(o.plan.events), err)
		}
		for _, s := range o.plan.systems {
			assert.Is(t, want, s.served(), "%s has %s, which is served", parts, s)
		}
		for _, e := range o.plan.events {
			assert.Is(t, want, e.is("served"), "%s has %s, which is served", parts, e)
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
	s := o.plan.systems[1]
	if s.programName() != "other topdog" || s.version != "0.9" || s.title() != systemOf(s.key).title() {
		t.Errorf("the other one is %+v", s)
	}
}

// What boards are told is what docs/benchmarks.md shows, and variants add to it.
func TestSetup(t *testing.T) {
	for _, c := range []struct {
		system string
		v      variant
		number int
		file   string
		want   []string
	}{
		{"topdog-100ms --ipv6", variant{boards: 3}, 1, "./topdog.toml", []string{"address = [\"10.77.0.100\", \"fd00:1::250\"]\n"}},
		{"keepalived-1s --ipv6", variant{boards: 3}, 1, "./keepalived.conf",
			[]string{"100/32\n    }\n    virtual_ipaddress_excluded {\n        fd00:1::250/128\n    }\n    track_file"}},
		{"topdog-10ms", variant{boards: 3, Preempt: true}, 2, "./topdog.toml",
			[]string{`socket = "/d/s"`, `name = "pi2"`, `heartbeat = "10ms"`, "preempt = true"}},
		{"topdog-two-groups", variant{boards: 2}, 1, "./topdog.toml", []string{"led = \"none\"\n\n[[group]]\nname = \"dns1\"\nprefer = \"pi2\"\naddress = \"10.77.0.100\"\n\n[[group]]\nname = \"dns2\"\nprefer = \"pi1\"\naddress = \"10.77.0.101\"\n"}},
		{"topdog-second-path", variant{boards: 2}, 1, "./topdog.toml", []string{"led = \"none\"\ninterface = [\"eth0\", \"wlan0\"]\n"}},
		{"topdog-strict", variant{boards: 3}, 1, "./topdog.toml",
			[]string{`voters = ["10.77.0.1", "10.77.0.2", "10.77.0.3"]`}},
		{"topdog-service", variant{boards: 3}, 1, "./topdog.toml",
			[]string{"exec = \"/d/dnsmasq\"", "every = \"100ms\"", "dns = \"dns.home.arpa @127.0.0.1\""}},
		{"topdog-service", variant{boards: 3, Five: true}, 1, "./topdog.toml",
			[]string{"dns = \"4.dns.home.arpa @127.0.0.1\""}},
		{"keepalived-1s", variant{boards: 3}, 1, "./keepalived.conf",
			[]string{"router_id pi1\n}", "priority 100\n    nopreempt\n", "drain\n    }\n}\n"}},
		{"keepalived-100ms-hasty", variant{boards: 3, Preempt: true}, 3, "./keepalived.conf",
			[]string{"vrrp_version 3\n    vrrp_down_timer_adverts 1\n", "priority 200\n    advert_int 0.1\n    virtual"}},
		{"keepalived-1s-process", variant{boards: 3, Hooked: true}, 1, "./keepalived.conf",
			[]string{`file "/d/lost"`, `notify "/d/hooks.d/notify"`}},
		{"keepalived-10ms-script", variant{boards: 3, Five: true}, 1, "./keepalived.conf",
			[]string{"vrrp_script answers5 {", "        answers5\n    }"}},
		{"topdog-100ms-30ms", variant{boards: 3}, 1, "./topdog.toml", []string{"led = \"none\"\npatience = \"30ms\"\n"}},
		{"keepalived-10ms-hasty-254", variant{boards: 3}, 2, "./keepalived.conf", []string{"priority 253\n    advert_int 0.01\n"}},
		{"ucarp-1s", variant{boards: 3}, 1, "command",
			[]string{"--srcip=10.77.0.1 --vhid=51", "--neutral\n--upscript=/d/up"}},
		{"ucarp-1s-hasty", variant{boards: 3}, 1, "command", []string{"--advskew=20 --deadratio=1"}},
		{"ucarp-10ms", variant{boards: 3, Preempt: true}, 2, "command", []string{"--advbase=0 --preempt --advskew=13"}},
	} {
		key, with6, _ := strings.Cut(c.system, " ")
		sys := systemOf(key)
		sys.IPv6 = with6 != ""
		s := newSetup(sys, c.v, c.number, "/d")
		text, err := s.fill(c.file)
		assert.NoError(t, err)
		for _, want := range c.want {
			if !strings.Contains(text, want) {
				t.Errorf("%s: %q is not in\n%s", c.system, want, text)
			}
		}
	}
	page := string(readDocument(t, "docs/benchmarks.md"))
	keys := "topdog-100ms topdog-10ms keepalived-1s keepalived-100ms keepalived-100ms-hasty keepalived-10ms"
	for key := range strings.FieldsSeq(keys) {
		if text := systemOf(key).shown(); !strings.Contains(page, "```\n"+text+"```") {
			t.Errorf("docs/benchmarks.md does not have this configuration of %s:\n%s", key, text)
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

// Every event measures something, under a key of its own, and the quick form knows
// what it names.
func TestEventsAndSystems(t *testing.T) {
	seen := map[string]bool{}
	for _, e := range allEvents() {
		for _, m := range e.measures {
			if seen[m.key] || m.title == "" {
				t.Errorf("%s: twice, or without a title", m.key)
			}
			seen[m.key] = true
		}
	}
	for _, g := range goals {
		if bench, of := g.where(); bench == failover && !seen[of["event"]] || g.what == "" || titleOf(g.of) == "" {
			t.Errorf("a goal is about %q, which nobody measures", g.of)
		}
	}
	for _, s := range allSystems() {
		if seen[s.key] || s.H <= 0 || s.setting == "" || systemOf(s.key).title() != s.title() {
			t.Errorf("%s: twice, or %+v", s, s)
		}
		seen[s.key] = true
	}
	if q := quickPlan(); len(q.systems) != 9 || len(q.events) != 13 {
		t.Errorf("the quick form has %v and %v", keys(q.systems), keys(q.events))
	}
}

func TestJobs(t *testing.T) {
	events := named(allEvents(), "cable-pulled", "both-frozen", "preempt")
	var order []string
	for _, j := range jobs(nil, events, func(*event) int { return 2 }) {
		order = append(order, j.event.String()+" "+string(rune('0'+j.number)))
	}
	// The runs of all events take turns; groups that preempt come last.
	want := []string{"cable-pulled 1", "both-frozen 1", "cable-pulled 2", "both-frozen 2", "preempt 1", "preempt 2"}
	assert.Equal(t, want, order, "")
	for system, unable := range map[string]bool{"topdog-100ms": false, "keepalived-1s": true} {
		assert.Is(t, unable, events[1].unable(systemOf(system)) != "", "%s cannot", system)
	}
}

func TestPriority(t *testing.T) {
	seen := map[int]bool{}
	for n := 1; n <= 50; n++ {
		s := newSetup(systemOf("keepalived-1s"), variant{boards: 50}, n, "")
		if p := s.Priority(); seen[p] || p < 1 || p > 254 {
			t.Errorf("board %d has the priority %d", n, p)
		}
		seen[s.Priority()] = true
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

func TestProgress(t *testing.T) {
	var text strings.Builder
	p := newProgress(&text)
	p.begin("failures", 2)
	p.done()
	p.note("%s is missing", "ucarp")
	p.close()
	p.close()
	assert.Is(t, "0:00  failures: 0 of 2\nucarp is missing\n", text.String(), "")
}
