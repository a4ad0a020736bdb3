package page

import (
	"testing"
	"time"

	"topdog/internal/console"
	"topdog/internal/lab/assert"
)

// leads is a change to another leader.
func leads(id string, term uint32) *console.Transition {
	return &console.Transition{
		Event: console.EventLeaderChanged, Leader: id, LeaderName: "pi" + id, Term: term,
		Reason: "nobody_answered", ReasonText: "nobody answered for the leader", Board: "1", BoardName: "pi1",
	}
}

// tells is a status that tells changes of leader.
func tells(changes ...console.Change) *console.Status { return &console.Status{Changes: changes} }

// lead is how a board came to lead in a term.
func lead(id string, term uint32) console.Lead {
	return console.Lead{Leader: id, LeaderName: "pi" + id, Term: term, Reason: "nobody_answered", ReasonText: "nobody answered for the leader"}
}

func change(ago time.Duration, id string, term uint32, outage time.Duration) console.Change {
	c := console.Change{AgoMs: console.Milliseconds(ago), Lead: lead(id, term)}
	if outage > 0 {
		ms := console.Milliseconds(outage)
		c.OutageMs = &ms
	}
	return c
}

// seen is a change as it is told.
func seen(ago time.Duration, id string, term uint32, outage time.Duration) HistoryChange {
	c := HistoryChange{AgoNs: int64(ago), Lead: lead(id, term)}
	if outage > 0 {
		ns := int64(outage)
		c.OutageNs = &ns
	}
	return c
}

func slot(ago time.Duration, id string, changes int, outage, unknown time.Duration) HistorySlot {
	s := HistorySlot{AgoNs: int64(ago), Leader: id, Changes: changes, OutageNs: int64(outage), UnknownNs: int64(unknown)}
	if id != "" {
		s.LeaderName = "pi" + id
	}
	return s
}

func TestHistory(t *testing.T) {
	gone := &console.Transition{Event: console.EventDaemonGone}
	const ms = time.Millisecond
	for _, c := range []struct {
		name    string
		happens func(h *history)
		now     time.Duration
		slots   []HistorySlot
		changes []HistoryChange
	}{
		{"nothing", func(*history) {}, time.Minute, []HistorySlot{slot(time.Minute, "", 0, 0, time.Minute)}, nil},
		{"a takeover, and the outage later", func(h *history) {
			first := leads("3", 6)
			first.Event, first.Status = console.EventSnapshot, tells(change(time.Hour, "3", 6, 5*ms))
			h.heard(time.Second, first)
			h.heard(6*time.Minute, leads("", 6))
			h.heard(6*time.Minute+108*ms, leads("1", 7))
			h.told(6*time.Minute+1108*ms, tells(change(time.Second, "1", 7, 108*ms), change(2*time.Hour, "3", 6, 5*ms)))
		}, 11 * time.Minute, []HistorySlot{
			slot(11*time.Minute, "3", 0, 0, time.Second), slot(6*time.Minute, "1", 1, 108*ms, 0), slot(time.Minute, "1", 0, 0, 0),
		}, []HistoryChange{seen(5*time.Minute-108*ms, "1", 7, 108*ms)}},
		{"the daemon starts again, and finds the same leader", func(h *history) {
			h.heard(time.Second, leads("3", 6))
			h.heard(2*time.Minute, gone)
			back := leads("", 0)
			back.Event, back.Status = console.EventSnapshot, tells()
			h.heard(4*time.Minute, back)
			h.heard(4*time.Minute+ms, leads("3", 6))
			h.told(4*time.Minute+2*ms, tells(change(ms, "3", 6, 0)))
		}, 5 * time.Minute, []HistorySlot{slot(5*time.Minute, "3", 1, 0, 2*time.Minute+time.Second), slot(0, "3", 0, 0, 0)},
			[]HistoryChange{seen(5*time.Minute-time.Second, "3", 6, 0)}},
		{"the process starts after the daemon, and that starts again", func(h *history) {
			first := leads("3", 6)
			first.Event, first.Status = console.EventSnapshot, tells()
			h.heard(0, first)
			h.heard(time.Minute, gone)
			h.heard(time.Minute+time.Second, leads("3", 6))
		}, 2 * time.Minute, []HistorySlot{slot(2*time.Minute, "3", 0, 0, time.Second)}, nil},
		{"what happened while nothing was heard", func(h *history) {
			h.heard(0, leads("3", 6))
			h.heard(time.Minute, gone)
			back := leads("2", 8)
			back.Event, back.Status = console.EventSnapshot, tells(change(time.Second, "2", 8, 7*ms), change(30*time.Second, "1", 7, 6*ms), change(5*time.Minute, "3", 6, ms))
			h.heard(2*time.Minute, back)
			h.told(3*time.Minute, tells(change(61*time.Second, "2", 8, 7*ms), change(90*time.Second, "1", 7, 6*ms)))
		}, 3 * time.Minute, []HistorySlot{slot(3*time.Minute, "2", 3, 13*ms, time.Minute)},
			[]HistoryChange{seen(61*time.Second, "2", 8, 7*ms), seen(90*time.Second, "1", 7, 6*ms), seen(3*time.Minute, "3", 6, 0)}},
		{"accounts of one change that are seconds apart, as after a pause of the machine", func(h *history) {
			h.heard(time.Minute, leads("3", 6))
			h.heard(2*time.Minute, leads("1", 7))
			h.told(3*time.Minute, tells(change(57*time.Second, "1", 7, 108*ms), change(123*time.Second, "3", 6, 7*ms)))
		}, 4 * time.Minute, []HistorySlot{slot(4*time.Minute, "1", 2, 115*ms, time.Minute)},
			[]HistoryChange{seen(2*time.Minute, "1", 7, 108*ms), seen(3*time.Minute, "3", 6, 7*ms)}},
		{"all daemons start again, and so do the terms", func(h *history) {
			h.heard(0, leads("1", 1))
			h.heard(time.Minute, leads("2", 2))
			h.heard(2*time.Minute, leads("1", 1))
			h.told(2*time.Minute+time.Second, tells(change(time.Second, "1", 1, 7*ms)))
		}, 3 * time.Minute, []HistorySlot{slot(3*time.Minute, "1", 3, 7*ms, 0)},
			[]HistoryChange{seen(time.Minute, "1", 1, 7*ms), seen(2*time.Minute, "2", 2, 0), seen(3*time.Minute, "1", 1, 0)}},
		{"a change that the stream has missed", func(h *history) {
			h.heard(0, leads("3", 6))
			h.heard(time.Minute, leads("2", 8))
			h.told(time.Minute+time.Second, tells(change(time.Second, "2", 8, 0), change(2*time.Second, "1", 7, 0)))
		}, 2 * time.Minute, []HistorySlot{slot(2*time.Minute, "2", 3, 0, 0)},
			[]HistoryChange{seen(time.Minute, "2", 8, 0), seen(time.Minute+time.Second, "1", 7, 0), seen(2*time.Minute, "3", 6, 0)}},
		{"the same leader in another term", func(h *history) {
			h.heard(0, leads("3", 6))
			h.heard(time.Minute, leads("3", 7))
		}, 2 * time.Minute, []HistorySlot{slot(2*time.Minute, "3", 2, 0, 0)}, []HistoryChange{seen(time.Minute, "3", 7, 0), seen(2*time.Minute, "3", 6, 0)}},
		{"roles change and the leader does not", func(h *history) {
			h.heard(0, leads("3", 6))
			suspect := leads("3", 6)
			suspect.Event, suspect.Role = console.EventRoleChanged, console.RoleCandidate
			h.heard(time.Minute, suspect)
			suspect.Role = console.RoleFollower
			h.heard(time.Minute+ms, suspect)
		}, 2 * time.Minute, []HistorySlot{slot(2*time.Minute, "3", 1, 0, 0)}, []HistoryChange{seen(2*time.Minute, "3", 6, 0)}},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := newHistory()
			c.happens(h)
			got := h.since(c.now)
			assert.Equal(t, c.slots, got.Slots, "slots")
			want := c.changes
			if want == nil {
				want = []HistoryChange{} // null is a trap for scripts
			}
			assert.Equal(t, want, got.Changes, "changes")
			if got.WatchedNs != int64(c.now) || got.SlotNs != int64(slotLength) {
				t.Errorf("watched %d ns, slots of %d ns", got.WatchedNs, got.SlotNs)
			}
			assert.Equal(t, got, h.since(c.now), "told once more")
		})
	}
}

// A month takes no more memory than a day.
func TestHistoryIsBounded(t *testing.T) {
	h := newHistory()
	const month, every = 30 * 24 * time.Hour, 7 * time.Minute
	for now, term := time.Duration(0), uint32(1); now < month; now, term = now+every, term+1 {
		h.heard(now, leads(string('1'+rune(term%3)), term))
		h.told(now+time.Second, tells(change(time.Second, string('1'+rune(term%3)), term, time.Millisecond)))
	}
	got := h.since(month)
	if len(got.Slots) != maxSlots || len(got.Changes) != maxChanges {
		t.Errorf("%d slots, %d changes", len(got.Slots), len(got.Changes))
	}
	if oldest := time.Duration(got.Slots[0].AgoNs); oldest > 24*time.Hour || oldest < 24*time.Hour-slotLength {
		t.Errorf("the oldest slot began %v ago", oldest)
	}
	changes, outage := 0, int64(0)
	for i, s := range got.Slots {
		changes, outage = changes+s.Changes, outage+s.OutageNs
		if i > 0 && got.Slots[i-1].AgoNs-s.AgoNs != int64(slotLength) {
			t.Fatalf("slot %d begins %d ns after the one before", i, got.Slots[i-1].AgoNs-s.AgoNs)
		}
	}
	if want := int(24 * time.Hour / every); changes < want-1 || changes > want+1 || outage != int64(changes)*int64(time.Millisecond) {
		t.Errorf("%d changes with %d ns of outage in a day, want about %d", changes, outage, want)
	}
	if cap(h.slots) > 4*maxSlots {
		t.Errorf("room for %d slots", cap(h.slots))
	}
	h.since(3 * month) // a machine that was suspended
}
