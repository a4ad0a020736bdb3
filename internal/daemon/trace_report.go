package daemon

import (
	"context"
	"slices"
	"sort"
	"time"

	"topdog/election"
	"topdog/internal/console"
	"topdog/wire"
)

// Trace returns the timelines of the last changes of role, the newest first.
func (d *Daemon) Trace(ctx context.Context) (console.Trace, error) {
	var (
		t     console.Trace
		found []timeline
		names = map[wire.ID]string{}
	)
	// The loop copies, and has other things to do than to make words of it.
	err := d.ask(ctx, func() {
		found = d.trace.timelines()
		t = console.Trace{
			Board: idText(d.self), Name: d.cfg.Name, Clock: console.ClockMonotonic,
			NowNs: int64(d.now() + d.trace.zero),
		}
		if d.core == nil {
			return // and nothing can have happened
		}
		for i := range found {
			d.nameBoards(names, &found[i])
		}
	})
	for i := range found {
		t.Changes = append(t.Changes, found[i].report(d.trace.zero, names))
	}
	return t, err
}

// nameBoards looks up the names of the boards of a timeline.
func (d *Daemon) nameBoards(names map[wire.ID]string, l *timeline) {
	name := func(id wire.ID) {
		if _, ok := names[id]; !ok {
			_, names[id] = d.idAndName(id)
		}
	}
	name(l.oldLeader)
	name(l.newLeader)
	for _, s := range l.inOrder() {
		name(s.board)
	}
}

// timelines returns copies of those that are worth to be shown, the newest first.
func (t *trace) timelines() (found []timeline) {
	take := func(l *timeline) {
		if l.kept {
			found = append(found, *l)
		}
	}
	for i := range keptTimelines {
		take(&t.changed.kept[i])
		take(&t.minor.kept[i])
	}
	if t.current.open {
		take(&t.current)
	}
	sort.Slice(found, func(i, j int) bool { return found[i].number > found[j].number })
	return found
}

// omitted is how many steps were not kept, between the first headSteps and the rest.
func (l *timeline) omitted() int { return max(0, l.steps-headSteps-tailSteps) }

// inOrder returns the steps that were kept, in the order in which they were entered.
func (l *timeline) inOrder() []traceStep {
	steps := slices.Clone(l.head[:min(l.steps, headSteps)])
	for i := headSteps + l.omitted(); i < l.steps; i++ {
		steps = append(steps, l.tail[(i-headSteps)%tailSteps])
	}
	return steps
}

// inTime returns the steps in the order in which they happened, with the moment
// at which the heartbeat was due that did not come. Messages may have waited in
// their socket while the loop did something else.
func (l *timeline) inTime() []traceStep {
	steps := l.inOrder()
	if len(steps) == 0 {
		return nil
	}
	if last := steps[0]; last.kind == stepHeard && last.every > 0 {
		due := last.at + last.every
		if len(steps) > 1 && steps[1].at >= due {
			steps = append(steps, traceStep{at: due, kind: stepHeartbeatDue, board: last.board})
		}
	}
	sort.SliceStable(steps, func(i, j int) bool { return steps[i].at < steps[j].at })
	return steps
}

// report puts a timeline into the form that others see. zero is what the kernel's
// clock shows when that of the node shows 0.
func (l *timeline) report(zero time.Duration, names map[wire.ID]string) console.TracedChange {
	c := console.TracedChange{
		From: l.from.String(), To: l.to.String(),
		OldLeader: idText(l.oldLeader), OldLeaderName: names[l.oldLeader],
		NewLeader: idText(l.newLeader), NewLeaderName: names[l.newLeader],
		LeaderChanged: l.moved, Term: uint32(l.term),
		// A board that is cut off does not know how it went on.
		Over:    !l.open || l.to == election.Isolated || l.to == election.Barred,
		Omitted: l.omitted(),
	}
	if l.known {
		c.Reason, c.ReasonText = l.reason.Identifier(), l.reason.String()
	}
	for _, s := range l.inTime() {
		c.Steps = append(c.Steps, s.report(zero, names))
	}
	if len(c.Steps) > 0 {
		c.ZeroNs = c.Steps[0].AtNs
	}
	return c
}

// stepNames are those of the JSON.
var stepNames = [stepKinds]string{
	stepHeard: console.StepHeard, stepSent: console.StepSent, stepTimer: console.StepTimer,
	stepLinkUp: console.StepLinkUp, stepLinkLost: console.StepLinkLost, stepAsked: console.StepAsked,
	stepRole: console.StepRole, stepProbe: console.StepProbe,
	stepTakeBegun: console.StepAcquireBegun, stepTakeEnded: console.StepAcquireEnded,
	stepReleaseBegun: console.StepReleaseBegun, stepReleaseEnded: console.StepReleaseEnded,
	stepAnnounced: console.StepAnnounced, stepHeartbeatDue: console.StepHeartbeatDue,
}

func (s *traceStep) report(zero time.Duration, names map[wire.ID]string) console.TraceStep {
	r := console.TraceStep{
		AtNs: int64(s.at + zero), Step: stepNames[s.kind],
		Board: idText(s.board), BoardName: names[s.board],
		Term: uint32(s.term), Failed: s.failed,
	}
	switch s.kind {
	case stepHeard:
		at := int64(s.takenIn + zero)
		r.Message, r.HandledNs = s.message.String(), &at
	case stepSent:
		r.Message = s.message.String()
	case stepTimer:
		at := int64(s.due + zero)
		r.DueNs = &at
	case stepRole:
		r.Role, r.Reason, r.ReasonText = s.role.String(), s.reason.Identifier(), s.reason.String()
	}
	return r
}

func idText(id wire.ID) string {
	if id == wire.Nobody {
		return ""
	}
	return id.String()
}
