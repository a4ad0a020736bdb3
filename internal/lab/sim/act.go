package sim

import (
	"fmt"

	"topdog/election"
	"topdog/election/steps"
)

// local is the time as the board's own clock has it.
func (b *Board) local() election.Instant { return b.clock.Local(b.sim.now) }

// run lets the process do something, now or when it is thawed. What it was to do
// is forgotten if the process dies first.
func (b *Board) run(do func()) {
	switch {
	case b.core == nil:
	case b.frozen:
		b.backlog = append(b.backlog, func() { b.run(do) })
	default:
		do()
	}
}

// act carries out what the core wants done, in the steps of the daemon.
func (b *Board) act(effects []election.Effect) {
	changed := false
	b.sim.steps.CarryOut(effects, func(s steps.Step) bool {
		switch e := s.Effect; s.Kind {
		case steps.Note:
			changed = b.note(e) || changed
		case steps.Gate:
			return !steps.State{Fired: b.fired}.Withholds(e)
		case steps.Send:
			b.transmit(e)
		case steps.Add:
			b.hold(true)
		case steps.Remove:
			b.hold(false)
		case steps.Fenced:
			b.sim.trace(b, EventAddress, "has lost the majority")
			return false // the fence closes
		case steps.Probe:
			b.probe()
		case steps.AskLAN:
			b.askLAN(e.To)
		case steps.Finish:
			b.finished = true
		case steps.ExtendWord:
			b.extendLease()
		}
		return true
	})
	if b.finished {
		b.die()
		b.sim.trace(b, EventFault, "stopped")
		b.hold(false)
		b.sim.review()
		return
	}
	b.schedule()
	b.watchAddress()
	if changed {
		b.sim.review()
	}
}

// note takes in what the core tells people, at once. It reports whether what boards agree on may have changed.
func (b *Board) note(e *election.Effect) (changed bool) {
	if e.Kind == election.EffectChange {
		b.role, b.leader, changed = e.Change.To, e.Change.NewLeader, true
	}
	switch { // trace would box a change, which costs more than most of what the core does
	case b.sim.Trace == nil:
	case changed:
		b.sim.tell(Event{Kind: EventChange, Board: b, What: e.Change.String(), Change: e.Change})
	case e.Kind == election.EffectNotice:
		b.sim.tell(Event{Kind: EventNotice, Board: b, What: fmt.Sprintf("notice: %v", e.Notice), Notice: e.Notice})
	}
	return changed
}

func (b *Board) probe() {
	b.sim.trace(b, EventAddress, "probes the address")
	core, found := b.core, b.findsHolder()
	answer := func() {
		if b.core == core {
			b.act(core.Probed(b.local(), b.sim.Foreign || found || b.findsHolder()))
		}
	}
	at := b.clock.Global(b.local() + probeTakes)
	b.sim.At(at-b.sim.now, func() { b.run(answer) })
}

// schedule has the core woken at its deadline.
func (b *Board) schedule() {
	if at, ok := b.core.Deadline(); ok {
		b.sim.schedule(max(b.sim.now, b.clock.Global(at)), &b.waking)
	} else {
		b.sim.unschedule(&b.waking)
	}
}

func (b *Board) wake() {
	if b.frozen {
		b.overdue = true
	} else {
		b.act(b.core.Wake(b.local()))
	}
}

func (b *Board) hold(on bool) {
	if b.holding == on {
		if on {
			b.sim.trace(b, EventAddress, "announces the address")
		}
		return
	}
	b.holding = on
	b.sim.trace(b, EventAddress, "%s the address", map[bool]string{true: "takes", false: "releases"}[on])
	b.fenced = false
	b.sim.note()
	if on {
		b.sim.observeTake(b)
	}
}
