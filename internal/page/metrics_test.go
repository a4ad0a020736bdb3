package page

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"topdog/internal/console"
	"topdog/internal/health"
	"topdog/internal/lab/assert"
	"topdog/internal/lab/golden"
)

// follower is a group of three as the documentation shows it: pi1 is asked, and pi3 leads.
func follower(t *testing.T) *console.Status {
	t.Helper()
	text, err := os.ReadFile("../console/testdata/healthy.json")
	assert.NoError(t, err)
	s := new(console.Status)
	assert.NoError(t, json.Unmarshal(text, s))
	return s
}

// leader is the same group where pi1 leads, and has a check and a problem of each sort.
func leader(t *testing.T) *console.Status {
	s := follower(t)
	s.Role, s.Board.Role, s.Boards[2].Role = console.RoleLeader, console.RoleLeader, console.RoleLeader
	s.Leader, s.LeaderName, s.HeldBy, s.Holding, s.HoldMethod = "192.168.1.11", "pi1", "192.168.1.11", true, "lifetime"
	s.Boards[0].Role, s.Boards[0].Stale = "follower", true
	s.Boards[1].Role, s.Boards[1].Gone = "follower", true
	s.Grade, s.Board.Grade, s.Boards[2].Grade = "failing", "failing", "failing"
	s.Checks = []console.Check{
		{Kind: "unit", Target: "pihole-FTL.service", When: "always", State: "passing", SinceNs: 7200e9, NameText: "unit pihole-FTL.service"},
		{Kind: "http", Target: "http://127.0.0.1/", When: "always", State: "failing", SinceNs: 4e9, NameText: "http http://127.0.0.1/", Text: "no answer within 1s"},
		{Kind: "http", Target: "http://127.0.0.1/", When: "leading", State: "excused", SinceNs: 5e8, NameText: "http http://127.0.0.1/", Text: "404 Not Found"},
	}
	s.Defences[0].On, s.Defences[2].On = false, false
	s.Changes[0].OutageMs = nil
	s.Problems = []console.Problem{
		{Kind: console.ProblemFence, Text: "not on eth0"},
		{Kind: console.ProblemChecks, Text: "http"},
		{Kind: "no_multicast", Board: "192.168.1.13", Text: "pi3"},
		{Kind: "no_multicast", Board: "192.168.1.12", Text: "pi2"},
	}
	s.Patience.GraceNs = 45e6
	s.SecondPath = &console.SecondPath{Interface: "wlan0", Address: "192.168.1.21", State: console.SecondPathWorks}
	return s
}

// strict is a leader that does not hear the majority.
func strict(t *testing.T) *console.Status {
	s := leader(t)
	s.Algorithm, s.MajorityUnheard, s.Checks, s.Problems = "strict", true, nil, nil
	s.SecondPath = &console.SecondPath{Interface: "wlan0", State: console.SecondPathWaits, Text: "wlan0 has no carrier: check the cable"}
	s.Witnesses = []console.Witness{{Address: "192.168.1.1", Answers: true}, {Address: "192.168.1.2"}}
	s.Voters = []console.Voter{
		{ID: "192.168.1.11", Supports: new(true)}, {ID: "192.168.1.12", Supports: new(false)}, {ID: "192.168.1.13", Supports: new(false), Unheard: true},
	}
	return s
}

// hostile has names that try to be more than names, and identifiers of a newer daemon.
func hostile(t *testing.T) *console.Status {
	s := follower(t)
	s.LeaderName, s.Boards[0].Name, s.Boards[0].Stale = "a\"} 1\ntopdog_up 7 \\", "\x1b[31m\x00\xffé", true
	s.Role, s.Grade, s.Boards[1].Grade = "emperor", "splendid", "splendid"
	s.Counters.ChangesByReason["because"], s.Counters.DroppedByReason["smell"] = 1, 2
	s.Checks = []console.Check{{Kind: "unit", NameText: "unit \"x\"\\", State: "asleep", When: "always"}}
	return s
}

// situations are the golden files.
func situations(t *testing.T) map[string][]*sample {
	hour, other := time.Hour, leader(t)
	other.Group = `a "group"`
	return map[string][]*sample{
		"no-daemon": {{watching: hour}},
		"nothing":   {{status: &console.Status{Role: console.RoleIsolated}, watching: time.Second}},
		"follower":  {{status: follower(t), age: 40 * time.Millisecond, watching: hour}},
		"leader":    {{status: leader(t), leaseValid: true, watching: hour}},
		"strict":    {{status: strict(t), watching: hour}},
		"hostile":   {{status: hostile(t), watching: hour}},
		"groups": {
			{group: "pihole", status: follower(t), watching: hour}, {group: other.Group, status: other, leaseValid: true, watching: hour},
			{group: "silent", watching: hour},
		},
	}
}

// No metric is in two places, and no series is there twice: Prometheus takes only the first.
func TestMetrics(t *testing.T) {
	for name, s := range situations(t) {
		t.Run(name, func(t *testing.T) {
			got := string(expose(s...))
			assert.Equal(t, got, string(expose(s...)), "the same again")
			golden.Compare(t, filepath.Join("testdata", "metrics", name+".txt"), got)
			seen := map[string]bool{}
			for line := range strings.Lines(got) {
				series := line
				if !strings.HasPrefix(line, "#") {
					series = line[:strings.LastIndexByte(line, ' ')]
				}
				assert.Is(t, false, seen[series], "%s is there already", series)
				seen[series] = true
			}
		})
	}
}

// TestMetricsPromtool asks Prometheus itself, which knows how metrics are named.
func TestMetricsPromtool(t *testing.T) {
	if testing.Short() {
		t.Skip("starts promtool")
	}
	promtool, err := exec.LookPath("promtool")
	if err != nil {
		t.Skipf("needs promtool, of the package prometheus: %v", err)
	}
	for name, s := range situations(t) {
		c := exec.Command(promtool, "check", "metrics")
		c.Stdin = strings.NewReader(string(expose(s...)))
		if out, err := c.CombinedOutput(); err != nil || len(out) > 0 {
			t.Errorf("%s: %v\n%s", name, err, out)
		}
	}
}

// The metrics are there also if there is no daemon, and say so.
func TestServeMetrics(t *testing.T) {
	status, err := os.ReadFile("../console/testdata/healthy.json")
	assert.NoError(t, err)
	for want, ask := range map[string]func(context.Context) ([]byte, error){
		"topdog_up 1\n": func(context.Context) ([]byte, error) { return status, nil },
		"topdog_up 0\n": func(context.Context) ([]byte, error) { return nil, errors.New("no daemon") },
	} {
		synctest.Test(t, func(t *testing.T) {
			p, err := newPage(Options{}, fakeGroup(t.Context(), ask))
			assert.NoError(t, err)
			w := httptest.NewRecorder()
			assert.NoError(t, p.serveMetrics(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", nil)))
			if kind := w.Header().Get("Content-Type"); w.Code != http.StatusOK || kind != metricsType || !strings.Contains(w.Body.String(), want) {
				t.Errorf("status %d, type %q, without %q:\n%s", w.Code, kind, want, w.Body)
			}
		})
	}
}

func TestCheckStates(t *testing.T) {
	var want []string
	for s := health.Starting; s <= health.NotJudged; s++ {
		want = append(want, s.String())
	}
	assert.Equal(t, want, checkStates, "the states of checks in package health")
	assert.Equal(t, []string{health.Failing.String(), health.Excused.String()}, []string{checkFailing, checkExcused}, "two of them")
}

// Whoever writes an alert finds every metric in docs/monitoring.md, in the order in which they are exposed, and none there
// that is never exposed.
func TestMetricsAreDocumented(t *testing.T) {
	text, err := os.ReadFile("../../docs/monitoring.md")
	assert.NoError(t, err)
	documented := regexp.MustCompile("(?m)^\\| `topdog_[a-z_]+` \\|.*$").FindAllString(string(text), -1)
	var want []string
	for name, s := range situations(t) {
		if len(s) > 1 {
			continue // they have the label group too
		}
		last := -1
		for _, row := range rows(string(expose(s...))) {
			i := slices.Index(documented, row)
			if i <= last {
				t.Errorf("%s: docs/monitoring.md has no such row, or not here: %s", name, row)
			}
			last = i
			want = append(want, row)
		}
	}
	for _, row := range documented {
		assert.Is(t, true, slices.Contains(want, row), "this is exposed: %s", row)
	}
}

// rows are the rows of docs/monitoring.md for the metrics of an exposition.
func rows(exposition string) (all []string) {
	each := regexp.MustCompile("# HELP ([^ ]+) (.*)\n# TYPE [^ ]+ (.*)\n[^ {]+({.*})? ")
	for _, m := range each.FindAllStringSubmatch(exposition, -1) {
		var labels []string
		for _, label := range regexp.MustCompile(`[{,]([a-z]+)="`).FindAllStringSubmatch(m[4], -1) {
			labels = append(labels, "`"+label[1]+"`")
		}
		all = append(all, "| `"+m[1]+"` | "+m[3]+" | "+strings.Join(labels, ", ")+" | "+m[2]+" |")
	}
	return all
}
