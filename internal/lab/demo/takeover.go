package demo

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"topdog/internal/console"
	"topdog/internal/lab/demopage"
	"topdog/wire"
)

const (
	// traceWithin is how long a board may take to tell what it has seen.
	traceWithin = 200 * time.Millisecond
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

// takeovers is the last change of leader, put together from what the boards have traced.
type takeovers struct {
	*watch

	mu   sync.Mutex
	last pageTakeover
	told int  // the changes that were told of when it was looked at
	more bool // the boards were not done with it then
}

func newTakeovers(w *watch) *takeovers {
	return &takeovers{watch: w, last: pageTakeover{SilentNs: []int64{}, Steps: []pageStep{}}}
}

func (t *takeovers) current() pageTakeover {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.last
}

// look asks the boards what they have seen, if something has changed since the last time.
func (t *takeovers) look(ctx context.Context) {
	t.group.mu.Lock()
	told := t.group.told
	t.group.mu.Unlock()
	t.mu.Lock()
	due := told != t.told || t.more
	t.told = told
	t.mu.Unlock()
	if !due {
		return
	}
	next, over := t.assemble(t.traces(ctx))
	t.mu.Lock()
	defer t.mu.Unlock()
	t.more = !over
	if next.Leader == 0 || slices.Equal(next.Steps, t.last.Steps) && slices.Equal(next.SilentNs, t.last.SilentNs) {
		return
	}
	next.Number = t.last.Number + 1
	t.last = next
}

// traces asks all boards that can tell.
func (t *takeovers) traces(ctx context.Context) map[int]console.Trace {
	ctx, cancel := context.WithTimeout(ctx, traceWithin)
	defer cancel()
	type answer struct {
		board int
		trace console.Trace
		err   error
	}
	answers := make(chan answer, len(t.boards))
	asked := 0
	for _, b := range t.boards {
		d, frozen := t.runningDaemon(b)
		if d == nil || frozen {
			continue
		}
		asked++
		go func() {
			trace, err := d.Trace(ctx)
			answers <- answer{b.number, trace, err}
		}()
	}
	found := map[int]console.Trace{}
	for range asked {
		select {
		case a := <-answers:
			if a.err == nil {
				found[a.board] = a.trace
			}
		case <-ctx.Done(): // a daemon that was frozen in the middle of it answers when it goes on
			return found
		}
	}
	return found
}

// assemble puts together the last change of leader. It reports whether the new leader is done with it.
func (t *takeovers) assemble(traces map[int]console.Trace) (next pageTakeover, over bool) {
	e, found := lastElected(traces)
	if !found {
		return next, true
	}
	from, to := e.from, e.change.Steps[len(e.change.Steps)-1].AtNs
	next = pageTakeover{
		Leader: e.leader, OldLeader: t.numberOfText(e.former), Term: e.step.Term,
		Reason: e.step.Reason, ReasonText: e.step.ReasonText,
		FromNs: t.traced(from), ToNs: t.traced(to), Omitted: e.change.Omitted, SilentNs: []int64{}, Steps: []pageStep{},
	}
	for n, trace := range traces {
		for i := range trace.Changes {
			next.Steps = append(next.Steps, t.stepsWithin(n, &trace.Changes[i], from-int64(besides), to+int64(besides))...)
		}
	}
	slices.SortStableFunc(next.Steps, func(a, b pageStep) int {
		return cmp.Or(cmp.Compare(a.AtNs, b.AtNs), cmp.Compare(a.Board, b.Board))
	})
	if most := len(next.Steps) - stepsShown; most > 0 {
		next.Steps, next.Omitted = next.Steps[:stepsShown], next.Omitted+most
	}
	t.addClient(&next)
	return next, e.change.Over
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
func (t *takeovers) stepsWithin(board int, c *console.TracedChange, from, to int64) (steps []pageStep) {
	for _, s := range c.Steps {
		if s.AtNs < from || s.AtNs > to {
			continue
		}
		steps = append(steps, pageStep{
			Board: board, AtNs: t.traced(s.AtNs), Step: s.Step, Message: s.Message, Peer: t.numberOfText(s.Board),
			Role: s.Role, Reason: s.ReasonText, Failed: s.Failed,
		})
	}
	return steps
}

// addClient adds what the client has felt, and what had been done.
func (t *takeovers) addClient(next *pageTakeover) {
	t.watch.mu.Lock()
	t.collect()
	for _, g := range t.gaps {
		if g.After == next.Leader && t.at(g.To) >= next.FromNs && t.at(g.From) <= next.ToNs+int64(silentAfter) {
			next.SilentNs = []int64{t.at(g.From), t.at(g.To)}
		}
	}
	t.watch.mu.Unlock()
	t.group.mu.Lock()
	defer t.group.mu.Unlock()
	for _, a := range t.actions {
		if at := t.at(a.at); slices.Contains(breaking, a.verb) && at <= next.ToNs && at >= next.FromNs-int64(actedBefore) {
			next.Action, next.Board, next.ActedNs = a.verb, a.board, &at
		}
	}
}

// breaking are the verbs from which a takeover may follow.
var breaking = []demopage.Verb{
	demopage.PowerOff, demopage.CableOut, demopage.Kill, demopage.Stop, demopage.Freeze, demopage.MuteOn, demopage.DeafOn,
	demopage.Resign, demopage.Loss, demopage.Split,
}

// traced is a point in time of a trace as the documents have it.
func (t *takeovers) traced(ns int64) int64 { return ns - int64(t.startedAt) }

// numberOfText is the number of the board with an id as traces have it; 0 if it is none of them.
func (g *group) numberOfText(id string) int {
	for _, b := range g.boards {
		if b.id.String() == id {
			return b.number
		}
	}
	return 0
}
