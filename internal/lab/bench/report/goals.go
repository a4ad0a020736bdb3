package report

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

const (
	topdog     = "topdog"
	keepalived = "keepalived"
	ucarp      = "ucarp"
)

// Verdict is what the figures say of a goal.
type Verdict int

const (
	Unmeasured Verdict = iota // there is no figure, or not enough of one: never taken for held
	Missed
	Held
)

func (v Verdict) String() string {
	switch v {
	case Held:
		return "held"
	case Missed:
		return "MISSED"
	default:
		return "not measured"
	}
}

// Goal is one thing that must hold, and whether it does.
type Goal struct {
	About    string // what happens, such as "cable pulled, H = 100 ms"
	Text     string // what is looked at, such as "median outage"
	Limit    string // such as "at most 75 ms"
	Measured string // the figure and whose it is, or why there is none
	Verdict  Verdict
}

// The limits that the goals set.
const (
	fast         = 100 * time.Millisecond // the interval that most goals are about
	faster       = 10 * time.Millisecond
	lossWatch    = 10 * time.Minute // how long nobody must move under loss
	kernelHold   = time.Second      // the lifetime of the address: docs/address.md
	kernelSweep  = 1250 * time.Millisecond
	mostMemory   = 15e6 // bytes
	mostBinary   = 9e6  // bytes
	hellosSecond = 10   // packets/s of all followers together
)

// Goals holds the figures of this report against what topdog is to be. Where several
// settings of topdog are meant, the worst of them counts.
func Goals(r *Report) []Goal {
	j := &judge{r: r}
	j.silent()
	j.handOver()
	j.crash()
	j.healing()
	j.coldStart()
	j.loss()
	j.steady()
	j.about = "arm64 binary, stripped"
	if r.Binary == 0 {
		j.unmeasured("size", "at most 9 MB", "nobody has built it")
	} else {
		j.say("size", "at most 9 MB", fmt.Sprintf("%.3g MB", float64(r.Binary)/1e6), r.Binary <= mostBinary)
	}
	return j.goals
}

func (j *judge) aboutEvent(event, more string) { j.about = j.r.title(event) + more }

// silent is a leader of which nothing is heard any more.
func (j *judge) silent() {
	at := j.systems(topdog, fast)
	for _, e := range []string{CablePulled, FramesDropped} {
		j.aboutEvent(e, ", H = 100 ms")
		j.atMost(at, e, "median outage", outage, 50, 75*time.Millisecond)
		j.atMost(at, e, "p95 of the outage", outage, 95, 130*time.Millisecond)
		j.factor(at, j.systems(keepalived, fast), "keepalived at the same interval takes", e, 4)
		j.factor(j.unset(topdog), j.unset(keepalived), "keepalived takes, both at defaults", e, 30)
		j.factor(j.unset(topdog), j.unset(ucarp), "ucarp takes, both at defaults", e, 30)
	}
	for _, e := range []string{CablePulled, FramesDropped} {
		j.aboutEvent(e, ", H = 10 ms")
		j.atMost(j.systems(topdog, faster), e, "median outage", outage, 50, 15*time.Millisecond)
	}
}

// handOver is a leader that goes on purpose.
func (j *judge) handOver() {
	for _, e := range []string{Terminated, Resigned, Preempted} {
		j.aboutEvent(e, "")
		j.atMost(j.systems(topdog, 0), e, "median outage", outage, 50, 3*time.Millisecond)
		j.atMost(j.systems(topdog, 0), e, "most time with two holders", two, 100, 0)
	}
}

// crash is a leader whose processes end or freeze.
func (j *judge) crash() {
	all, at := j.systems(topdog, 0), j.systems(topdog, fast)
	j.aboutEvent(Killed, "")
	j.atMost(all, Killed, "median outage", outage, 50, 20*time.Millisecond)
	j.atMost(all, Killed, "most time with two holders", two, 100, 5*time.Millisecond)
	j.aboutEvent(Stopped, ", H = 100 ms")
	j.atMost(at, Stopped, "median outage, as a pulled cable", outage, 50, 75*time.Millisecond)
	j.atMost(at, Stopped, "p95 of the outage, as a pulled cable", outage, 95, 130*time.Millisecond)
	j.aboutEvent(Stopped, "")
	j.atMost(all, Stopped, "most time with two holders", two, 100, 5*time.Millisecond)
	j.aboutEvent(BothFrozen, "")
	j.atMost(all, BothFrozen, "most time with two holders (the kernel's lifetime, and its sweep)", two, 100, kernelHold+kernelSweep)
	j.announces(all)
}

// announces judges whether the client heard the new leader whenever both processes
// of the old one's board were frozen.
func (j *judge) announces(systems []System) {
	const text, limit = "the new leader defends the address by announcing", "in every run"
	var counts []int
	for _, s := range systems {
		f, _ := j.r.failure(s.Key, BothFrozen)
		for _, r := range f.Runs {
			counts = append(counts, r.Announced)
		}
	}
	if len(counts) == 0 {
		j.unmeasured(text, limit, "no runs")
		return
	}
	fewest := slices.Min(counts)
	j.say(text, limit, fmt.Sprintf("heard at least %d times in each of %d runs", fewest, len(counts)), fewest > 0)
}

// healing is what comes back.
func (j *judge) healing() {
	all := j.systems(topdog, 0)
	j.aboutEvent(PathHealed, "")
	j.atMost(all, PathHealed, "longest outage", outage, 100, 5*time.Millisecond)
	j.atMost(all, PathHealed, "most time with two holders", two, 100, 10*time.Millisecond)
	j.aboutEvent(CableFlaps, "")
	const text, limit = "moves of the address", "at most 1"
	list, why := j.figures(all, CableFlaps, moves, 100)
	if len(list) == 0 {
		j.unmeasured(text, limit, why)
		return
	}
	w := worst(list)
	j.say(text, limit, fmt.Sprintf("%d: %s, most of %s", w.Time, w.system.name(), count(w.runs, "run", "runs")), w.Time <= 1)
}

func (j *judge) coldStart() {
	j.about = "cold start"
	const text, limit = "longest time to the first answer", "at most 500 ms"
	var list []figure
	for _, s := range j.systems(topdog, 0) {
		for _, o := range j.r.Starts {
			if b, ok := Percentile(bounds(o.Took), 100); ok && o.System == s.Key {
				list = append(list, figure{b, s, len(o.Took)})
			}
		}
	}
	if len(list) == 0 {
		j.unmeasured(text, limit, "no cold start of topdog in this report")
		return
	}
	w := worst(list)
	j.say(text, limit, w.String(), w.Time <= 500*time.Millisecond)
}

func (j *judge) loss() {
	for _, share := range []float64{0.2, 0.4} {
		j.about = percent(share) + " loss, nobody fails"
		j.noMoves(share)
	}
	j.about = "40 % loss, the leader dies"
	const text, limit = "median outage", 500 * time.Millisecond
	var list []figure
	for _, l := range j.lossy(topdog, 0.4) {
		if b, ok := Percentile(of(l.Runs, outage), 50); ok {
			list = append(list, figure{b, j.r.system(l.System), len(l.Runs)})
		}
	}
	if len(list) == 0 {
		j.unmeasured(text, "at most 500 ms", "no leader of topdog died at this loss")
		return
	}
	w := worst(list)
	j.say(text, "at most 500 ms", w.String(), w.Time <= limit && !w.AtLeast)
}

func (j *judge) lossy(program string, share float64) []Lossy {
	var list []Lossy
	for _, l := range j.r.Lossy {
		// A share that was computed may be a little beside what it is to be.
		if j.r.system(l.System).Program == program && l.Loss > share-0.001 && l.Loss < share+0.001 {
			list = append(list, l)
		}
	}
	return list
}

// noMoves judges how often the address moved for nothing. No move in less than ten
// minutes proves nothing; a move in less than that does.
func (j *judge) noMoves(share float64) {
	const text, limit = "moves in ten minutes", "none"
	var peers []string
	for _, l := range j.lossy(keepalived, share) {
		peers = append(peers, fmt.Sprintf("%s %d in %s", j.r.system(l.System).name(), l.Moves, span(l.For)))
	}
	beside := ""
	if len(peers) > 0 {
		beside = " (" + strings.Join(peers, ", ") + ")"
	}
	list := j.lossy(topdog, share)
	if len(list) == 0 {
		j.unmeasured(text, limit, "topdog was not measured at this loss"+beside)
		return
	}
	w, v := list[0], Held
	for _, l := range list {
		if l.Moves > w.Moves || l.Moves == w.Moves && l.For < w.For {
			w = l
		}
	}
	measured := fmt.Sprintf("%d in %s: %s%s", w.Moves, span(w.For), j.r.system(w.System).name(), beside)
	switch {
	case w.Moves > 0:
		v = Missed
	case w.For < lossWatch:
		v = Unmeasured
	}
	j.add(text, limit, measured, v)
}

// steady is what topdog costs while nothing happens.
func (j *judge) steady() {
	for _, boards := range []int{3, 10, 50} {
		j.about = fmt.Sprintf("steady state, %d boards", boards)
		j.packets(boards)
	}
	j.about = "steady state, H = 100 ms"
	share := func(f float64, _ Calm) string { return percent(f) }
	j.cost("processor of a follower", "at most 0.3 % of a core", fast, 0.003, share, func(c Calm) float64 { return c.Follower.Processor })
	j.cost("processor of the leader", "at most 0.5 % of a core", fast, 0.005, share, func(c Calm) float64 { return c.Leader.Processor })
	j.about = "steady state"
	size := func(f float64, c Calm) string {
		return fmt.Sprintf("%.1f MB (PSS %s MB)", f/1e6, megabytes(max(c.Leader.PSS, c.Follower.PSS)))
	}
	j.cost("RSS of a board's processes together", "at most 15 MB", 0, mostMemory, size, func(c Calm) float64 {
		return float64(max(c.Leader.RSS, c.Follower.RSS))
	})
}

func (j *judge) packets(boards int) {
	const text, limit = "packets a second", "at most 1/H + 10"
	over, measured := 0.0, ""
	for _, c := range j.r.Calm {
		s := j.r.system(c.System)
		p, ok := c.perSecond()
		if s.Program != topdog || c.Boards != boards || !ok || c.Packets == 0 || s.Interval <= 0 {
			continue
		}
		most := 1/s.Interval.Seconds() + hellosSecond
		if o := p - most; measured == "" || o > over {
			over, measured = o, fmt.Sprintf("%.1f of %.0f: %s", p, most, s.name())
		}
	}
	if measured == "" {
		j.unmeasured(text, limit, "topdog was not measured with so many boards")
		return
	}
	j.say(text, limit, measured, over <= 0)
}

// cost judges one figure of all groups that were measured, by the worst of them.
func (j *judge) cost(text, limit string, interval time.Duration, most float64, words func(float64, Calm) string, pick func(Calm) float64) {
	top, measured := 0.0, ""
	for _, c := range j.r.Calm {
		s := j.r.system(c.System)
		if s.Program != topdog || interval != 0 && s.Interval != interval || !c.Leader.looked() || !c.Follower.looked() {
			continue
		}
		if f := pick(c); measured == "" || f > top {
			top, measured = f, fmt.Sprintf("%s: %s, %d boards", words(f, c), s.name(), c.Boards)
		}
	}
	if measured == "" {
		j.unmeasured(text, limit, "topdog's processes were not measured")
		return
	}
	j.say(text, limit, measured, top <= most)
}

// goalSection shows the goals, and counts them.
func (r *Report) goalSection() section {
	goals := Goals(r)
	n := map[Verdict]int{}
	page := newTable(3, []int{0, 1, 2, 3}, "what happens", "goal", "verdict", "measured")
	plain := newTable(2, []int{0, 1, 2}, "verdict", "goal", "measured")
	plain.cap = 42
	about := ""
	for _, g := range goals {
		n[g.Verdict]++
		page.add(g.About, g.Text+": "+g.Limit, g.Verdict.String(), g.Measured)
		if g.About != about {
			about = g.About
			plain.add("* " + about)
		}
		plain.add(g.Verdict.String(), g.Text+": "+g.Limit, g.Measured)
	}
	return section{
		title: "Goals", level: 1, table: page, plain: plain,
		intro: "H is the interval between two heartbeats. Of several settings of topdog the worst counts; a peer is one that is told no more than its interval.",
		notes: []string{fmt.Sprintf("%s: %d held, %d missed, %d not measured.",
			count(len(goals), "goal", "goals"), n[Held], n[Missed], n[Unmeasured])},
	}
}
