package soak

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"topdog/internal/console"
	"topdog/internal/lab/assert"
	"topdog/wire"
)

// recorded returns traces of three boards, from a soak with --strict: takeovers, a handover, a cut.
func recorded(t *testing.T) (traces []console.Trace) {
	t.Helper()
	raw, err := os.ReadFile("testdata/traces.json")
	assert.NoError(t, err)
	assert.NoError(t, json.Unmarshal(raw, &traces))
	return traces
}

// What was recorded keeps the rules.
func TestRules(t *testing.T) {
	assert.Equal(t, []string(nil), breachesOfAll(recorded(t), true), "breaches")
}

// What was recorded, and then made wrong, breaks the rule that it should break.
func TestBreaches(t *testing.T) {
	without := func(steps []console.TraceStep, wrong func(console.TraceStep) bool) []console.TraceStep {
		return slices.DeleteFunc(steps, wrong)
	}
	for _, test := range []struct {
		name    string
		corrupt func(c *console.TracedChange)
		want    string
	}{
		{"no vote", func(c *console.TracedChange) {
			c.Steps = without(c.Steps, func(s console.TraceStep) bool { return heard(s, wire.TypeGrant) })
		}, "no other vote than its own"},
		{"the same term", func(c *console.TracedChange) {
			for i := range c.Steps {
				if leads(c.Steps[i]) {
					c.Steps[i].Term = 2
				}
			}
			c.Steps = append(c.Steps, c.Steps...)
		}, "has led in term 2 before"},
		{"RESIGN before the release", func(c *console.TracedChange) {
			for i, s := range c.Steps {
				if s.Step == console.StepAcquireEnded {
					resign := console.TraceStep{AtNs: s.AtNs, Step: console.StepSent, Message: wire.TypeResign.String()}
					c.Steps = slices.Insert(c.Steps, i+1, resign)
					return
				}
			}
		}, "sends RESIGN, and still has the address"},
		{"two promises", func(c *console.TracedChange) {
			for i, s := range c.Steps {
				if sent(s, wire.TypeGrant) {
					s.Board = "10.77.0.9"
					c.Steps = slices.Insert(c.Steps, i+1, s)
					return
				}
			}
		}, "sends GRANT to 10.77.0.9, and is bound to"},
	} {
		t.Run(test.name, func(t *testing.T) {
			var found []string
			for _, trace := range recorded(t) {
				for i := range trace.Changes {
					test.corrupt(&trace.Changes[i])
				}
				found = append(found, breaches(trace, true)...)
			}
			if !strings.Contains(strings.Join(found, "\n"), test.want) {
				t.Errorf("found %q, want %q", found, test.want)
			}
		})
	}
}

// A GRANT that is told again, to a candidate that asks again, does not extend the promise. So another board may be granted
// the vote when that has ended. A GRANT when the promise is over for certain is a new one, and extends that of a SUPPORT.
func TestGrantToldAgain(t *testing.T) {
	step := func(at time.Duration, kind string, message wire.Type, board string) console.TraceStep {
		return console.TraceStep{AtNs: int64(at), Step: kind, Message: message.String(), Board: board}
	}
	const candidate, other = "10.77.0.3", "10.77.0.1"
	for _, test := range []struct {
		name         string
		first        wire.Type     // at 0, to the candidate
		again, other time.Duration // when the candidate and the other board are granted the vote
		breaches     int
	}{
		{"when the promise ends", wire.TypeGrant, shortestPromise - time.Millisecond, shortestPromise, 0},
		{"before", wire.TypeGrant, shortestPromise - time.Millisecond, shortestPromise - 1, 1},
		{"when it might have been extended", wire.TypeGrant, longestPromise - 1, longestPromise, 0},
		{"during a new promise", wire.TypeGrant, longestPromise, longestPromise + shortestPromise - 1, 1},
		{"after a new promise", wire.TypeGrant, longestPromise, longestPromise + shortestPromise, 0},
		{"during one that followed SUPPORT", wire.TypeSupport, shortestPromise - time.Millisecond, shortestPromise, 1},
	} {
		c := console.TracedChange{Steps: []console.TraceStep{
			step(0, console.StepHeard, wire.TypeVote, candidate),
			step(0, console.StepSent, test.first, candidate),
			step(test.again, console.StepHeard, wire.TypeVote, candidate),
			step(test.again, console.StepSent, wire.TypeGrant, candidate),
			step(test.other, console.StepSent, wire.TypeGrant, other),
		}}
		assert.Is(t, test.breaches, len(onePromise("10.77.0.2", c)), "breaches by a GRANT to another board %s", test.name)
	}
}

// A board that leads 1 ms after another one has, by votes that are bound, breaks the rule.
func TestOneLeader(t *testing.T) {
	traces := recorded(t)
	for _, trace := range recorded(t) {
		trace.Board = "10.77.0.9"
		for _, c := range trace.Changes {
			for i := range c.Steps {
				c.Steps[i].AtNs += 1e6
				if at := c.Steps[i].HandledNs; at != nil {
					*at += 1e6
				}
			}
		}
		traces = append(traces, trace)
	}
	found := strings.Join(breachesOfAll(traces, true), "\n")
	if !strings.Contains(found, "board 10.77.0.9") || !strings.Contains(found, "leads, and the votes for 10.77.0.2 are bound for") {
		t.Errorf("found %q", found)
	}
}
