package daemon

import (
	"topdog/election"
	"topdog/internal/config"
	"topdog/internal/console"
	"topdog/wire"
)

// transitions tell whoever follows this board, by the control socket, what happens to it. Each
// change is told by itself: hooks depend on that, and on their order.
type transitions struct {
	publish func(console.Transition)
	told    console.Transition // the last one
	holds   bool               // this board has the address and may answer for it
	noted   []bool             // what holds was since the last one, in order
}

func newTransitions(cfg *config.Config, publish func(console.Transition)) *transitions {
	return &transitions{publish: publish, told: console.Transition{
		Role: console.RoleIsolated, Reason: election.ReasonNone.Identifier(), ReasonText: election.ReasonNone.String(),
		Group: cfg.Group, Addresses: []string{}, BoardName: cfg.Name, Priority: int(cfg.Priority), Grade: wire.GradePassing.String(),
	}}
}

// held notes whether this board has the address, and may answer for it. It is told later: the
// other boards come first.
func (t *transitions) held(holds bool) {
	if holds != t.holds {
		t.holds = holds
		t.noted = append(t.noted, holds)
	}
}

// tell tells of an event, after which the board is so.
func (t *transitions) tell(event console.Event, now console.Transition) {
	now.Event = event
	t.told = now
	t.publish(now)
}

// tellChange tells of a change of role or leader, after which the board is so.
func (t *transitions) tellChange(event console.Event, now console.Transition) {
	now.Holding = now.Role == console.RoleLeader && t.holds
	t.tell(event, now)
	if now.Role != console.RoleLeader {
		t.tellHeld(false) // before this board may lead again
	}
}

// tellHeld tells what held has noted, as long as it is so.
//
// That comes after the change of role that it belongs to, although it was done before: who reads
// one after the other never sees a follower that has the address, nor a leader that seems to have
// lost it.
func (t *transitions) tellHeld(as bool) {
	for len(t.noted) > 0 && t.noted[0] == as {
		t.noted = t.noted[1:]
		now := t.told
		now.Holding = as
		event := console.EventAddressReleased
		if as {
			event = console.EventAddressAcquired
		}
		t.tell(event, now)
	}
}

// finish tells all that was noted.
func (t *transitions) finish() {
	for len(t.noted) > 0 {
		t.tellHeld(t.noted[0])
	}
	t.noted = nil
}

// tellGrade tells how fit the board is to lead, if that has changed.
func (t *transitions) tellGrade(grade string) {
	if now := t.told; grade != now.Grade {
		now.Grade = grade
		t.tell(console.EventGradeChanged, now)
	}
}

// tellChange tells of a change of role or leader.
func (d *Daemon) tellChange(c election.Change) {
	now := console.Transition{
		Role: c.To.String(), Reason: c.Reason.Identifier(), ReasonText: c.Reason.String(), Term: uint32(c.Term),
		Group: d.cfg.Group, Addresses: []string{}, Interface: d.link.name,
		Board: idText(d.group.self), BoardName: d.cfg.Name, Priority: int(d.priority()), Grade: d.core.Grade().String(),
	}
	now.Leader, now.LeaderName = d.idAndName(c.NewLeader)
	for _, p := range d.address.prefixes() {
		now.Addresses = append(now.Addresses, p.String())
	}
	event := console.EventLeaderChanged
	if c.From != c.To {
		event = console.EventRoleChanged
	}
	d.transitions.tellGrade(now.Grade) // it may be the reason
	d.transitions.tellChange(event, now)
}

// tellStopping tells that this daemon was told to end.
func (d *Daemon) tellStopping() { d.transitions.tell(console.EventStopping, d.transitions.told) }
