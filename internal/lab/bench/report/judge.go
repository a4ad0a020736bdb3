package report

import (
	"fmt"
	"time"
)

// judge holds one report against one goal after the other.
type judge struct {
	r     *Report
	about string
	goals []Goal
}

func (j *judge) add(text, limit, measured string, v Verdict) {
	j.goals = append(j.goals, Goal{About: j.about, Text: text, Limit: limit, Measured: measured, Verdict: v})
}

func (j *judge) say(text, limit, measured string, held bool) {
	v := Missed
	if held {
		v = Held
	}
	j.add(text, limit, measured, v)
}

func (j *judge) unmeasured(text, limit, why string) { j.add(text, limit, why, Unmeasured) }

// systems are those of a program with an interval; with any, if the interval is 0.
func (j *judge) systems(program string, interval time.Duration) []System {
	var list []System
	for _, s := range j.r.Systems {
		if s.Program == program && (interval == 0 || s.Interval == interval) {
			list = append(list, s)
		}
	}
	return list
}

// unset are those of a program that were told nothing.
func (j *judge) unset(program string) []System {
	var list []System
	for _, s := range j.systems(program, 0) {
		if s.unset() {
			list = append(list, s)
		}
	}
	return list
}

// figure is one that was measured, and whose it is.
type figure struct {
	Bound
	system System
	runs   int
}

func (f figure) String() string {
	return fmt.Sprintf("%s: %s, %s", f.Bound, f.system.name(), count(f.runs, "run", "runs"))
}

// figures collects a percentile of an event. If there are none it says why.
func (j *judge) figures(systems []System, event string, pick func(Run) Bound, p int) (list []figure, why string) {
	why = "no such system in this report"
	for _, s := range systems {
		f, _ := j.r.failure(s.Key, event)
		b, ok := Percentile(of(f.Runs, pick), p)
		switch {
		case ok:
			list = append(list, figure{b, s, len(f.Runs)})
		case f.Unable != "":
			why = fmt.Sprintf("%s: %s", s.name(), clean(f.Unable))
		default:
			why = fmt.Sprintf("%s: no runs", s.name())
		}
	}
	return list, why
}

// worst is the longest. What has no known end could be longer than all others.
func worst(list []figure) figure {
	w := list[0]
	for _, f := range list[1:] {
		if after(f.Bound, w.Bound) > 0 || f.AtLeast == w.AtLeast && f.Time > w.Time {
			w = f
		}
	}
	return w
}

// atMost judges a time of an event. An outage that did not end is no time, and does not hold.
func (j *judge) atMost(systems []System, event, text string, pick func(Run) Bound, p int, limit time.Duration) {
	words := "at most " + span(limit)
	if limit == 0 {
		words = "none"
	}
	list, why := j.figures(systems, event, pick, p)
	if len(list) == 0 {
		j.unmeasured(text, words, why)
		return
	}
	w := worst(list)
	j.say(text, words, w.String(), w.Time <= limit && !w.AtLeast)
}

// factor judges by how much faster topdog is than a peer: its slowest than the
// peer's fastest that was told no more than its interval. What the peer does when it is told more stands beside it.
func (j *judge) factor(ours, theirs []System, text, event string, least float64) {
	limit := fmt.Sprintf("at least %g times as long", least)
	a, why := j.figures(ours, event, outage, 50)
	if len(a) == 0 {
		j.unmeasured(text, limit, why)
		return
	}
	var plain, tuned []System
	for _, s := range theirs {
		if s.unset() || s.Setting == span(s.Interval) {
			plain = append(plain, s)
		} else {
			tuned = append(tuned, s)
		}
	}
	b, why := j.figures(plain, event, outage, 50)
	if len(b) == 0 {
		j.unmeasured(text, limit, why)
		return
	}
	own, peer := worst(a), b[0]
	for _, f := range b[1:] {
		if f.Time < peer.Time {
			peer = f
		}
	}
	beside := fmt.Sprintf("%s %s, %s %s", peer.system.name(), peer.Bound, own.system.name(), own.Bound)
	more, _ := j.figures(tuned, event, outage, 50)
	for _, f := range more {
		if q, open, ok := ratio(f.Bound, own.Bound); ok {
			beside += fmt.Sprintf("; %s: %s", f.system.name(), times(q, open))
		}
	}
	q, open, ok := ratio(peer.Bound, own.Bound)
	switch {
	case own.AtLeast:
		j.say(text, limit, beside, false)
	case !ok:
		j.unmeasured(text, limit, "an outage of nothing has no ratio: "+beside)
	default:
		j.say(text, limit, times(q, open)+": "+beside, q >= least)
	}
}
