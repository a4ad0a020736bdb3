package daemon

import (
	"slices"
	"sort"

	"topdog/election"
	"topdog/internal/console"
	"topdog/wire"
)

const (
	// headSteps and tailSteps bound a timeline. A takeover on a clean wire has
	// about fifteen steps. One that takes very long, as when a foreign machine has
	// the address, keeps how it began and how it ended.
	headSteps = 16
	tailSteps = 48
	// timelineMax is how many entries a timeline has in the list: its steps, its
	// beginning, and the one that stands for what was left out.
	timelineMax = 1 + headSteps + 1 + tailSteps
	// presentMax is how long the present one may get before it is shortened: twice
	// as long, so that it is not shortened with every step.
	presentMax = 2 * timelineMax
	// keptTimelines is how many are kept of either kind: of changes of leader, and
	// of suspicions that came to nothing.
	keptTimelines = 8
	// stepsMax is how long the list can get. It takes about 100 kB.
	stepsMax = 2*keptTimelines*timelineMax + presentMax + 1
)

// timeline is what happened in one change, or in several that followed from each
// other, in the order in which the loop did it.
type timeline struct {
	entries []traceStep // the first is stepBegin
	outcome outcome
	from    election.Role
	leader  wire.ID // before
	omitted int     // steps from the middle
	present bool    // more may come
}

// outcome is what a timeline has come to.
type outcome struct {
	to     election.Role
	leader wire.ID
	term   wire.Term
	// reason is that of the first change that made another one lead, else of the
	// first change: what follows in the same timeline follows from that.
	reason election.Reason
	known  bool // there was a change, and so a reason
	moved  bool // the leader has changed
	kept   bool // worth keeping
}

// cut cuts steps into timelines, the oldest first, and leaves out the middle of those
// that are too long. It does so in place: the steps are the timelines' from then on.
func cut(steps []traceStep) (found []timeline) {
	for len(steps) > 0 {
		n := 1 + slices.IndexFunc(steps[1:], func(s traceStep) bool { return s.kind == stepBegin })
		if n == 0 {
			n = len(steps)
		}
		found = append(found, newTimeline(shorten(steps[:n])))
		steps = steps[n:]
	}
	return found
}

// newTimeline goes through the steps of one.
func newTimeline(entries []traceStep) timeline {
	begin := &entries[0]
	l := timeline{
		entries: entries, from: begin.role, leader: begin.board,
		outcome: outcome{to: begin.role, leader: begin.board},
	}
	o := &l.outcome
	for i := range entries {
		switch s := &entries[i]; s.kind {
		case console.StepRole:
			moves := s.board != o.leader
			if !o.known || moves && !o.moved {
				o.reason = s.reason
			}
			o.known, o.kept, o.moved = true, true, o.moved || moves
			o.to, o.leader, o.term = s.role, s.board, s.term
		case console.StepAcquireBegun, console.StepReleaseBegun:
			o.kept = true
		case console.StepSent:
			if s.message == wire.TypeHeartbeat || s.message == wire.TypeCoordinator {
				o.term = s.term
			}
		case stepOmitted:
			*o = s.outcome
			l.omitted = int(s.count)
		}
	}
	return l
}

// shorten leaves out the middle of a timeline that is too long, in place.
func shorten(entries []traceStep) []traceStep {
	const head = 1 + headSteps
	if len(entries) <= head+tailSteps {
		return entries
	}
	tail := len(entries) - tailSteps
	until := newTimeline(entries[:tail])
	left := tail - head // how many entries are left out
	if until.omitted > 0 {
		left += until.omitted - 1 // one of them stands for the others
	}
	entries[head] = traceStep{kind: stepOmitted, outcome: until.outcome, count: int32(left)}
	return append(entries[:head+1], entries[tail:]...)
}

// lastOfEachKind returns the timelines that are worth keeping: the last ones of either kind, so that
// what happens often does not push out what happens rarely.
func lastOfEachKind(all []timeline) []timeline {
	kinds := map[bool]int{}
	var found []timeline
	for _, l := range slices.Backward(all) {
		if kinds[l.outcome.moved] < keptTimelines && l.outcome.kept {
			kinds[l.outcome.moved]++
			found = append(found, l)
		}
	}
	slices.Reverse(found)
	return found
}

// tidy leaves the steps of the timelines that are kept, in place.
func tidy(steps []traceStep) []traceStep {
	left := steps[:0]
	for _, l := range lastOfEachKind(cut(steps)) {
		left = append(left, l.entries...)
	}
	return left
}

// inTime returns the steps in the order in which they happened, with the moment
// at which the heartbeat was due that did not come. Messages may have waited in
// their socket while the loop did something else.
func (l *timeline) inTime() []traceStep {
	steps := slices.DeleteFunc(slices.Clone(l.entries), func(s traceStep) bool {
		return s.kind == stepBegin || s.kind == stepOmitted
	})
	if len(steps) == 0 {
		return nil
	}
	if last := steps[0]; last.kind == console.StepHeard && last.interval > 0 {
		due := last.at + last.interval
		if len(steps) > 1 && steps[1].at >= due {
			steps = append(steps, traceStep{at: due, kind: console.StepHeartbeatDue, board: last.board})
		}
	}
	sort.SliceStable(steps, func(i, j int) bool { return steps[i].at < steps[j].at })
	return steps
}

// timelines returns copies of those that are worth to be shown, the newest first.
func (t *trace) timelines() []timeline {
	all := cut(slices.Clone(t.steps))
	if t.recording {
		all[len(all)-1].present = true
	}
	found := lastOfEachKind(all)
	slices.Reverse(found)
	return found
}

// report puts a timeline into the form that others see.
func (l *timeline) report(names map[wire.ID]string) console.TracedChange {
	o := &l.outcome
	c := console.TracedChange{
		From: l.from.String(), To: o.to.String(),
		OldLeader: idText(l.leader), OldLeaderName: names[l.leader],
		NewLeader: idText(o.leader), NewLeaderName: names[o.leader],
		LeaderChanged: o.moved, Term: uint32(o.term),
		// A board that is cut off does not know how it went on.
		Over:    !l.present || o.to == election.Isolated || o.to == election.Barred,
		Omitted: l.omitted,
	}
	if o.known {
		c.Reason, c.ReasonText = o.reason.Identifier(), o.reason.String()
	}
	for _, s := range l.inTime() {
		c.Steps = append(c.Steps, s.report(names))
	}
	if len(c.Steps) > 0 {
		c.ZeroNs = c.Steps[0].AtNs
	}
	return c
}

func (s *traceStep) report(names map[wire.ID]string) console.TraceStep {
	r := console.TraceStep{
		AtNs: int64(s.at), Step: s.kind,
		Board: idText(s.board), BoardName: names[s.board],
		Term: uint32(s.term), Failed: s.failed,
	}
	switch s.kind {
	case console.StepHeard:
		at := int64(s.handled)
		r.Message, r.HandledNs = s.message.String(), &at
	case console.StepSent:
		r.Message = s.message.String()
	case console.StepTimer:
		at := int64(s.due)
		r.DueNs = &at
	case console.StepRole:
		r.Role, r.Reason, r.ReasonText = s.role.String(), s.reason.Identifier(), s.reason.String()
	}
	return r
}
