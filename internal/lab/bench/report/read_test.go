package report

import (
	"bytes"
	"errors"
	"math"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"topdog/internal/lab/assert"
)

// TestRoundTrip reads what was written.
func TestRoundTrip(t *testing.T) {
	var b bytes.Buffer
	assert.NoError(t, JSON(&b, sample()))
	got, err := Read(&b)
	assert.NoError(t, err)
	assert.Equal(t, sample(), got, "what was read is not what was written")
}

// TestRead gives it what is no report.
func TestRead(t *testing.T) {
	const made = `"made": "2026-05-04T13:00:00Z"`
	for _, c := range []struct{ name, text, want string }{
		{"nothing", "", "line 1, column 1: EOF"},
		{"not JSON", "{\n  made", "line 2, column 3: invalid character 'm'"},
		{"cut off", "{\n" + made, "unexpected EOF"},
		{"another kind", "[1, 2]", "cannot unmarshal array"},
		{"null", "null", `made: "" is not a time`},
		{"two", "{" + made + "} {}", "something follows the report's last brace"},
		{"unknown field", "{" + made + ",\n  \"colour\": 1}", `line 2, column 10: json: unknown field "colour"`},
		{"unknown field, deep", "{" + made + ", \"events\": [\n{\"key\": \"titel\",\n \"titel\": \"\"}]}", `line 3, column 8: json: unknown field "titel"`},
		{"a string for a number", "{" + made + ",\n\"failures\": [{\"runs\": [{\"outage_ns\": \"5\"}]}]}", "line 2, column 40: json: cannot unmarshal string into Go struct field Run.failures.runs.outage_ns"},
		{"a fraction of a nanosecond", `{"failures": [{"runs": [{"outage_ns": 1.5}]}]}`, "failures.runs.outage_ns"},
		{"no day", `{"made": "today"}`, `made: "today" is not a time such as`},
		{"a system twice", `{` + made + `, "systems": [{"key": "a"}, {"key": "a"}]}`, `systems[1].key: "a" is there twice`},
		{"a system without a key", `{` + made + `, "systems": [{}]}`, `systems[0].key: is empty`},
		{"an interval", `{` + made + `, "systems": [{"key": "a", "interval_ns": -1}]}`, `systems[0].interval_ns: -1 is less than nothing`},
		{"an event twice", `{` + made + `, "events": [{"key": "a"}, {"key": "a"}]}`, `events[1].key: "a" is there twice`},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, err := Read(strings.NewReader(c.text))
			if err == nil || !strings.Contains(err.Error(), c.want) || r != nil {
				t.Errorf("error %v, want one with %q", err, c.want)
			}
		})
	}
	broken := errors.New("the disk is gone")
	_, err := Read(iotest.ErrReader(broken))
	assert.ErrorIs(t, err, broken, "")
	_, err = Read(strings.NewReader(strings.Repeat(" ", maxSize+1)))
	assert.ErrorContains(t, err, "longer than 16777216 bytes", "")
}

// TestCheck changes one figure of a good report to one that cannot be.
func TestCheck(t *testing.T) {
	for _, c := range []struct {
		change func(r *Report)
		want   string
	}{
		{func(r *Report) {}, ""},
		{func(r *Report) { r.Failures[3].System = "x" }, `failures[3].system: "x" is not described`},
		{func(r *Report) { r.Failures[3].Event = "x" }, `failures[3].event: "x" is not described`},
		{func(r *Report) { r.Failures[1] = r.Failures[0] }, `failures[1]: "topdog-100ms with cable-pulled" is there twice`},
		{func(r *Report) { r.Failures[0].Unable = "no" }, `failures[0]: says why there are no runs, and has runs`},
		{func(r *Report) { r.Failures[0].Runs[2].Outage = -1 }, `failures[0].runs[2].outage_ns: -1 is less than nothing`},
		{func(r *Report) { r.Failures[0].Runs[2].Two = -1 }, `runs[2].two_ns`},
		{func(r *Report) { r.Failures[0].Runs[2].None = -1 }, `runs[2].none_ns`},
		{func(r *Report) { r.Failures[0].Runs[2].Late = -1 }, `runs[2].late_ns`},
		{func(r *Report) { r.Failures[0].Runs[2].RoundTrip = -1 }, `runs[2].round_trip_ns`},
		{func(r *Report) { r.Failures[0].Runs[2].Moves = -1 }, `runs[2].moves`},
		{func(r *Report) { r.Calm[1].System = "x" }, `calm[1].system: "x" is not described`},
		{func(r *Report) { r.Calm[1].Boards = -1 }, `calm[1].boards`},
		{func(r *Report) { r.Calm[1].For = -1 }, `calm[1].for_ns`},
		{func(r *Report) { r.Calm[1].Leader.Processor = math.NaN() }, `calm[1].leader.processor: NaN is not a share`},
		{func(r *Report) { r.Calm[1].Follower.Processor = -0.1 }, `calm[1].follower.processor: -0.1 is not`},
		{func(r *Report) { r.Calm[1].Follower.Processes = -1 }, `calm[1].follower.processes`},
		{func(r *Report) { r.Lossy[1].System = "x" }, `lossy[1].system: "x" is not described`},
		{func(r *Report) { r.Lossy[1].Loss = 40 }, `lossy[1].loss: 40 is not from 0 to 1`},
		{func(r *Report) { r.Lossy[1].For = -1 }, `lossy[1].for_ns`},
		{func(r *Report) { r.Lossy[1].Two = -1 }, `lossy[1].two_ns`},
		{func(r *Report) { r.Lossy[1].Unanswered = -1 }, `lossy[1].unanswered_ns`},
		{func(r *Report) { r.Lossy[1].Moves = -1 }, `lossy[1].moves`},
		{func(r *Report) { r.Lossy[1].Runs[3].Outage = -1 }, `lossy[1].runs[3].outage_ns`},
		{func(r *Report) { r.Starts[0].System = "x" }, `starts[0].system: "x" is not described`},
		{func(r *Report) { r.Starts[0].Took[1] = -1 }, `starts[0].took_ns[1]: -1 is less`},
	} {
		r := sample()
		c.change(r)
		assert.ErrorContains(t, r.Check(), c.want, "")
	}
}

// TestJSONIsWritten holds that an impossible figure is told, and does not cost the others.
func TestJSONIsWritten(t *testing.T) {
	r := sample()
	r.Failures[0].Runs[0].Outage = -time.Millisecond
	var b bytes.Buffer
	err := JSON(&b, r)
	assert.ErrorContains(t, err, "failures[0].runs[0].outage_ns", "")
	if !strings.Contains(b.String(), `"outage_ns": -1000000`) || !strings.HasSuffix(b.String(), "}\n") {
		t.Error("the report was not written")
	}
}

// FuzzRead reads anything. What it takes can be written in every form, and read again.
func FuzzRead(f *testing.F) {
	// A seed is small, since the fuzzer makes every input that is of interest as small as it can.
	f.Add([]byte(`{"made": "2026-05-04T13:00:00Z", "systems": [{"key": "t", "program": "topdog", "setting": "default", "interval_ns": 100000000}],` +
		`"events": [{"key": "sigkill"}], "failures": [{"system": "t", "event": "sigkill", "runs": [{"outage_ns": 5000000, "two_ns": 1}]}],` +
		`"calm": [{"system": "t", "boards": 3, "for_ns": 5, "packets": 7, "leader": {"processor": 0.01, "rss_bytes": 9}}],` +
		`"starts": [{"system": "t", "took_ns": [5]}]}`))
	f.Add([]byte(`{"made": "2026-05-04T13:00:00Z", "systems": [{"key": "a"}], "events": [{"key": "cable-pulled"}],` +
		`"failures": [{"system": "a", "event": "cable-pulled", "runs": [{"outage_ns": 9223372036854775807, "censored": true}]}],` +
		`"lossy": [{"system": "a", "loss": 1e-9, "for_ns": 1, "moves": 9223372036854775807}]}`))
	f.Add([]byte(`{"made": "2026-05-04T13:00:00Z", "unknown": {}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		r, err := Read(bytes.NewReader(text))
		if err != nil {
			if r != nil || !strings.Contains(err.Error(), "report") {
				t.Errorf("report %v, error %q", r, err)
			}
			return
		}
		for _, w := range renders() {
			var b bytes.Buffer
			assert.ErrorIs(t, w.write(&b, r), nil, "%s", w.file)
			if strings.HasSuffix(w.file, ".svg") {
				wellFormed(t, w.file, b.Bytes())
			}
			if w.file != "report.json" {
				continue
			}
			again, err := Read(&b)
			if err != nil {
				t.Fatalf("what was written cannot be read: %v", err)
			}
			if diff := cmp.Diff(r, again, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("what was read again is something else:\n%s", diff)
			}
		}
	})
}
