package daemon

import (
	"time"

	"topdog/election"
	"topdog/internal/console"
	"topdog/wire"
)

// history is how the lead has changed, as this board saw it.
type history struct {
	now         func() time.Duration
	leaderships []leadership    // the newest first
	since       time.Duration   // when the present role began
	last        election.Change // the change that led to it
	leader      wire.ID         // the last leader that there was
	lostAt      time.Duration   // when it was last known to be there

	rivalAt time.Duration // when another leader was heard
	rivals  uint64        // how often that was
}

// leadership is the time during which one board led.
type leadership struct {
	leader wire.ID // Nobody if this board let go and cannot know who leads
	term   wire.Term
	reason election.Reason
	from   time.Duration
	gap    time.Duration // without a sign of a leader before it, as this board saw it; 0 if unknown
}

// historyMax bounds what is remembered.
const historyMax = 32

// add enters a change. lastSeen is when the old leader was heard last, or 0 if
// that says nothing about how long nobody led.
func (h *history) add(c election.Change, lastSeen time.Duration) {
	now := h.now()
	if c.From != c.To {
		h.since = now
	}
	h.last = c
	if c.To == election.Isolated {
		h.lostAt = 0 // the others may have a leader; this board cannot know
		return
	}
	if !c.LeaderChanged() {
		return
	}
	if c.Reason == election.ReasonDeaf {
		h.lostAt = 0 // another board leads now, very likely; this one will hear which when it hears again
		h.enter(leadership{leader: wire.Nobody, term: c.Term, reason: c.Reason, from: now})
		return
	}
	if c.NewLeader == wire.Nobody {
		h.lostAt = now
		return
	}
	lostAt := h.lostAt
	h.lostAt = 0
	if c.NewLeader == h.leader && len(h.leaderships) > 0 && h.leaderships[0].term == c.Term {
		return // the same leadership, found again after a pause of this board
	}
	if lostAt == 0 {
		lostAt = lastSeen
	}
	r := leadership{leader: c.NewLeader, term: c.Term, reason: c.Reason, from: now}
	if lostAt > 0 {
		r.gap = now - lostAt
	}
	h.enter(r)
}

// enter enters who leads from now on.
func (h *history) enter(r leadership) {
	h.leader = r.leader
	h.leaderships = append([]leadership{r}, h.leaderships...)
	if len(h.leaderships) > historyMax {
		h.leaderships = h.leaderships[:historyMax]
	}
}

// rivalHeard enters that another leader was heard.
func (h *history) rivalHeard() {
	h.rivals++
	h.rivalAt = h.now()
}

// formerLeaderWithin is how long after a change of role, or a healed partition, the
// announcements of the former leader may still be heard.
const formerLeaderWithin = 10 * time.Second

// claimIsForeign reports whether whoever claims the address now is no former leader.
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
		c.Lead = console.Lead{Term: uint32(r.term), Reason: r.reason.Identifier(), ReasonText: r.reason.String()}
		c.Leader, c.LeaderName = idAndName(r.leader)
		if r.gap > 0 {
			c.OutageMs = age(r.gap)
		}
		s.Changes = append(s.Changes, c)
	}
}
