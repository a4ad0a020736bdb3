package roster

import (
	"slices"
	"testing"
	"time"

	"topdog/election/clock"
	"topdog/internal/lab/assert"
	"topdog/wire"
)

// meet enters a board of that priority.
func (r *Roster) meet(now clock.Instant, id wire.ID, priority uint8) *Peer {
	return r.Heard(now, &wire.Header{Sender: id, Priority: priority, Incarnation: wire.Incarnation(id)}, false)
}

func TestRosterOrder(t *testing.T) {
	r := New(nil)
	for _, id := range []wire.ID{5, 1, 9, 3, 5, 1} {
		r.meet(0, id, 100)
	}
	var ids []wire.ID
	for _, p := range r.Peers() {
		ids = append(ids, p.ID)
	}
	if want := []wire.ID{1, 3, 5, 9}; !slices.Equal(ids, want) {
		t.Errorf("the roster has %v, want %v", ids, want)
	}
	if r.Peer(4) != nil {
		t.Error("the roster knows board 4, which nobody has heard")
	}
	r.Peers()[0].Priority = 7 // of a copy
	if p := r.Peer(1); p == nil || p.Priority != 100 {
		t.Errorf("board 1 is %+v", p)
	}
}

// TestRosterLiveness: a board is live as long as not five HELLOs in a row are
// missing, of those that it said it would send.
func TestRosterLiveness(t *testing.T) {
	for _, test := range []struct {
		name  string
		every time.Duration
		gone  bool
		after time.Duration
		live  bool
	}{
		{"just heard", 0, false, 0, true},
		{"no HELLO yet", 0, false, 5*time.Second - 1, true},
		{"no HELLO yet, silent", 0, false, 5 * time.Second, false},
		{"in a large group", 30 * time.Second, false, 149 * time.Second, true},
		{"in a large group, silent", 30 * time.Second, false, 150 * time.Second, false},
		{"promised too much", time.Millisecond, false, 4 * time.Second, true},
		{"left", time.Second, true, 0, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := New(nil)
			p := r.meet(time.Hour, 1, 100)
			p.HelloInterval, p.Gone = test.every, test.gone
			now := time.Hour + test.after
			assert.Is(t, test.live, p.Live(now), "live")
			count := 0
			if test.live {
				count = 1
			}
			if n := r.Live(now); n != count {
				t.Errorf("%d live boards, want %d", n, count)
			}
		})
	}
}

func TestRosterRestart(t *testing.T) {
	r := New(nil)
	p := r.meet(0, 1, 100)
	p.Name, p.Following, p.StartedAt, p.Gone = "pi1", 3, 17, true
	p = r.Heard(time.Second, &wire.Header{Sender: 1, Incarnation: 99, Priority: 50, Leading: true}, false)
	want := Peer{ID: 1, Incarnation: 99, Former: 1, Priority: 50, Name: "pi1", Leading: true, LastHeard: time.Second}
	assert.Is(t, want, *p, "after a restart the board")
}

// TestRosterLimit: 254 peers and this board make 255. A dead one makes room for a
// new one, the one that has been silent for longest first; a live one never does.
func TestRosterLimit(t *testing.T) {
	r := New(nil)
	now := clock.Instant(0)
	for id := range wire.ID(wire.MaxBoards - 1) {
		if r.meet(now, id+1, 100) == nil {
			t.Fatalf("board %v does not fit", id+1)
		}
		now += time.Millisecond
	}
	if r.meet(now, 1000, 100) != nil {
		t.Errorf("a roster of %d live boards took another one", wire.MaxBoards-1)
	}
	if r.meet(now, 100, 100) == nil {
		t.Error("a known board was refused because the roster is full")
	}
	now += 4 * time.Second
	for id := range wire.ID(100) {
		r.meet(now, id+1, 100) // these stay alive
	}
	now += 2 * time.Second
	for _, id := range []wire.ID{1000, 1001} {
		if r.meet(now, id, 100) == nil {
			t.Errorf("board %v found no room, though others are dead", id)
		}
	}
	for id, known := range map[wire.ID]bool{100: true, 101: false, 102: false, 103: true, 254: true, 1000: true, 1001: true} {
		if (r.Peer(id) != nil) != known {
			t.Errorf("the roster knows board %v: %v, want %v", id, !known, known)
		}
	}
	if n := len(r.Peers()); n != wire.MaxBoards-1 {
		t.Errorf("the roster has %d boards, want %d", n, wire.MaxBoards-1)
	}
}

func TestSuccession(t *testing.T) {
	r := New(nil)
	if heir, ok := r.Heir(0, wire.Nobody); ok {
		t.Errorf("of nobody, %v is the heir", heir)
	}
	r.meet(0, 1, 100)
	r.meet(0, 2, 200)
	r.meet(0, 3, 100)
	r.meet(0, 4, 0) // never leads
	r.meet(0, 5, 250).Gone = true
	r.meet(-time.Hour, 6, 250) // dead
	for _, test := range []struct {
		excluded wire.ID
		heir     wire.ID
		above    int // of a board of rank 100/2
	}{
		{wire.Nobody, 2, 2},
		{2, 3, 1},
		{3, 2, 1},
		{1, 2, 2},
	} {
		if heir, ok := r.Heir(0, test.excluded); !ok || heir != test.heir {
			t.Errorf("without %v the heir is %v, want %v", test.excluded, heir, test.heir)
		}
		if n := r.CountAbove(0, Rank{Priority: 100, ID: 2}, test.excluded); n != test.above {
			t.Errorf("without %v there are %d boards above, want %d", test.excluded, n, test.above)
		}
	}
}

func TestRank(t *testing.T) {
	group := New(nil)
	for _, test := range []struct {
		a, b  Rank
		above bool
	}{
		{Rank{Priority: 100, ID: 2}, Rank{Priority: 100, ID: 1}, true},
		{Rank{Priority: 100, ID: 1}, Rank{Priority: 100, ID: 2}, false},
		{Rank{Priority: 101, ID: 1}, Rank{Priority: 100, ID: 2}, true}, // the priority comes first
		{Rank{Priority: 100, ID: 2}, Rank{Priority: 101, ID: 1}, false},
		{Rank{Priority: 100, ID: 1}, Rank{Priority: 100, ID: 1}, false}, // not above itself
		{Rank{Priority: 1, ID: 1}, Rank{Priority: 0, ID: 1 << 31}, true},
		{Rank{Priority: 100, ID: 1 << 31}, Rank{Priority: 100, ID: 1}, true}, // ids are not signed
		// The grade comes before the priority.
		{Rank{Priority: 100, ID: 1}, Rank{Grade: wire.GradeProbation, Priority: 200, ID: 2}, true},
		{Rank{Grade: wire.GradeProbation, Priority: 100, ID: 1}, Rank{Grade: wire.GradeDrained, Priority: 200, ID: 2}, true},
		{Rank{Grade: wire.GradeDrained, Priority: 100, ID: 1}, Rank{Grade: wire.GradeFailing, Priority: 200, ID: 2}, true},
		{Rank{Grade: wire.GradeFailing, Priority: 200, ID: 1}, Rank{Grade: wire.GradeFailing, Priority: 100, ID: 2}, true},
		// Who may lead at all comes before the grade.
		{Rank{Grade: wire.GradeFailing, Priority: 1, ID: 1}, Rank{Priority: 0, ID: 2}, true},
		{Rank{Priority: 0, ID: 2}, Rank{Grade: wire.GradeFailing, Priority: 1, ID: 1}, false},
	} {
		assert.Is(t, test.above, group.Before(test.a, test.b), "%v above %v", test.a, test.b)
	}
	if (Rank{Priority: 0, ID: 9}).Eligible() {
		t.Error("a board of priority 0 may lead")
	}
	if !(Rank{Priority: 1, ID: 9}).Eligible() {
		t.Error("a board of priority 1 must not lead")
	}
	if got, want := (Rank{Priority: 100, ID: 0x0a000005}).String(), "100/10.0.0.5"; got != want {
		t.Errorf("a rank is written %q, want %q", got, want)
	}
}
