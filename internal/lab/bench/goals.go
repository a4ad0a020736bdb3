package bench

import (
	"cmp"
	_ "embed"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// goal is one thing that must hold of topdog; see goals.txt. Of several settings the worst counts.
type goal struct {
	of    string        // an event, or another benchmark with its labels
	h     time.Duration // of the settings of topdog that it is about, or 0 for any
	unset bool          // only those that were told nothing
	what  string        // is looked at, for people
	p     int           // the percentile of all runs
	unit  string        // of the figure; of several, the most counts
	limit float64
	least bool   // the figure is to be at least the limit
	peer  string // what is limited is how many times as long this peer takes
	over  string // the figure counts as far as it is more than this
}

// heartbeats stands for those of the leader, in over.
const heartbeats = "1/H"

// includes reports whether a goal is about such a setting.
func (g goal) includes(sys *system) bool {
	return (g.h == 0 || sys.H == g.h) && (!g.unset || sys.unset()) && !sys.onlyCurve
}

//go:embed goals.txt
var goalsText string

// goals are what topdog is to be, and titles what tables call what is no event.
var goals, titles = func() (all []goal, titles map[string]string) {
	titles = map[string]string{}
	for line := range strings.Lines(goalsText) {
		words, quoted, _ := strings.Cut(strings.TrimSpace(line), `"`)
		quoted = strings.TrimSuffix(quoted, `"`)
		if name, isTitle := strings.CutSuffix(words, " = "); isTitle {
			titles[name] = quoted
			continue
		}
		if words == "" || strings.HasPrefix(words, "#") {
			continue
		}
		g, err := parseGoal(words)
		if err != nil {
			panic(fmt.Sprintf("goals.txt: %s: %v", line, err))
		}
		g.what = quoted
		all = append(all, g)
	}
	return all, titles
}()

func parseGoal(words string) (g goal, err error) {
	var in, compare, how, with string
	n, err := fmt.Sscanf(words, "%s %s p%d %s %s %g %s %s", &g.of, &in, &g.p, &g.unit, &compare, &g.limit, &how, &with)
	if n < 6 {
		return g, err
	}
	g.least = compare == ">="
	switch how {
	case "x":
		g.peer = with
	case "over":
		g.over = with
	}
	switch in {
	case "any":
	case "default":
		g.unset = true
	default:
		g.h, err = time.ParseDuration(strings.TrimPrefix(in, "H="))
		return g, err
	}
	return g, nil
}

// title is what happens, and with which settings.
func (g goal) title() string {
	switch {
	case g.h > 0:
		return titleOf(g.of) + ", H = " + span(g.h)
	case g.unset:
		return titleOf(g.of) + ", H = " + span(topdog.defaultH)
	}
	return titleOf(g.of)
}

func titleOf(name string) string {
	for _, m := range measures() {
		if m.key == name {
			return m.title
		}
	}
	return cmp.Or(titles[name], name)
}

// limitWords is the limit for people.
func (g goal) limitWords() string {
	number := strconv.FormatFloat(g.limit, 'g', -1, 64)
	switch {
	case g.peer != "":
		return "at least " + number + " times as long"
	case g.least:
		return "in every run"
	case g.over == heartbeats:
		return "at most 1/H + " + number
	case g.over != "":
		return "at most " + number + " ms more"
	case g.limit == 0:
		return "none"
	}
	return "at most " + number + unitWords(g.unit)
}

// unitWords are how people read a unit behind a number.
func unitWords(unit string) string {
	switch {
	case strings.HasSuffix(unit, "-ms"):
		return " ms"
	case strings.HasSuffix(unit, "-%"):
		return " % of a core"
	case strings.HasSuffix(unit, "MB"):
		return " MB"
	}
	return ""
}

// where are the series that the goal is about.
func (g goal) where() (bench string, of labels) {
	name, label, _ := strings.Cut(g.of, "/")
	if !slices.Contains([]string{start, checks, calm, size, loss0, lossPulled}, name) {
		return failover, labels{"event": g.of}
	}
	if key, value, ok := strings.Cut(label, "="); ok {
		return name, labels{key: value}
	}
	return name, labels{}
}

// verdict is what the figures say of a goal.
type verdict int

const (
	held       verdict = iota + 1
	unmeasured         // there is no figure, or not enough of one: never taken for held
	disturbed          // missed by no more than what standstills of this machine may have cost
	missed
)

func (v verdict) String() string {
	return [...]string{held: "held", unmeasured: "not measured", disturbed: "disturbed", missed: "MISSED"}[v]
}

// judgement says whether a goal holds.
type judgement struct {
	verdict  verdict
	measured string // the figure and whose it is, or why there is none
	system   string // whose it is, if it is of an event
	value    float64
}

// judge looks at the worst of all figures that a goal is about.
func (g goal) judge(r *record) judgement {
	bench, of := g.where()
	worst := judgement{verdict: unmeasured, measured: "no runs"}
	found := false
	for _, s := range r.series(bench, of) {
		if bench != size && (s.system.programName() != "topdog" || !g.includes(s.system)) {
			continue
		}
		j, ok := g.judgeSeries(r, bench, of, s)
		if ok && (!found || cmp.Or(cmp.Compare(j.verdict, worst.verdict), cmp.Compare(j.value, worst.value)) > 0) {
			worst, found = j, true
		}
	}
	return worst
}

// judgeSeries judges the runs of one system, if they have the figure.
func (g goal) judgeSeries(r *record, bench string, of labels, s *series) (j judgement, ok bool) {
	f, ok := s.worstOf(g.unit, g.p, 0)
	if !ok {
		return j, false // Another one may have it.
	}
	rest, _ := s.worstOf(g.unit, g.p, standstillCost)
	late, _ := s.rank("late-ms", 100)
	watched, _ := s.rank("watched-s", 0)
	j.measured = g.words(f, s)
	if bench == failover {
		j.system = s.of["system"]
	}
	base, beside, ok := g.base(r, s, f, r.series(bench, of))
	if !ok {
		j.verdict, j.measured = unmeasured, beside
		return j, true
	}
	j.measured += beside
	j.value = g.compared(f, base)
	switch holds := g.allows(j.value); {
	case f.open:
		j.verdict = missed // An outage that did not end is no time, nor is it a matter of milliseconds.
	case holds && bench == loss0 && watched.value < lossWatch.Seconds():
		j.verdict = unmeasured // No move in less than ten minutes proves nothing; a move in less than that does.
	case holds:
		j.verdict = held
	case late.value > lateEnough && strings.HasSuffix(g.unit, "-ms") && g.allows(g.compared(rest, base)):
		j.verdict = disturbed
		j.measured += fmt.Sprintf("; this machine stood still for up to %s ms", number(late.value))
	default:
		j.verdict = missed
	}
	if g.peer != "" {
		j.measured = "x " + number(j.value) + ": " + j.measured
		j.value = -j.value // the lower the worse
	}
	return j, true
}

// compared is what the limit is about: the figure, how much it is more than the base, or how many times as much the base is.
func (g goal) compared(f figure, base float64) float64 {
	if g.peer != "" {
		return base / f.value
	}
	return f.value - base
}

func (g goal) allows(v float64) bool {
	if g.least {
		return v >= g.limit
	}
	return v <= g.limit
}

// base is what the figure is compared with, and what is said of that. If there is none it says why.
func (g goal) base(r *record, s *series, f figure, all []*series) (base float64, words string, ok bool) {
	switch {
	case g.peer != "":
		return g.fastest(f, all)
	case g.over == heartbeats:
		return 1 / s.system.H.Seconds(), "", true
	case g.over != "":
		for _, other := range r.series(failover, labels{"event": g.over, "system": s.system.key}) {
			if median, ok := other.rank(g.unit, g.p); ok {
				return median.value, ", and " + number(median.value) + " ms without", true
			}
		}
		return 0, s.system.title() + ": no runs of " + g.over, false
	}
	if bench := s.samples[0].bench; bench == loss0 || bench == checks {
		words = g.peers(all)
	}
	return 0, words, true
}

// fastest is the median of the fastest peer that was told no more than its interval. What the others do stands beside it.
func (g goal) fastest(own figure, all []*series) (base float64, words string, ok bool) {
	for _, s := range all {
		f, found := s.rank(g.unit, g.p)
		if s.system.name != g.peer || !g.includes(s.system) || !found {
			continue
		}
		words += fmt.Sprintf("; %s %s ms, x %s", s.system.title(), number(f.value), number(f.value/own.value))
		plain := s.system.unset() || s.system.setting == span(s.system.H)
		if plain && (!ok || f.value < base) {
			base, ok = f.value, true
		}
	}
	if !ok {
		return 0, "no runs of " + g.peer, false
	}
	return base, words, true
}

const (
	// standstillCost is how many times a standstill of this machine may be in a figure: a
	// follower waits for longer by as much as heartbeats have been late (docs/how-it-works.md),
	// and then it may be late itself.
	standstillCost = 2
	// lateEnough is from when on the client's own lateness is worth a word, in milliseconds.
	lateEnough = 1
	// lossWatch is how long nobody must move under loss.
	lossWatch = 10 * time.Minute
)

// worstOf is the most of the percentiles of some figures, without so many times what this machine was late in each run.
func (s *series) worstOf(units string, p, lates int) (most figure, ok bool) {
	for unit := range strings.SplitSeq(units, ",") {
		f, found := s.rankOf(p, func(one sample) (figure, bool) {
			f, ok := one.get(unit)
			if unit == "unended" {
				ok = true // it is there if it is so
			}
			f.value = max(0, f.value-float64(lates)*one.values["late-ms"])
			return f, ok
		})
		if found && (!ok || f.value > most.value) {
			most, ok = f, true
		}
	}
	return most, ok
}

// words are a figure, with whose it is.
func (g goal) words(f figure, s *series) string {
	text := number(f.value) + unitWords(g.unit)
	if f.open {
		text = "more than " + text
	}
	if g.over == heartbeats {
		text += " of " + number(1/s.system.H.Seconds()+g.limit)
	}
	text += ": " + s.system.title()
	if boards := s.of["boards"]; boards != "" {
		text += ", " + boards + " boards"
	}
	if watched, ok := s.rank("watched-s", 0); ok {
		return text + ", in " + span(time.Duration(watched.value*float64(time.Second)))
	}
	return text + ", " + count(len(s.samples), "run", "runs")
}

// peers are what keepalived does, for comparison.
func (g goal) peers(all []*series) string {
	var texts []string
	for _, s := range all {
		if f, ok := s.worstOf(g.unit, g.p, 0); ok && s.system.name == "keepalived" {
			texts = append(texts, s.system.title()+" "+number(f.value)+unitWords(g.unit))
		}
	}
	if texts == nil {
		return ""
	}
	return " (" + strings.Join(texts, ", ") + ")"
}

// number writes a figure as exactly as it can be held against a limit.
func number(v float64) string { return strconv.FormatFloat(math.Round(v*1000)/1000, 'f', -1, 64) }

// disturbedSteps are the events and systems to measure again, because a goal could not be judged.
func (r *record) disturbedSteps() (steps []labels) {
	for _, g := range goals {
		j := g.judge(r)
		step := labels{"system": j.system, "event": g.of}
		known := slices.ContainsFunc(steps, func(other labels) bool { return maps.Equal(other, step) })
		if j.verdict == disturbed && j.system != "" && !known {
			steps = append(steps, step)
		}
	}
	return steps
}
