package demo

import (
	"cmp"
	"context"
	"slices"
	"sort"
	"time"

	"topdog/internal/console"
	"topdog/internal/daemon"
	"topdog/internal/lab/demopage"
	"topdog/wire"
)

const (
	// stepsShown bounds the document.
	stepsShown = 240
	// besides is how much earlier or later than the new leader's own steps those of the others may be.
	besides = 2 * time.Millisecond
	// actedBefore is how long before the last heartbeat something may have been done that a takeover is said to follow from.
	actedBefore = 5 * time.Second
)

// pageTakeover is the last change of leader, as all boards have seen it. All points in time are on one clock.
type pageTakeover struct {
	Number     int           `json:"number"` // changes with the document; 0 if there was none
	Leader     int           `json:"leader"` // number of the new one
	OldLeader  int           `json:"old_leader"`
	Term       uint32        `json:"term"`
	Reason     string        `json:"reason"` // an identifier, as in topdog trace
	ReasonText string        `json:"reason_text"`
	FromNs     int64         `json:"from_ns"`   // the last heartbeat before, or the first step
	ToNs       int64         `json:"to_ns"`     // the last step
	Action     demopage.Verb `json:"action"`    // what had been done; "" for nothing
	Board      int           `json:"board"`     // to which; 0 for all
	ActedNs    *int64        `json:"acted_ns"`  // when
	SilentNs   []int64       `json:"silent_ns"` // when the client's answers ceased, and came again; empty if they did not cease
	Omitted    int           `json:"omitted"`   // steps that were too many
	Steps      []pageStep    `json:"steps"`     // in the order of time
}

// pageStep is what one board has done or seen; as in topdog trace.
type pageStep struct {
	Board   int    `json:"board"`
	AtNs    int64  `json:"at_ns"`
	Step    string `json:"step"`
	Message string `json:"message,omitempty"`
	Peer    int    `json:"peer,omitempty"` // who sent what was heard, or to whom was sent, or whom the board follows now; none for all
	Role    string `json:"role,omitempty"`
	Reason  string `json:"reason_text,omitempty"`
	Failed  bool   `json:"failed,omitempty"`
}

// takeovers is the last change of leader, put together from what the boards have traced. The mutex of the watch guards it.
type takeovers struct {
	last      pageTakeover
	electedNs int64 // when its leader was elected, on the clock of the traces
	toldThen  int   // the changes that were told of when it was looked at
	more      bool  // the boards and the client were not done with it then, or boards did not tell in time
}

func (w *watch) lastTakeover() pageTakeover {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.last
}

// lookForTakeover asks the boards what they have seen, if something has changed since the last time.
func (w *watch) lookForTakeover(ctx context.Context) {
	w.group.mu.Lock()
	told := w.group.told
	w.group.mu.Unlock()
	w.mu.Lock()
	due := told != w.toldThen || w.more
	w.toldThen = told
	w.mu.Unlock()
	if due {
		w.takeIn(askAll(ctx, w.group, (*daemon.Daemon).Trace))
	}
}

// takeIn takes in what the boards have traced; all is whether all have told in time.
func (w *watch) takeIn(traces map[int]console.Trace, all bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	e, found := lastElected(traces)
	if !found {
		w.more = !all
		return
	}
	_, silent := w.silence() // its end belongs to the document
	next := w.assemble(e, traces)
	w.more = !all || !e.change.Over || silent
	if w.news(&next, e.step.AtNs) {
		next.Number = w.last.Number + 1
		w.last, w.electedNs = next, e.step.AtNs
	}
}

// news reports whether a document tells more than the last one. A board that has told before may be late or without power now:
// an older election is not the last one then, and the same one is not told by fewer boards.
func (w *watch) news(next *pageTakeover, electedNs int64) bool {
	switch was := len(w.last.Steps) + w.last.Omitted; {
	case w.last.Number == 0 || electedNs > w.electedNs:
		return true
	case electedNs < w.electedNs || len(next.Steps)+next.Omitted < was:
		return false
	}
	return !slices.Equal(next.Steps, w.last.Steps) || !slices.Equal(next.SilentNs, w.last.SilentNs)
}

// assemble puts together the document of an election. w.mu is held.
func (w *watch) assemble(e elected, traces map[int]console.Trace) (next pageTakeover) {
	from, to := e.from, e.change.Steps[len(e.change.Steps)-1].AtNs
	next = pageTakeover{
		Leader: e.leader, OldLeader: w.numberOfText(e.former), Term: e.step.Term,
		Reason: e.step.Reason, ReasonText: e.step.ReasonText,
		FromNs: w.traced(from), ToNs: w.traced(to), SilentNs: []int64{}, Steps: []pageStep{},
	}
	for n, trace := range traces {
		for i := range trace.Changes {
			c := &trace.Changes[i]
			steps := w.stepsWithin(n, c, from-int64(besides), to+int64(besides))
			if len(steps) > 0 {
				next.Omitted += c.Omitted
			}
			next.Steps = append(next.Steps, steps...)
		}
	}
	sort.SliceStable(next.Steps, func(i, j int) bool {
		a, b := &next.Steps[i], &next.Steps[j]
		return cmp.Or(cmp.Compare(a.AtNs, b.AtNs), cmp.Compare(a.Board, b.Board)) < 0
	})
	rose := w.traced(e.step.AtNs)
	next.omit(rose)
	w.addClient(&next)
	w.addCause(&next, rose)
	return next
}

// omit leaves out steps if there are too many: not the first, not the last, and not those around the moment in which the
// leader rose.
func (p *pageTakeover) omit(roseNs int64) {
	if len(p.Steps) <= stepsShown {
		return
	}
	const part = stepsShown / 3
	rose := slices.IndexFunc(p.Steps, func(s pageStep) bool { return s.AtNs >= roseNs })
	kept := make([]pageStep, 0, stepsShown)
	for i, s := range p.Steps {
		if i < part || i >= len(p.Steps)-part || i >= rose-part/2 && i < rose+part/2 {
			kept = append(kept, s)
		}
	}
	p.Omitted += len(p.Steps) - len(kept)
	p.Steps = kept
}

// elected is how a board has become the leader.
type elected struct {
	leader int // number of the board
	change *console.TracedChange
	step   *console.TraceStep // in which it did
	former string             // id of the leader before
	from   int64              // when that was heard last, or else the first step
}

// lastElected finds out which board has become the leader last.
func lastElected(traces map[int]console.Trace) (last elected, found bool) {
	for n, trace := range traces {
		for i := range trace.Changes {
			c := &trace.Changes[i]
			e := elected{leader: n, change: c, former: c.OldLeader, from: c.ZeroNs}
			// If one change follows soon upon another, both are in one timeline.
			for k := range c.Steps {
				s := &c.Steps[k]
				switch {
				case s.Step == console.StepRole && s.Role == console.RoleLeader && s.Board != e.former:
					e.step = s
					if !found || s.AtNs > last.step.AtNs {
						last, found = e, true
					}
					e.former, e.from = s.Board, s.AtNs
				case s.Step == console.StepRole && s.Board != "" && s.Board != e.former:
					e.former, e.from = s.Board, s.AtNs
				case s.Step == console.StepHeard && s.Message == heartbeat && s.Board == e.former:
					e.from = s.AtNs
				}
			}
		}
	}
	return last, found
}

// heartbeat is how traces call a HEARTBEAT.
var heartbeat = wire.TypeHeartbeat.String()

// stepsWithin returns the steps of one board between two points in time.
func (w *watch) stepsWithin(board int, c *console.TracedChange, from, to int64) (steps []pageStep) {
	for _, s := range c.Steps {
		if s.AtNs < from || s.AtNs > to {
			continue
		}
		steps = append(steps, pageStep{
			Board: board, AtNs: w.traced(s.AtNs), Step: s.Step, Message: s.Message, Peer: w.numberOfText(s.Board),
			Role: s.Role, Reason: s.ReasonText, Failed: s.Failed,
		})
	}
	return steps
}

// addClient adds what the client has felt.
func (w *watch) addClient(next *pageTakeover) {
	w.collect()
	for _, g := range w.gaps {
		if g.After == next.Leader && w.at(g.To) >= next.FromNs && w.at(g.From) <= next.ToNs+int64(silentAfter) {
			next.SilentNs = []int64{w.at(g.From), w.at(g.To)}
		}
	}
}

// addCause adds what had been done: the last thing from which this takeover may follow. What was done to all boards is the
// cause only if nothing was done to one of the two leaders.
func (w *watch) addCause(next *pageTakeover, roseNs int64) {
	w.group.mu.Lock()
	defer w.group.mu.Unlock()
	ofAll := true
	for _, a := range w.actions {
		at, all := w.at(a.at), slices.Contains(toAll, a.verb)
		fits := all && ofAll || slices.Contains(breaking, a.verb) && a.board == next.OldLeader ||
			slices.Contains(mending, a.verb) && a.board == next.Leader
		if fits && at <= roseNs && at >= next.FromNs-int64(actedBefore) {
			next.Action, next.Board, next.ActedNs = a.verb, a.board, &at
			ofAll = all
		}
	}
}

// traced is a point in time of a trace as the documents have it.
func (w *watch) traced(ns int64) int64 { return ns - int64(w.startedAt) }

// numberOfText is the number of the board with an id as traces have it; 0 if it is none of them.
func (g *group) numberOfText(id string) int {
	return g.numberWhere(func(b *board) bool { return b.id.String() == id })
}
