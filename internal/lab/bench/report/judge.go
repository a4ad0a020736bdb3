package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// verdict is what the figures say of a goal. Of several figures the highest counts.
type verdict int

const (
	held       verdict = iota + 1
	unmeasured         // there is no figure, or not enough of one: never taken for held
	disturbed          // missed by no more than what standstills of this machine may have cost
	missed
)

func (v verdict) String() string {
	switch v {
	case held:
		return "held"
	case disturbed:
		return "disturbed"
	case missed:
		return "MISSED"
	default:
		return "not measured"
	}
}

// judgement is one thing that must hold, and whether it does.
type judgement struct {
	About    string // what happens, such as "cable pulled, H = 100 ms"
	Text     string // what is looked at, such as "median outage"
	Limit    string // such as "at most 75 ms"
	Measured string // the figure and whose it is, or why there is none
	Verdict  verdict
	Step     Step // of the figure, if it is of one
}

// Step is an event with a system: what is measured anew if something disturbed it.
type Step struct{ System, Event string }

// result is a figure of one system, as far as a goal is about it.
type result struct {
	value float64
	open  bool   // it is only known that it is not less
	words string // for people, with whose it is
	step  Step

	// atRest is the least that the value would have been if this machine had never stood
	// still, and late how long it did at most: see lateEnough.
	atRest float64
	late   time.Duration

	// tooShort marks a figure that can break a goal and not hold it.
	tooShort bool
}

// judgements holds the figures of this report against what topdog is to be.
func judgements(r *Report) []judgement {
	list := make([]judgement, 0, len(goals))
	for _, g := range goals {
		list = append(list, g.judge(r))
	}
	return list
}

// DisturbedSteps are the steps to measure again, because a goal could not be judged.
func DisturbedSteps(r *Report) []Step {
	var list []Step
	for _, g := range judgements(r) {
		if g.Verdict == disturbed && g.Step != (Step{}) && !slices.Contains(list, g.Step) {
			list = append(list, g.Step)
		}
	}
	return list
}

// judge looks at the worst of all figures that a goal is about.
func (g goal) judge(r *Report) judgement {
	judged := judgement{About: r.title(g.about) + g.of.words, Text: g.text, Limit: g.limit.words}
	list, why := g.figure(r, g)
	if len(list) == 0 {
		judged.Measured, judged.Verdict = why, unmeasured
		return judged
	}
	worst := list[0]
	for _, other := range list[1:] {
		if g.compare(other, worst) > 0 {
			worst = other
		}
	}
	judged.Measured, judged.Verdict, judged.Step = worst.words, g.verdict(worst), worst.step
	if judged.Verdict == disturbed {
		judged.Measured += fmt.Sprintf("; this machine stood still for up to %s ms", millis(worst.late))
	}
	return judged
}

// compare puts what is worse later. What has no known end could be longer than all others.
func (g goal) compare(a, b result) int {
	return cmp.Or(
		cmp.Compare(g.verdict(a), g.verdict(b)),
		after(bound{AtLeast: a.open}, bound{AtLeast: b.open}),
		cmp.Compare(a.value, b.value),
	)
}

// verdict judges one figure. An outage that did not end is no time, and does not hold;
// nor is it a matter of milliseconds.
func (g goal) verdict(f result) verdict {
	switch {
	case f.open:
		return missed
	case g.limit.allows(f.value) && f.tooShort:
		return unmeasured
	case g.limit.allows(f.value):
		return held
	case f.late > lateEnough && g.limit.allows(f.atRest):
		return disturbed
	default:
		return missed
	}
}

// goalSection shows the goals, and counts them.
func (r *Report) goalSection() section {
	list := judgements(r)
	n := map[verdict]int{}
	page := newTable(3, []int{0, 1, 2, 3}, "what happens", "goal", "verdict", "measured")
	plain := newTable(2, []int{0, 1, 2}, "verdict", "goal", "measured")
	plain.cap = 42
	about := ""
	for _, g := range list {
		n[g.Verdict]++
		page.add(g.About, g.Text+": "+g.Limit, g.Verdict.String(), g.Measured)
		if g.About != about {
			about = g.About
			plain.add("* " + about)
		}
		plain.add(g.Verdict.String(), g.Text+": "+g.Limit, g.Measured)
	}
	counts := []string{fmt.Sprintf("%d held", n[held]), fmt.Sprintf("%d missed", n[missed])}
	if n[disturbed] > 0 {
		counts = append(counts, fmt.Sprintf("%d disturbed by other work on this machine", n[disturbed]))
	}
	counts = append(counts, fmt.Sprintf("%d not measured", n[unmeasured]))
	return section{
		title: "Goals", level: 1, table: page, plain: plain,
		intro: "H is the interval between two heartbeats. Of several settings of topdog the worst counts; a peer is one that is told no more than its interval.",
		notes: []string{fmt.Sprintf("%s: %s.", count(len(list), "goal", "goals"), strings.Join(counts, ", "))},
	}
}
