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

// run is a time in which one board answered the client.
type answerRun struct {
	board    int
	from, to time.Time
}

// watch looks at the client's answers, and at what has followed from each action. Its methods may be
// called from several goroutines.
type watch struct {
	*group

	mu   sync.Mutex
	seen int // answers of the client that were looked at
	runs []answerRun
	gaps []outage
}

// outage is a gap with what is known of its cause.
type outage struct {
	observe.Gap
	why string
}

// aftermath is what has followed from an action.
type aftermath struct {
	outage     observe.Gap // the longest; zero if there was none
	goesOn     bool        // the outage does; it has lasted until now
	moves      int         // how often another board answered than before
	twoHolders time.Duration
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
			w.runs[n-1].to = g.From
		}
		w.runs = keep(w.runs, answerRun{board: g.After, from: g.To}, runsKept)
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

// answers returns who answered when, the oldest first, from some point in time on. Of the last one the
// end is zero while it goes on.
func (w *watch) answers(since time.Time) []answerRun {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.collect()
	var all []answerRun
	for _, r := range w.runs {
		if r.to.IsZero() || r.to.After(since) {
			all = append(all, r)
		}
	}
	if silence, ok := w.silence(); ok && len(all) > 0 {
		all[len(all)-1].to = silence.From
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

// followed returns the latest actions, so many at most and the newest first, and what has followed from each until
// the next one.
func (w *watch) followed(most int) ([]action, []aftermath) {
	w.group.mu.Lock()
	actions := slices.Clone(w.actions)
	w.group.mu.Unlock()
	actions = actions[max(0, len(actions)-most):]
	slices.Reverse(actions)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.collect()
	all := make([]aftermath, len(actions))
	until := time.Now()
	next := until.Add(causeSlack) // no outage has begun later than now
	for i, a := range actions {
		all[i] = w.aftermath(a.at, next)
		all[i].twoHolders = w.lan.holders().Between(a.at, until).Overlap()
		until, next = a.at, a.at
	}
	return actions, all
}

// aftermath returns what has followed from an action for the client, until the next one. w.mu is held.
func (w *watch) aftermath(at, next time.Time) (f aftermath) {
	for _, o := range w.gaps {
		g := o.Gap
		if !followsFrom(g, at, next) {
			continue
		}
		if g.Before != g.After {
			f.moves++
		}
		if g.Duration() > f.outage.Duration() {
			f.outage = g
		}
	}
	if g, ok := w.silence(); ok && followsFrom(g, at, next) && g.Duration() > f.outage.Duration() {
		f.outage, f.goesOn = g, true
	}
	return f
}

// followsFrom reports whether an outage belongs to an action at some time, and not to the next one.
func followsFrom(g observe.Gap, at, next time.Time) bool {
	begins := g.From.Add(causeSlack)
	return !begins.Before(at) && begins.Before(next)
}
