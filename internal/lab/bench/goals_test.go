package bench

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"topdog/internal/lab/assert"
)

// pulledMedian is the goal for the median outage of a pulled cable, in milliseconds: others count from it.
const pulledMedian = 18.0

// best is a record by which every goal holds, each just so.
func best() *record {
	r := &record{facts: map[string]string{}}
	for _, s := range bestSamples() {
		r.samples = append(r.samples, sample{s.bench, s.of, maps.Clone(s.values)})
	}
	return r
}

var bestSamples = sync.OnceValue(func() []sample {
	r := &record{facts: map[string]string{}}
	add := func(bench string, of labels, key, unit string, value float64) {
		if key != "" {
			of = labels{"system": key, "event": of["event"], "loss": of["loss"], "boards": of["boards"]}
		}
		for label, value := range of {
			if value == "" {
				delete(of, label)
			}
		}
		if len(r.series(bench, of)) == 0 || len(r.series(bench, of)[0].of) != len(of) {
			for range 20 {
				r.samples = append(r.samples, sample{bench, of, map[string]float64{"late-ms": 0}})
				if bench == loss0 {
					r.samples[len(r.samples)-1].values["watched-s"] = 600
				}
			}
		}
		for _, s := range r.samples {
			if before, set := s.values[unit]; s.bench == bench && maps.Equal(s.of, of) && (!set || value < before) {
				s.values[unit] = value
			}
		}
	}
	for _, g := range goals {
		bench, of := g.where()
		key := "topdog-100ms"
		if g.h == 10*time.Millisecond {
			key = "topdog-10ms"
		}
		if bench == calm && of["boards"] == "" {
			of["boards"] = "50"
		}
		for unit := range strings.SplitSeq(g.unit, ",") {
			switch {
			case g.peer != "":
				peer := g.peer + "-1s"
				if !g.unset {
					peer = g.peer + "-100ms"
				}
				add(bench, of, peer, unit, g.limit*pulledMedian)
			default:
				add(bench, of, key, unit, map[string]float64{"cable-pulled": pulledMedian, heartbeats: 10}[g.over]+g.limit)
			}
		}
	}
	return r.samples
})

// broken lists the goals that do not hold.
func broken(r *record) (list []string) {
	for _, g := range goals {
		if j := g.judge(r); j.verdict != held {
			list = append(list, fmt.Sprintf("%s: %s, %s: %s", j.verdict, g.of, g.what, j.measured))
		}
	}
	return list
}

// change changes a figure of the last runs of a goal's series: of so many, or of all.
func (g goal) change(r *record, runs int, change func(values map[string]float64, unit string)) {
	bench, of := g.where()
	for _, s := range r.series(bench, of) {
		if !g.includes(s.system) || s.system.name != "topdog" {
			continue
		}
		unit, _, _ := strings.Cut(g.unit, ",")
		for _, one := range s.samples[max(0, len(s.samples)-runs):] {
			if _, ok := one.values[unit]; ok {
				change(one.values, unit)
			}
		}
	}
}

// Each goal is missed when its figure is a little worse, and is not measured when there is none; one run of twenty breaks
// those about every run alone.
func TestGoals(t *testing.T) {
	assert.Equal(t, []string(nil), broken(best()), "as good as can be")
	for _, g := range goals {
		name := g.title() + ", " + g.what
		worse := func(values map[string]float64, unit string) {
			values[unit] = map[string]float64{"cable-pulled": pulledMedian, heartbeats: 10}[g.over] + g.limit + 0.001
			switch {
			case g.peer != "":
				values[unit] = pulledMedian + 0.001
			case g.least:
				values[unit] = 0
			}
		}
		r := best()
		g.change(r, 20, worse)
		assert.Is(t, missed, g.judge(r).verdict, "%s, a little worse: %s", name, g.judge(r).measured)
		r = best()
		g.change(r, 1, worse)
		want := held
		if g.p == 100 || g.p == 0 {
			want = missed
		}
		assert.Is(t, want, g.judge(r).verdict, "%s, one run a little worse: %s", name, g.judge(r).measured)
		r = best()
		bench, of := g.where()
		r.samples = slices.DeleteFunc(r.samples, func(s sample) bool { return s.bench == bench && s.of.have(of) })
		if j := g.judge(r); j.verdict != unmeasured || j.measured == "" {
			t.Errorf("%s, without a figure: %s, %q", name, j.verdict, j.measured)
		}
	}
}

// What one record after the other says of its goals.
func TestVerdicts(t *testing.T) {
	event := func(r *record, system, event string) []sample {
		return r.series(failover, labels{"system": system, "event": event})[0].samples
	}
	more := func(r *record, system, event string, values map[string]float64) {
		r.samples = append(r.samples, sample{failover, labels{"system": system, "event": event}, values})
	}
	each := func(system, name, unit string, by float64) func(*record) {
		return func(r *record) {
			for _, s := range event(r, system, name) {
				s.values[unit] += by
			}
		}
	}
	late := func(name string, by, late float64) func(*record) {
		return func(r *record) {
			each("topdog-100ms", name, "outage-ms", by)(r)
			each("topdog-100ms", name, "late-ms", late)(r)
		}
	}
	loss := func(unit string, value float64) func(*record) {
		return func(r *record) { r.series(loss0, labels{"loss": "20%"})[0].samples[0].values[unit] = value }
	}
	for _, c := range []struct {
		name   string
		change func(*record)
		want   []string // each goal that does not hold has these words
		again  string   // what is measured again
	}{
		{"keepalived is told more, and is faster", func(r *record) {
			more(r, "keepalived-100ms-hasty", "cable-pulled", map[string]float64{"outage-ms": 150})
		}, nil, ""},
		{"keepalived never ends", each("keepalived-100ms", "cable-pulled", "unended", 1), nil, ""},
		{"another build is slower", func(r *record) {
			more(r, "other-topdog-100ms", "sigterm", map[string]float64{"outage-ms": 12})
		}, nil, ""},
		{"two of 20 never end", func(r *record) {
			for _, s := range event(r, "topdog-100ms", "sigstop")[:2] {
				s.values["unended"] = 1
			}
		}, []string{"MISSED: sigstop, p95 of the outage, as a pulled cable: more than 75 ms: topdog default, 20 runs"}, ""},
		{"two holders that last", func(r *record) { event(r, "topdog-100ms", "sigkill")[7].values["two-lasts"] = 1 },
			[]string{"MISSED: sigkill, most time with two holders: more than 5 ms"}, ""},
		{"watched for too short a time", loss("watched-s", 599),
			[]string{"not measured: Loss/loss=20%, moves in ten minutes: 0: topdog default, in 599 s"}, ""},
		{"moved in a minute", func(r *record) { loss("watched-s", 60)(r); loss("moves", 1)(r) },
			[]string{"MISSED: Loss/loss=20%"}, ""},
		{"missed by twice as much as it stood still", late("sigterm", 4, 2),
			[]string{"disturbed: sigterm, median outage: 7 ms: topdog default, 20 runs; this machine stood still for up to 2 ms"},
			"topdog-100ms sigterm"},
		{"missed by more", late("sigterm", 4.001, 2), []string{"MISSED: sigterm"}, ""},
		{"not worth a word", late("sigterm", 0.001, 1), []string{"MISSED: sigterm"}, ""},
		{"held all the same", late("sigterm", 0, 50), nil, ""},
		{"one setting is disturbed, and another misses", func(r *record) {
			late("sigterm", 5, 50)(r)
			more(r, "topdog-10ms", "sigterm", map[string]float64{"outage-ms": 4, "two-ms": 0})
		}, []string{"MISSED: sigterm, median outage: 4 ms: topdog 10 ms, 1 run"}, ""},
		{"a peer is not slower by so much", func(r *record) {
			late("cable-pulled", 5, 3)(r)
			each("topdog-100ms", "cable-pulled-pages", "outage-ms", 5)(r)
		}, []string{"disturbed: cable-pulled, median outage", "disturbed: cable-pulled, keepalived at",
			"disturbed: cable-pulled, keepalived takes", "disturbed: cable-pulled, ucarp takes"},
			"topdog-100ms cable-pulled"},
	} {
		r := best()
		c.change(r)
		got := broken(r)
		for i := range max(len(got), len(c.want)) {
			if i >= len(got) || i >= len(c.want) || !strings.HasPrefix(got[i], c.want[i]) {
				t.Errorf("%s:\n%q\nwant\n%q", c.name, got, c.want)
				break
			}
		}
		var again []string
		for _, step := range r.disturbedSteps() {
			again = append(again, step["system"]+" "+step["event"])
		}
		assert.Is(t, c.again, strings.Join(again, ","), "%s: measured again", c.name)
	}
}
