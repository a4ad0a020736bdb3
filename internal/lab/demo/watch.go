package demo

import (
	"slices"
	"sync"
	"time"

	"topdog/internal/lab/observe"
)

const (
	// silentAfter is for how long nobody must have answered to be shown so.
	silentAfter = 20 * time.Millisecond
	// runsKept and gapsKept bound what is remembered of the client's answers.
	runsKept = 64
	gapsKept = 64
)

// watch looks at the client's answers, and at what has followed from each action. Its methods may be
// called from several goroutines.
type watch struct {
	*group

	mu   sync.Mutex
	seen int // answers of the client that were looked at
	runs []pageRun
	gaps []outage
	takeovers
}

func newWatch(g *group) *watch {
	return &watch{group: g, takeovers: takeovers{last: pageTakeover{SilentNs: []int64{}, Steps: []pageStep{}}}}
}

// outage is a gap with what is known of its cause.
type outage struct {
	observe.Gap
	why string
}

// collect takes in the client's latest answers. w.mu is held.
func (w *watch) collect() {
	gaps, total := w.client.Gaps(w.seen)
	w.seen = total
	for _, g := range gaps {
		if !noticed(g) {
			continue
		}
		if n := len(w.runs); n > 0 {
			w.runs[n-1].ToNs = new(w.at(g.From))
		}
		w.runs = keep(w.runs, pageRun{Board: g.After, FromNs: w.at(g.To)}, runsKept)
		if g.Before != 0 {
			w.gaps = keep(w.gaps, outage{g, w.cause(g)}, gapsKept)
		}
	}
}

// keep appends, and forgets the oldest if there are too many.
func keep[T any](all []T, next T, most int) []T {
	if len(all) == most {
		all = append(all[:0], all[1:]...)
	}
	return append(all, next)
}

// answers returns who answered when, the oldest first, from some point in time on.
func (w *watch) answers(since time.Time) []pageRun {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.collect()
	all := []pageRun{}
	for _, r := range w.runs {
		if r.ToNs == nil || *r.ToNs > w.at(since) {
			all = append(all, r)
		}
	}
	if silence, ok := w.silence(); ok && len(all) > 0 {
		all[len(all)-1].ToNs = new(w.at(silence.From))
	}
	return all
}

// outages returns the client's latest outages, the oldest first.
func (w *watch) outages() []outage {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.collect()
	return slices.Clone(w.gaps)
}

// noticed reports whether a gap is worth to be shown: another board answers now, or a person might
// have felt it.
func noticed(g observe.Gap) bool {
	return g.Before != g.After || g.Duration() >= silentAfter && g.Paused < g.Duration()/2
}

// cause says why there was an outage: because of what was done to the boards right
// before it, or else what the new leader gives as the reason.
func (w *watch) cause(gap observe.Gap) string {
	w.group.mu.Lock()
	defer w.group.mu.Unlock()
	for _, a := range slices.Backward(w.actions) {
		if a.at.Before(gap.To) && a.at.After(gap.From.Add(-causeSlack)) {
			return a.text
		}
	}
	if gap.Before != gap.After {
		return w.boards[gap.After-1].rose.String()
	}
	return ""
}

// silence returns the time since the last answer, if somebody has answered and nobody does any more.
func (w *watch) silence() (silence observe.Gap, ok bool) {
	who, silent := w.client.Last()
	now := time.Now()
	return observe.Gap{From: now.Add(-silent), To: now, Before: who}, who != 0 && silent > silentAfter
}

// causeSlack is by how much an outage may begin before its cause was noted.
const causeSlack = 5 * askEvery

// followed returns the latest actions, so many at most and the newest first, and what has followed from each for the client until
// the next one.
func (w *watch) followed(most int) []pageAction {
	w.group.mu.Lock()
	actions := slices.Clone(w.actions)
	w.group.mu.Unlock()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.collect()
	all := []pageAction{}
	until := time.Now()
	next := until.Add(causeSlack) // no outage has begun later than now
	for _, a := range slices.Backward(actions[max(0, len(actions)-most):]) {
		f := pageAction{Number: a.number, AtNs: w.at(a.at), Action: a.verb, Board: a.board, Text: a.text}
		for _, o := range w.gaps {
			if followsFrom(o.Gap, a.at, next) {
				f.add(o.Gap)
			}
		}
		if g, ok := w.silence(); ok && followsFrom(g, a.at, next) {
			f.OutageGoesOn = f.add(g)
		}
		f.TwoHoldersNs = int64(w.lan.holders().Between(a.at, until).Overlap())
		all = append(all, f)
		until, next = a.at, a.at
	}
	return all
}

// add takes in an outage that has followed from the action, which may go on. It reports whether that is the longest one.
func (a *pageAction) add(g observe.Gap) (longest bool) {
	if g.After != 0 && g.After != g.Before {
		a.Moves++
	}
	if longest = int64(g.Duration()) > a.OutageNs; longest {
		a.OutageNs, a.PausedNs, a.Before, a.After = int64(g.Duration()), int64(g.Paused), g.Before, g.After
	}
	return longest
}

// followsFrom reports whether an outage belongs to an action at some time, and not to the next one.
func followsFrom(g observe.Gap, at, next time.Time) bool {
	begins := g.From.Add(causeSlack)
	return !begins.Before(at) && begins.Before(next)
}
