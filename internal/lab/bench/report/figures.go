package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// figure collects the results that a goal is about. If there are none it says why.
type figure func(r *Report, g goal) (list []result, why string)

// series is a percentile of some runs of one system.
type series struct {
	bound
	system System
	event  string
	runs   int
	atRest bound // the percentile without what standstills of this machine may have cost
	late   time.Duration
}

// standstillCost is how many times a standstill of this machine may be in a figure: a
// follower waits for longer by as much as heartbeats have been late (docs/how-it-works.md),
// and then it may be late itself.
const standstillCost = 2

// newSeries takes the percentile; there must be a run.
func newSeries(s System, event string, runs []Run, pick func(Run) bound, p int) series {
	atRest := func(r Run) bound {
		b := pick(r)
		b.Time = max(0, b.Time-standstillCost*min(r.Late, b.Time))
		return b
	}
	return series{
		bound: rank(runs, pick, p), system: s, event: event, runs: len(runs),
		atRest: rank(runs, atRest, p), late: rank(runs, late, 100).Time,
	}
}

func (s series) step() Step { return Step{s.system.Key, s.event} }

func (s series) result() result {
	return result{
		value: float64(s.Time), open: s.AtLeast, atRest: float64(s.atRest.Time), late: s.late, step: s.step(),
		words: fmt.Sprintf("%s: %s, %s", s.bound, s.system.name(), count(s.runs, "run", "runs")),
	}
}

// series of an event, of those systems that have run it. If there are none it says why.
func (r *Report) series(systems []System, event string, pick func(Run) bound, p int) (list []series, why string) {
	why = "no such system in this report"
	for _, s := range systems {
		f, _ := r.failure(s.Key, event)
		switch {
		case len(f.Runs) > 0:
			list = append(list, newSeries(s, event, f.Runs, pick, p))
		case f.Unable != "":
			why = fmt.Sprintf("%s: %s", s.name(), clean(f.Unable))
		default:
			why = fmt.Sprintf("%s: no runs", s.name())
		}
	}
	return list, why
}

// percentile is one of all runs of an event.
func percentile(pick func(Run) bound, p int) figure {
	return func(r *Report, g goal) (list []result, why string) {
		all, why := r.series(g.of.systems(r, topdog), g.about, pick, p)
		for _, s := range all {
			list = append(list, s.result())
		}
		return list, why
	}
}

// medianBeside is by how much the median outage of an event is longer than that of another one with the same system.
func medianBeside(other string) figure {
	return func(r *Report, g goal) (list []result, why string) {
		all, why := r.series(g.of.systems(r, topdog), g.about, outage, 50)
		for _, s := range all {
			without, missing := r.series([]System{s.system}, other, outage, 50)
			if len(without) == 0 {
				return nil, missing
			}
			more := s.result()
			more.value -= float64(without[0].Time)
			more.atRest -= float64(without[0].Time)
			more.words = fmt.Sprintf("%s, and %s without: %s, %s", s.bound, without[0].bound, s.system.name(), count(s.runs, "run", "runs"))
			list = append(list, more)
		}
		return list, why
	}
}

// ifProbed is a figure of runs in which all boards were asked whether they answer.
func ifProbed(f figure) figure {
	return func(r *Report, g goal) (list []result, why string) {
		for _, s := range g.of.systems(r, topdog) {
			runs, _ := r.failure(s.Key, g.about)
			for _, run := range runs.Runs {
				if !run.Probed {
					return nil, fmt.Sprintf("%s: the boards were not asked in every run", s.name())
				}
			}
		}
		return f(r, g)
	}
}

// timesAsLong is how many times as long the median outage of a peer is: of those that were
// told no more than their interval the fastest counts, and of topdog the slowest. What the
// peer does when it is told more stands beside it.
func timesAsLong(program string) figure {
	return func(r *Report, g goal) ([]result, string) {
		ours, why := r.series(g.of.systems(r, topdog), g.about, outage, 50)
		if len(ours) == 0 {
			return nil, why
		}
		var plain, tuned []System
		for _, s := range g.of.systems(r, program) {
			if s.unset() || s.Setting == span(s.Interval) {
				plain = append(plain, s)
			} else {
				tuned = append(tuned, s)
			}
		}
		theirs, why := r.series(plain, g.about, outage, 50)
		if len(theirs) == 0 {
			return nil, why
		}
		own := slices.MaxFunc(ours, func(a, b series) int { return cmp.Or(after(a.bound, b.bound), cmp.Compare(a.Time, b.Time)) })
		peer := slices.MinFunc(theirs, func(a, b series) int { return cmp.Compare(a.Time, b.Time) })
		beside := fmt.Sprintf("%s %s, %s %s", peer.system.name(), peer.bound, own.system.name(), own.bound)
		more, _ := r.series(tuned, g.about, outage, 50)
		for _, s := range more {
			if q, open, ok := ratio(s.bound, own.bound); ok {
				beside += fmt.Sprintf("; %s: %s", s.system.name(), times(q, open))
			}
		}
		return factor(peer, own, beside)
	}
}

// factor is how many times as long a peer takes. An outage of topdog that did not end is no
// factor at all, and breaks the goal.
func factor(peer, own series, beside string) ([]result, string) {
	if own.AtLeast {
		return []result{{words: beside}}, ""
	}
	q, open, ok := ratio(peer.bound, own.bound)
	if !ok {
		return nil, "an outage of nothing has no ratio: " + beside
	}
	atRest := float64(peer.Time) / float64(max(own.atRest.Time, 1))
	return []result{{value: q, words: times(q, open) + ": " + beside, atRest: atRest, late: own.late, step: own.step()}}, ""
}

// unannounced is in how many runs the client did not hear the new leader, although both
// processes of the old one's board were frozen.
func unannounced(r *Report, g goal) ([]result, string) {
	var counts []int
	for _, s := range g.of.systems(r, topdog) {
		f, _ := r.failure(s.Key, g.about)
		for _, run := range f.Runs {
			counts = append(counts, run.Announced)
		}
	}
	if len(counts) == 0 {
		return nil, "no runs"
	}
	silent := 0
	for _, n := range counts {
		if n == 0 {
			silent++
		}
	}
	return one(float64(silent), fmt.Sprintf("heard at least %d times in each of %d runs", slices.Min(counts), len(counts)))
}

// one is a result that nothing can disturb.
func one(value float64, words string) ([]result, string) {
	return []result{{value: value, atRest: value, words: words}}, ""
}

// mostMoves is how often the address moved in one run.
func mostMoves(r *Report, g goal) (list []result, why string) {
	all, why := r.series(g.of.systems(r, topdog), g.about, moves, 100)
	for _, s := range all {
		n := float64(s.Time)
		words := fmt.Sprintf("%d: %s, most of %s", s.Time, s.system.name(), count(s.runs, "run", "runs"))
		list = append(list, result{value: n, atRest: n, words: words})
	}
	return list, why
}

func longestStart(r *Report, g goal) (list []result, why string) {
	for _, s := range g.of.systems(r, topdog) {
		for _, o := range r.Starts {
			if b, ok := nearestRank(bounds(o.Took), 100); ok && o.System == s.Key {
				t := float64(b.Time)
				words := fmt.Sprintf("%s: %s, %s", b, s.name(), count(len(o.Took), "run", "runs"))
				list = append(list, result{value: t, atRest: t, words: words})
			}
		}
	}
	return list, "no cold start of topdog in this report"
}

// lossyGroups are the groups of a program at a loss.
func (r *Report) lossyGroups(program string, share float64) []Lossy {
	var list []Lossy
	for _, l := range r.Lossy {
		// A share that was computed may be a little beside what it is to be.
		if r.system(l.System).Program == program && l.Loss > share-0.001 && l.Loss < share+0.001 {
			list = append(list, l)
		}
	}
	return list
}

// movesForNothing is how often the address moved although nobody failed. No move in less
// than ten minutes proves nothing; a move in less than that does. What keepalived does
// stands beside it.
func movesForNothing(share float64) figure {
	return func(r *Report, g goal) (list []result, why string) {
		words := func(l Lossy) string { return fmt.Sprintf("%d in %s", l.Moves, span(l.For)) }
		var peers []string
		for _, l := range r.lossyGroups(keepalived, share) {
			peers = append(peers, r.system(l.System).name()+" "+words(l))
		}
		beside := ""
		if len(peers) > 0 {
			beside = " (" + strings.Join(peers, ", ") + ")"
		}
		groups := r.lossyGroups(topdog, share)
		// Of those that moved as often, the one that was watched for the shortest time is the worst.
		slices.SortStableFunc(groups, func(a, b Lossy) int { return cmp.Compare(a.For, b.For) })
		for _, l := range groups {
			if !g.of.include(r.system(l.System)) {
				continue
			}
			list = append(list, result{
				value: float64(l.Moves), atRest: float64(l.Moves), tooShort: l.For < lossWatch,
				words: words(l) + ": " + r.system(l.System).name() + beside,
			})
		}
		return list, "topdog was not measured at this loss" + beside
	}
}

// outageUnderLoss is the median outage of a leader that dies.
func outageUnderLoss(share float64) figure {
	return func(r *Report, _ goal) (list []result, why string) {
		for _, l := range r.lossyGroups(topdog, share) {
			if len(l.Runs) > 0 {
				s := newSeries(r.system(l.System), "", l.Runs, outage, 50).result()
				s.step = Step{} // it is no step that could be measured again by itself
				list = append(list, s)
			}
		}
		return list, "no leader of topdog died at this loss"
	}
}

// packetsBesideHeartbeats is how many packets a second there are that are not the leader's heartbeats.
func packetsBesideHeartbeats(boards int) figure {
	return func(r *Report, g goal) (list []result, why string) {
		for _, c := range r.Calm {
			s := r.system(c.System)
			p, ok := c.perSecond()
			if s.Program != topdog || c.Boards != boards || !ok || c.Packets == 0 || s.Interval <= 0 {
				continue
			}
			heartbeats := 1 / s.Interval.Seconds()
			n := p - heartbeats
			list = append(list, result{value: n, atRest: n, words: fmt.Sprintf("%.1f of %.0f: %s", p, heartbeats+g.limit.most, s.name())})
		}
		return list, "topdog was not measured with so many boards"
	}
}

// cost is a figure of a board's processes in every group that was measured.
func cost(pick func(Calm) (value float64, words string)) figure {
	return func(r *Report, g goal) (list []result, why string) {
		for _, c := range r.Calm {
			s := r.system(c.System)
			if s.Program != topdog || !g.of.include(s) || !c.Leader.looked() || !c.Follower.looked() {
				continue
			}
			f, words := pick(c)
			list = append(list, result{value: f, atRest: f, words: fmt.Sprintf("%s: %s, %d boards", words, s.name(), c.Boards)})
		}
		return list, "topdog's processes were not measured"
	}
}

func followerProcessor(c Calm) (float64, string) {
	return c.Follower.Processor, percent(c.Follower.Processor)
}

func leaderProcessor(c Calm) (float64, string) {
	return c.Leader.Processor, percent(c.Leader.Processor)
}

func memoryOfBoard(c Calm) (float64, string) {
	rss := float64(max(c.Leader.RSS, c.Follower.RSS))
	return rss, fmt.Sprintf("%.1f MB (PSS %s MB)", rss/1e6, megabytes(max(c.Leader.PSS, c.Follower.PSS)))
}

func binarySize(r *Report, _ goal) ([]result, string) {
	if r.Binary == 0 {
		return nil, "nobody has built it"
	}
	return one(float64(r.Binary), fmt.Sprintf("%.3g MB", float64(r.Binary)/1e6))
}

// unended is in how many runs the outage had no end.
func unended(r *Report, g goal) (list []result, why string) {
	why = "no runs"
	for _, s := range g.of.systems(r, topdog) {
		f, _ := r.failure(s.Key, g.about)
		n := 0
		for _, run := range f.Runs {
			if run.Censored {
				n++
			}
		}
		if len(f.Runs) > 0 {
			words := fmt.Sprintf("in %d of %s: %s", len(f.Runs)-n, count(len(f.Runs), "run", "runs"), s.name())
			list = append(list, result{value: float64(n), atRest: float64(n), words: words})
		}
	}
	return list, why
}

// busier is what the busier of two boards of a group needs: the leader, or a follower.
func busier(c Calm) float64 { return max(c.Leader.Processor, c.Follower.Processor) }

// costOfChecks is what a board of topdog needs that looks at its service. What keepalived needs for as many
// checks stands beside it.
func costOfChecks(r *Report, g goal) (list []result, why string) {
	for _, c := range r.Checked {
		s := r.system(c.System)
		if s.Program != topdog || !g.of.include(s) {
			continue
		}
		own := busier(c)
		words := fmt.Sprintf("%s: %s", percent(own), s.name())
		for _, peer := range r.Checked {
			if p := r.system(peer.System); p.Program == keepalived && own > 0 {
				words += fmt.Sprintf("; %s %s, %s", p.name(), percent(busier(peer)), times(busier(peer)/own, false))
			}
		}
		list = append(list, result{value: own, atRest: own, words: words})
	}
	return list, "topdog's checks were not measured"
}
