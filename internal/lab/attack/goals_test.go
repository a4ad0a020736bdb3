package attack

import (
	"strings"
	"testing"
	"time"

	"topdog/internal/lab/assert"
)

const ms = time.Millisecond

// A result that is beyond a bound of its scene says so.
func TestBounds(t *testing.T) {
	const flood = "moves 0 two 0ms longest 20ms"
	took := make([]time.Duration, 20)
	took[19] = time.Second
	for name, c := range map[string]struct {
		bounds string
		result Result
		want   string
	}{
		"nothing happened":  {flood, Result{Longest: 20 * ms, Outage: time.Second}, ""},
		"moved":             {flood, Result{Moves: 2}, "moved the address 2 times: at most 0"},
		"two holders":       {flood, Result{Two: ms}, "had two boards hold it for 1.0 ms: at most 0 ms"},
		"client waited":     {flood, Result{Longest: 21 * ms}, "kept the client waiting for 21 ms: at most 20 ms"},
		"dark":              {"outage 1%", Result{For: 6 * time.Second, Outage: 61 * ms}, "kept the client from the address for 61 ms: at most 60 ms"},
		"bright":            {"outage 1%", Result{For: 6 * time.Second, Outage: 60 * ms, Longest: 60 * ms}, ""},
		"never":             {"never 0", Result{Took: []time.Duration{time.Second}, Never: true}, "did not come about as long as it was watched, 1 times: at most 0"},
		"soon":              {"never 0", Result{Took: []time.Duration{time.Second}}, ""},
		"replaced":          {"took 250ms", Result{Took: took}, ""},
		"replaced late":     {"took 250ms", Result{Took: took[18:]}, "took 1000 ms: at most 250 ms"},
		"root waited":       {"status 100ms", Result{StatusMost: 101 * ms}, "had root's `topdog status` take 101 ms: at most 100 ms"},
		"root got nothing":  {"status-failed 0 status 100ms", Result{StatusMost: 10 * ms, StatusFailed: 3}, "kept root's `topdog status` from an answer 3 times: at most 0"},
		"root did not wait": {"status-failed 0 status 100ms", Result{StatusMost: 100 * ms}, ""},
		"no promise":        {"", Result{Moves: 2, Longest: time.Second, StatusFailed: 1}, ""},
	} {
		missed, err := c.result.beyond(strings.Fields(c.bounds))
		assert.ErrorIs(t, err, nil, "%s", name)
		assert.Is(t, c.want, strings.Join(missed, "; "), "%s", name)
	}
	for _, wrong := range []string{"such 0", "moves", "moves none"} {
		if missed, err := (Result{}).beyond(strings.Fields(wrong)); err == nil {
			t.Errorf("%q is a bound: %v", wrong, missed)
		}
	}
}

// A result that misses a goal is an error; one of another system is none.
func TestJudge(t *testing.T) {
	moved := []string{"moved the address 2 times: at most 0"}
	for name, c := range map[string]struct {
		result Result
		want   string
	}{
		"moved":              {Result{System: "topdog", Attack: "flood", Missed: moved}, "flood moved the address 2 times"},
		"disturbed":          {Result{System: "topdog", Attack: "flood", Missed: moved, Late: time.Second}, "stood still for up to 1000 ms, in the last of 3 attempts"},
		"failed":             {Result{System: "topdog", Attack: "spoof", Note: "no such thing"}, "spoof: no such thing"},
		"nothing missed":     {Result{System: "topdog", Attack: "spoof", Moves: 2}, ""},
		"not by this topdog": {Result{System: "before", Attack: "flood", Missed: moved}, ""},
		"not by another":     {Result{System: "keepalived", Attack: "dark", Missed: moved}, ""},
	} {
		err := (&report{Results: []Result{c.result}}).judge()
		assert.ErrorContains(t, err, c.want, "%s", name)
	}
}

// Whoever attacks another build alone wants to know which goals it misses.
func TestJudgeAnotherBuild(t *testing.T) {
	r := &report{Systems: []system{{Name: "before"}}, Results: []Result{{System: "before", Attack: "flood", Missed: []string{"moved the address 2 times"}}}}
	assert.ErrorContains(t, r.judge(), "flood moved the address 2 times", "")
	r.Systems = append(r.Systems, system{Name: "topdog"})
	assert.ErrorIs(t, r.judge(), nil, "")
}

// An attack is made again if something happens while the machine stands still, and only then.
func TestAgain(t *testing.T) {
	const flood, dark = "moves 0 two 0ms longest 20ms", "outage 1%"
	for name, c := range map[string]struct {
		bounds string
		result Result
		want   bool
	}{
		"moved":                  {flood, Result{Moves: 1}, false},
		"moved while late":       {flood, Result{Moves: 1, Late: 11 * ms}, true},
		"moved, without promise": {"", Result{Moves: 1, Late: 11 * ms}, true},
		"waited":                 {flood, Result{Longest: 21 * ms, Late: 10 * ms}, false},
		"waited while late":      {flood, Result{Longest: 21 * ms, Late: 11 * ms}, true},
		"nothing while late":     {flood, Result{Longest: 20 * ms, Late: 40 * ms}, false},
		"often late":             {dark, Result{For: time.Second, Outage: 11 * ms, Late: 3 * ms, LateInAll: 11 * ms}, true},
		"seldom late":            {dark, Result{For: time.Second, Outage: 11 * ms, Late: 3 * ms, LateInAll: 9 * ms}, false},
		"could not be made":      {flood, Result{Note: "no such thing", Moves: 1, Late: time.Second}, false},
	} {
		var err error
		c.result.Missed, err = c.result.beyond(strings.Fields(c.bounds))
		assert.ErrorIs(t, err, nil, "%s", name)
		assert.Is(t, c.want, c.result.again(), "%s: again", name)
	}
}
