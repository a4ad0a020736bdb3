package daemon

import (
	"cmp"
	"time"

	"topdog/election"
	"topdog/internal/config"
	"topdog/internal/console"
	"topdog/wire"
)

// transitions tell whoever follows this board by the control socket what happens to it. Every change is told on its
// own and in order, because hooks depend on that.
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

// held notes whether this board has the address, and may answer for it. It is told later: the other boards come first.
func (t *transitions) held(holds bool) {
	if holds != t.holds {
		t.holds = holds
		t.noted = append(t.noted, holds)
	}
}

// tell tells of an event, and how the board is after it.
func (t *transitions) tell(event console.Event, now console.Transition) {
	now.Event = event
	t.told = now
	t.publish(now)
}

// tellChange tells of a change of role or leader, and how the board is after it.
func (t *transitions) tellChange(event console.Event, now console.Transition) {
	now.Holding = now.Role == console.RoleLeader && t.holds
	t.tell(event, now)
	if now.Role != console.RoleLeader {
		t.tellHeld(false) // before this board may lead again
	}
}

// tellHeld tells what held has noted, up to the first note that says otherwise.
//
// It is told after the change of role to which it belongs, although it was done before. So a reader never sees a follower
// that has the address, or a leader that seems to have lost it.
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

// history is how the lead has changed, as this board saw it.
type history struct {
	now         func() time.Duration
	leaderships []leadership    // the newest first
	since       time.Duration   // when the present role began
	last        election.Change // the change that led to it
	lostAt      time.Duration   // when it was last known to be there

	rivalAt time.Duration // when another leader was heard
	rivals  uint64        // how often that was
}

// leadership is the time during which one board led. Nobody leads after the change if this board let go and cannot know
// who does.
type leadership struct {
	election.Change // with which it began
	from            time.Duration
	gap             time.Duration // without a sign of a leader before it, as this board saw it; 0 if unknown
}

// historyMax bounds what is remembered.
const historyMax = 32

// add enters a change. lastSeen is when the old leader was heard last, or 0 if that says nothing about how long nobody
// led.
func (h *history) add(c election.Change, lastSeen time.Duration) {
	now := h.now()
	if c.From != c.To {
		h.since = now
	}
	h.last = c
	lostAt := cmp.Or(h.lostAt, lastSeen)
	switch {
	case c.To == election.Isolated:
		h.lostAt = 0 // the others may have a leader: this board cannot know
	case !c.LeaderChanged():
	case c.Reason == election.ReasonDeaf:
		h.lostAt = 0 // very likely another board leads now; this one learns which when it hears again
		c.NewLeader = wire.Nobody
		h.enter(leadership{c, now, 0})
	case c.NewLeader == wire.Nobody:
		h.lostAt = now
	default:
		h.lostAt = 0
		if len(h.leaderships) > 0 && h.leaderships[0].NewLeader == c.NewLeader && h.leaderships[0].Term == c.Term {
			return // the same leadership, found again after a pause of this board
		}
		r := leadership{c, now, 0}
		if lostAt > 0 {
			r.gap = now - lostAt
		}
		h.enter(r)
	}
}

// enter enters who leads from now on.
func (h *history) enter(r leadership) {
	h.leaderships = append([]leadership{r}, h.leaderships[:min(len(h.leaderships), historyMax-1)]...)
}

// rivalHeard enters that another leader was heard.
func (h *history) rivalHeard() {
	h.rivals++
	h.rivalAt = h.now()
}

// claimIsForeign reports whether a claim to the address made now comes from a machine other than a former
// leader.
func (h *history) claimIsForeign(now time.Duration) bool {
	return now-h.since > formerLeaderWithin && now-h.rivalAt > formerLeaderWithin
}

// status fills in what topdog status shows of it. idAndName looks up a board.
func (h *history) status(s *console.Status, now time.Duration, idAndName func(wire.ID) (id, name string)) {
	s.Reason, s.ReasonText = h.last.Reason.Identifier(), h.last.Reason.String()
	s.RoleSinceMs = age(now - h.since)
	s.Counters.RivalLeadersHeard = h.rivals
	if s.Leader != "" && len(h.leaderships) > 0 {
		s.LeaderSinceMs = age(now - h.leaderships[0].from)
	}
	for _, r := range h.leaderships {
		c := console.Change{AgoMs: console.Milliseconds(now - r.from)}
		c.Lead = console.Lead{Term: uint32(r.Term), Reason: r.Reason.Identifier(), ReasonText: r.Reason.String()}
		c.Leader, c.LeaderName = idAndName(r.NewLeader)
		if r.gap > 0 {
			c.OutageMs = age(r.gap)
		}
		s.Changes = append(s.Changes, c)
	}
}

// formerLeaderWithin is how long after a change of role, or a healed partition, the announcements of the former leader
// may still be heard.
const formerLeaderWithin = 10 * time.Second
