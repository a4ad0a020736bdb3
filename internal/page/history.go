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

// History is what GET /v1/history returns: what this process has seen since it began, but at most in the last day.
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
	before    console.Lead  // who led after the last change before this process began
	changes   []moment      // the oldest first
}

// moment is a change of leader, and when it was.
type moment struct {
	console.Lead
	at     time.Duration
	outage *int64 // as HistoryChange.OutageNs
}

func newHistory() *history { return &history{slots: make([]HistorySlot, 1)} }

// advance brings the history up to now: nothing has changed since the last entry.
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
			h.before = t.Lead()
		}
		h.told(now, t.Status)
		return
	}
	if t.Event == console.EventRoleChanged || t.Event == console.EventLeaderChanged {
		h.enter(moment{Lead: t.Lead(), at: now - time.Duration(t.AgeNs)})
	}
}

// told enters the changes of leader that are in a status, which was made now.
func (h *history) told(now time.Duration, s *console.Status) {
	h.advance(now)
	for _, c := range slices.Backward(s.Changes) {
		m := moment{Lead: c.Lead, at: now - milliseconds(c.AgoMs)}
		if c.OutageMs != nil {
			m.outage = new(int64(milliseconds(*c.OutageMs)))
		}
		h.enter(m)
	}
}

func milliseconds(ms float64) time.Duration { return time.Duration(ms * float64(time.Millisecond)) }

// enter enters a change of leader. If the change just before or just after it has the same leader and term, it is the same
// change, since a leader claims only once in a term: two reports of a change may differ in their time, and a daemon that was
// started again finds the same leader again. Then only the length of the outage can be new. If there is another change
// between the two, they are different ones: terms start over when all daemons are restarted. A change from before this
// process began does not count.
func (h *history) enter(m moment) {
	if m.Leader == "" {
		return
	}
	if m.at < 0 {
		h.before = m.Lead
		return
	}
	at := len(h.changes)
	for at > 0 && h.changes[at-1].at > m.at {
		at--
	}
	before, after := max(0, at-1), min(len(h.changes), at+1)
	i := before + slices.IndexFunc(h.changes[before:after], func(c moment) bool { return sameTerm(c.Lead, m.Lead) })
	if i < before {
		if at == 0 && sameTerm(h.before, m.Lead) {
			return
		}
		h.slot(m.at).Changes++
		i = at
		h.changes = slices.Insert(h.changes, i, moment{Lead: m.Lead, at: m.at})
	}
	if c := &h.changes[i]; c.outage == nil && m.outage != nil {
		c.outage = m.outage
		h.slot(c.at).OutageNs += *m.outage
	}
	if len(h.changes) > maxChanges {
		h.changes = slices.Delete(h.changes, 0, 1)
	}
}

func sameTerm(a, b console.Lead) bool { return a.Leader == b.Leader && a.Term == b.Term }

// slot returns the slot of a moment. If that is no longer kept, it returns a new one, and what is entered there is lost.
func (h *history) slot(at time.Duration) *HistorySlot {
	if i := int(at/slotLength) - h.first; i >= 0 && i < len(h.slots) {
		return &h.slots[i]
	}
	return &HistorySlot{}
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
		told.Changes = append(told.Changes, HistoryChange{int64(now - c.at), c.Lead, c.outage})
	}
	return told
}
