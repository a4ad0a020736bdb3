package page

import (
	"slices"
	"time"

	"topdog/internal/console"
)

const (
	slotLength = 5 * time.Minute
	maxSlots   = int(24 * time.Hour / slotLength)
	maxChanges = 64
)

// History is what GET /v1/history returns: what this process has seen since it began, or within a day.
type History struct {
	Board     string          `json:"board"` // id of this board; "" until it has a network
	BoardName string          `json:"board_name"`
	WatchedNs int64           `json:"watched_ns"` // since this process began
	SlotNs    int64           `json:"slot_ns"`    // length of a slot
	Slots     []HistorySlot   `json:"slots"`      // the oldest first; the last one goes on
	Changes   []HistoryChange `json:"changes"`    // of leader, the newest first
}

// HistorySlot is a stretch of time.
type HistorySlot struct {
	AgoNs      int64  `json:"ago_ns"` // since it began
	Leader     string `json:"leader"` // id of the board that led at its end, or leads now; "" for nobody, or if unknown
	LeaderName string `json:"leader_name"`
	Changes    int    `json:"changes"`    // of the leader or its term
	OutageNs   int64  `json:"outage_ns"`  // how long nobody led before these changes, as far as that is known
	UnknownNs  int64  `json:"unknown_ns"` // how long there was no daemon to ask
}

// HistoryChange is a change of leader, or of the term of a leader that lost the lead in between.
type HistoryChange struct {
	AgoNs int64 `json:"ago_ns"`
	console.Lead
	OutageNs *int64 `json:"outage_ns"` // how long nobody led; null if unknown
}

// history remembers who led when. It has no clock: its callers pass the time since it began, which never goes back.
type history struct {
	at        time.Duration // everything until then is entered
	known     bool          // there is a daemon
	board     string
	boardName string
	leader    string
	name      string
	slots     []HistorySlot // AgoNs is not set
	first     int           // the number of the first slot that is kept
	before    moment        // the last change before this process began
	changes   []moment      // the oldest first
}

// moment is a change of leader, and when it was.
type moment struct {
	lead   console.Lead
	at     time.Duration
	outage *int64 // as HistoryChange.OutageNs
}

// is reports whether another account is of the same change: a leader claims once in a term.
func (m *moment) is(other *moment) bool {
	return m.lead.Leader == other.lead.Leader && m.lead.Term == other.lead.Term
}

func newHistory() *history { return &history{slots: make([]HistorySlot, 1)} }

// advance enters that nothing has happened until now.
func (h *history) advance(now time.Duration) {
	for h.at < now {
		end := time.Duration(h.first+len(h.slots)) * slotLength
		until := min(now, end)
		slot := &h.slots[len(h.slots)-1]
		if !h.known {
			slot.UnknownNs += int64(until - h.at)
		}
		slot.Leader, slot.LeaderName = h.leader, h.name
		h.at = until
		if until == end {
			h.slots = append(h.slots, HistorySlot{})
		}
		if len(h.slots) > maxSlots {
			h.slots = slices.Delete(h.slots, 0, 1)
			h.first++
		}
	}
}

// heard enters an event of now.
func (h *history) heard(now time.Duration, t *console.Transition) {
	h.advance(now)
	h.known = t.Event != console.EventDaemonGone
	h.leader, h.name = t.Leader, t.LeaderName
	if t.BoardName != "" {
		h.board, h.boardName = t.Board, t.BoardName
	}
	if t.Status != nil {
		if len(h.changes) == 0 {
			h.before = moment{lead: t.Lead()}
		}
		h.told(now, t.Status)
		return
	}
	if t.Event == console.EventRoleChanged || t.Event == console.EventLeaderChanged {
		h.enter(moment{lead: t.Lead(), at: now - time.Duration(t.AgeNs)})
	}
}

// told enters the changes of leader that a status of now has.
func (h *history) told(now time.Duration, s *console.Status) {
	h.advance(now)
	for _, c := range slices.Backward(s.Changes) {
		m := moment{lead: c.Lead, at: now - milliseconds(c.AgoMs)}
		if c.OutageMs != nil {
			m.outage = new(int64(milliseconds(*c.OutageMs)))
		}
		h.enter(m)
	}
}

func milliseconds(ms float64) time.Duration { return time.Duration(ms * float64(time.Millisecond)) }

// enter enters a change of leader. If the change is known already, only its outage can be new: two accounts of it may be
// some time apart, and a daemon that was started again finds the same leader again. A change from before this process
// began does not count.
func (h *history) enter(m moment) {
	if m.lead.Leader == "" {
		return
	}
	if m.at < 0 {
		h.before = m
		return
	}
	i := len(h.changes)
	for i > 0 && h.changes[i-1].at > m.at {
		i--
	}
	for j := max(0, i-1); j < min(len(h.changes), i+1); j++ { // those before and after it
		if c := &h.changes[j]; c.is(&m) {
			h.outage(c, m.outage)
			return
		}
	}
	if i == 0 && h.before.is(&m) {
		return
	}
	if slot := h.slot(m.at); slot != nil {
		slot.Changes++
	}
	outage := m.outage
	m.outage = nil
	h.changes = slices.Insert(h.changes, i, m)
	h.outage(&h.changes[i], outage)
	if len(h.changes) > maxChanges {
		h.changes = slices.Delete(h.changes, 0, 1)
	}
}

// outage enters how long nobody led before a change, if that was unknown.
func (h *history) outage(c *moment, outage *int64) {
	if c.outage != nil || outage == nil {
		return
	}
	c.outage = outage
	if slot := h.slot(c.at); slot != nil {
		slot.OutageNs += *outage
	}
}

// slot returns the slot of a moment, or nil if it is no longer kept.
func (h *history) slot(at time.Duration) *HistorySlot {
	if i := int(at/slotLength) - h.first; i >= 0 && i < len(h.slots) {
		return &h.slots[i]
	}
	return nil
}

// since returns the history as of now.
func (h *history) since(now time.Duration) History {
	h.advance(now)
	told := History{
		Board: h.board, BoardName: h.boardName, WatchedNs: int64(now), SlotNs: int64(slotLength),
		Slots: slices.Clone(h.slots), Changes: []HistoryChange{},
	}
	for i := range told.Slots {
		told.Slots[i].AgoNs = int64(now - time.Duration(h.first+i)*slotLength)
	}
	last := &told.Slots[len(told.Slots)-1]
	last.Leader, last.LeaderName = h.leader, h.name
	for _, c := range slices.Backward(h.changes) {
		told.Changes = append(told.Changes, HistoryChange{int64(now - c.at), c.lead, c.outage})
	}
	return told
}
