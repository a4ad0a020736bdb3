package daemon

import (
	"context"
	"slices"

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
	err := d.tasks.call(ctx, func() {
		found = d.trace.timelines()
		t = console.Trace{
			Board: idText(d.group.self), Name: d.cfg.Name, Clock: console.ClockBoottime,
			NowNs: int64(d.now()),
		}
		if d.core == nil {
			return // and nothing can have happened
		}
		for i := range found {
			d.nameBoards(names, &found[i])
		}
	})
	for i := range found {
		t.Changes = append(t.Changes, found[i].report(names))
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
	name(l.outcome.leader)
	for i := range l.entries { // the first one has the leader until then
		name(l.entries[i].board)
	}
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

func idText(id wire.ID) string {
	if id == wire.Nobody {
		return ""
	}
	return id.String()
}
