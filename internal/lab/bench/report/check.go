package report

import (
	"fmt"
	"math"
	"time"
)

// Check says what in the report cannot be: a figure that nobody can have measured, or
// a name that stands for nothing. The error names the place as a path in the JSON.
func (r *Report) Check() error {
	c := check{}
	if _, err := time.Parse(time.RFC3339, r.Made); err != nil {
		c.wrong("made", "%q is not a time such as 2026-05-04T13:00:00Z", r.Made)
	}
	systems, events := map[string]bool{}, map[string]bool{}
	for i, s := range r.Systems {
		at := fmt.Sprintf("systems[%d]", i)
		c.once(at+".key", s.Key, systems)
		c.time(at+".interval_ns", s.Interval)
	}
	for i, e := range r.Events {
		c.once(fmt.Sprintf("events[%d].key", i), e.Key, events)
	}
	seen := map[string]bool{}
	for i, f := range r.Failures {
		at := fmt.Sprintf("failures[%d]", i)
		c.known(at+".system", f.System, systems)
		c.known(at+".event", f.Event, events)
		c.once(at, f.System+" with "+f.Event, seen)
		if f.Unable != "" && len(f.Runs) > 0 {
			c.wrong(at, "says why there are no runs, and has runs")
		}
		c.runs(at, f.Runs)
	}
	for i, m := range r.Calm {
		c.calm(fmt.Sprintf("calm[%d]", i), m, systems)
	}
	for i, m := range r.Checked {
		c.calm(fmt.Sprintf("checked[%d]", i), m, systems)
	}
	for i, l := range r.Lossy {
		at := fmt.Sprintf("lossy[%d]", i)
		c.known(at+".system", l.System, systems)
		if !(l.Loss >= 0 && l.Loss <= 1) {
			c.wrong(at+".loss", "%g is not from 0 to 1", l.Loss)
		}
		c.time(at+".for_ns", l.For)
		c.time(at+".two_ns", l.Two)
		c.time(at+".unanswered_ns", l.Unanswered)
		c.count(at+".moves", l.Moves)
		c.runs(at, l.Runs)
	}
	for i, s := range r.Starts {
		at := fmt.Sprintf("starts[%d]", i)
		c.known(at+".system", s.System, systems)
		for j, t := range s.Took {
			c.time(fmt.Sprintf("%s.took_ns[%d]", at, j), t)
		}
	}
	return c.err
}

// check keeps the first thing that is wrong.
type check struct{ err error }

func (c *check) wrong(at, format string, args ...any) {
	if c.err == nil {
		c.err = fmt.Errorf("the report is wrong at %s: %s", at, fmt.Sprintf(format, args...))
	}
}

func (c *check) once(at, key string, seen map[string]bool) {
	switch {
	case key == "":
		c.wrong(at, "is empty")
	case seen[key]:
		c.wrong(at, "%q is there twice", key)
	}
	seen[key] = true
}

func (c *check) known(at, key string, keys map[string]bool) {
	if !keys[key] {
		c.wrong(at, "%q is not described in this report", key)
	}
}

func (c *check) time(at string, t time.Duration) {
	if t < 0 {
		c.wrong(at, "%d is less than nothing", int64(t))
	}
}

func (c *check) count(at string, n int) {
	if n < 0 {
		c.wrong(at, "%d is less than nothing", n)
	}
}

func (c *check) runs(at string, runs []Run) {
	for i, r := range runs {
		at := fmt.Sprintf("%s.runs[%d]", at, i)
		c.time(at+".outage_ns", r.Outage)
		c.time(at+".two_ns", r.Two)
		c.time(at+".two_answer_ns", r.TwoAnswer)
		c.time(at+".none_ns", r.None)
		c.time(at+".late_ns", r.Late)
		c.time(at+".round_trip_ns", r.RoundTrip)
		c.time(at+".hook_ns", r.Hook)
		c.time(at+".pages_ns", r.Pages)
		c.count(at+".moves", r.Moves)
	}
}

func (c *check) calm(at string, m Calm, systems map[string]bool) {
	c.known(at+".system", m.System, systems)
	c.count(at+".boards", m.Boards)
	c.time(at+".for_ns", m.For)
	for _, b := range []struct {
		who  string
		cost Cost
	}{{"leader", m.Leader}, {"follower", m.Follower}} {
		if p := b.cost.Processor; !(p >= 0) || math.IsInf(p, 0) {
			c.wrong(at+"."+b.who+".processor", "%g is not a share of a core", p)
		}
		c.count(at+"."+b.who+".processes", b.cost.Processes)
	}
}
