package attack

import (
	"strings"
	"testing"

	"topdog/internal/lab/assert"
)

// A result that is beyond a bound of its scene says so.
func TestBounds(t *testing.T) {
	const flood = "moves 0 two-ms 0 longest-ms 20"
	for name, c := range map[string]struct {
		bounds  string
		figures map[string]float64
		want    string
	}{
		"nothing happened":  {flood, map[string]float64{"longest-ms": 20, "outage-ms": 1000}, ""},
		"moved":             {flood, map[string]float64{"moves": 2}, "moves: 2, and not 0 at most"},
		"two holders":       {flood, map[string]float64{"two-ms": 1}, "two holders: 1.0 ms, and not 0 ms at most"},
		"client waited":     {flood, map[string]float64{"longest-ms": 21}, "longest outage: 21 ms, and not 20 ms at most"},
		"dark":              {"dark-% 1", map[string]float64{"dark-%": 1.1}, "the client's time without an answer: 1.1 %, and not 1.0 % at most"},
		"bright":            {"dark-% 1", map[string]float64{"dark-%": 1, "longest-ms": 60}, ""},
		"never":             {"never 0", map[string]float64{"never": 1}, "what did not come about as long as it was watched: 1, and not 0 at most"},
		"soon":              {"never 0", map[string]float64{"took-ms": 1000}, ""},
		"replaced":          {"took-ms 250", map[string]float64{"took-ms": 0, "took-most-ms": 1000}, ""},
		"replaced late":     {"took-ms 250", map[string]float64{"took-ms": 1000}, "p95: 1000 ms, and not 250 ms at most"},
		"root waited":       {"status-ms 100", map[string]float64{"status-ms": 101}, "`topdog status`: 101 ms, and not 100 ms at most"},
		"root got nothing":  {"status-failed 0 status-ms 100", map[string]float64{"status-ms": 10, "status-failed": 3}, "it failed: 3, and not 0 at most"},
		"root did not wait": {"status-failed 0 status-ms 100", map[string]float64{"status-ms": 100}, ""},
		"no promise":        {"", map[string]float64{"moves": 2, "longest-ms": 1000, "status-failed": 1}, ""},
	} {
		missed, err := Result{Figures: c.figures}.beyond(strings.Fields(c.bounds))
		assert.ErrorIs(t, err, nil, "%s", name)
		assert.Is(t, c.want, strings.Join(missed, "; "), "%s", name)
	}
	for _, wrong := range []string{"such 0", "moves", "moves none"} {
		if missed, err := (Result{}).beyond(strings.Fields(wrong)); err == nil {
			t.Errorf("%q is a bound: %v", wrong, missed)
		}
	}
}

// Of how long several runs took, the tables have the median, the 95th percentile and the most.
func TestSummarize(t *testing.T) {
	s := &stage{figures: map[string]float64{}, rates: []float64{1, 2}, result: Result{Runs: make([]float64, 20)}}
	s.result.Runs[3], s.result.Runs[7] = 1000, 300
	s.summarize()
	assert.Equal(t, map[string]float64{"times/s": 1.5, "took-median-ms": 0, "took-ms": 300, "took-most-ms": 1000, "runs": 20}, s.figures, "")
}

// A result that misses a goal is an error; one of another system is none.
func TestJudge(t *testing.T) {
	moved := []string{"moves: 2"}
	for name, c := range map[string]struct {
		result Result
		want   string
	}{
		"moved":              {Result{System: "topdog", Attack: "flood", Missed: moved}, "flood: moves: 2"},
		"disturbed":          {Result{System: "topdog", Attack: "flood", Missed: moved, Figures: map[string]float64{"late-ms": 1000}}, "stood still for up to 1000 ms, in the last of 3 attempts"},
		"failed":             {Result{System: "topdog", Attack: "spoof", Note: "no such thing"}, "spoof: no such thing"},
		"nothing missed":     {Result{System: "topdog", Attack: "spoof", Figures: map[string]float64{"moves": 2}}, ""},
		"not by this topdog": {Result{System: "before", Attack: "flood", Missed: moved}, ""},
		"not by another":     {Result{System: "keepalived", Attack: "dark", Missed: moved}, ""},
	} {
		err := (&report{Results: []Result{c.result}}).judge()
		assert.ErrorContains(t, err, c.want, "%s", name)
	}
}

// Whoever attacks another build alone wants to know which goals it misses.
func TestJudgeAnotherBuild(t *testing.T) {
	r := &report{Systems: []system{{Name: "before"}}, Results: []Result{{System: "before", Attack: "flood", Missed: []string{"moves: 2"}}}}
	assert.ErrorContains(t, r.judge(), "flood: moves: 2", "")
	r.Systems = append(r.Systems, system{Name: "topdog"})
	assert.ErrorIs(t, r.judge(), nil, "")
}

// An attack is made again if something happens while the machine stands still, and only then.
func TestAgain(t *testing.T) {
	const flood, dark = "moves 0 two-ms 0 longest-ms 20", "dark-% 1"
	for name, c := range map[string]struct {
		bounds  string
		figures map[string]float64
		want    bool
	}{
		"moved":                  {flood, map[string]float64{"moves": 1}, false},
		"moved while late":       {flood, map[string]float64{"moves": 1, "late-ms": 11}, true},
		"moved, without promise": {"", map[string]float64{"moves": 1, "late-ms": 11}, true},
		"waited":                 {flood, map[string]float64{"longest-ms": 21, "late-ms": 10}, false},
		"waited while late":      {flood, map[string]float64{"longest-ms": 21, "late-ms": 11}, true},
		"nothing while late":     {flood, map[string]float64{"longest-ms": 20, "late-ms": 40}, false},
		"often late":             {dark, map[string]float64{"dark-%": 1.1, "late-ms": 3, "late-%": 1.1}, true},
		"seldom late":            {dark, map[string]float64{"dark-%": 1.1, "late-ms": 3, "late-%": 0.9}, false},
	} {
		x := Result{Figures: c.figures}
		var err error
		x.Missed, err = x.beyond(strings.Fields(c.bounds))
		assert.ErrorIs(t, err, nil, "%s", name)
		assert.Is(t, c.want, x.again(), "%s: again", name)
	}
	failed := Result{Note: "no such thing", Figures: map[string]float64{"moves": 1, "late-ms": 1000}}
	assert.Is(t, false, failed.again(), "what could not be made: again")
}
