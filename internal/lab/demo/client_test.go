package demo

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestGaps: the client remembers what is worth it, with who answered before and after.
func TestGaps(t *testing.T) {
	start := time.Now()
	at := func(ms int) time.Time { return start.Add(time.Duration(ms) * time.Millisecond) }
	c := &client{started: start, answered: make(chan struct{})}
	for _, answer := range []struct{ ms, board int }{
		{300, 5}, {301, 5}, {303, 5}, // two questions apart: nothing is missing
		{400, 4},           // the leader vanished
		{401, 3},           // handed over
		{402, 3}, {450, 3}, // the machine stood still
		{451, 3},
	} {
		if answer.ms == 400 {
			c.paused(pause{at(304), at(394)}) // longer, and of no other gap
		}
		if answer.ms == 450 {
			c.paused(pause{at(403), at(443)})
		}
		c.take(at(answer.ms), answer.board)
	}
	want := []Gap{
		{From: at(0), To: at(300), After: 5},
		{From: at(303), To: at(400), Before: 5, After: 4, Paused: 90 * time.Millisecond},
		{From: at(400), To: at(401), Before: 4, After: 3},
		{From: at(402), To: at(450), Before: 3, After: 3, Paused: 40 * time.Millisecond},
	}
	got, total := c.after(0)
	if diff := cmp.Diff(want, got); diff != "" || total != len(want) {
		t.Errorf("%d gaps in all (-want +got):\n%s", total, diff)
	}
	if got, _ := c.after(3); len(got) != 1 {
		t.Errorf("after 3 gaps come %d, want 1", len(got))
	}
	if got, _ := c.after(total); len(got) != 0 {
		t.Errorf("after all gaps come %d", len(got))
	}
}

// TestLongestGap: a gap that has not ended counts as well.
func TestLongestGap(t *testing.T) {
	start := time.Now().Add(-time.Minute)
	c := &client{started: start, answered: make(chan struct{})}
	c.take(start.Add(time.Second), 5)
	c.take(start.Add(2*time.Second), 4)
	if got := c.longest(start.Add(3 * time.Second)); got.Before != 4 || got.After != 0 || got.Duration() < 57*time.Second {
		t.Errorf("the open gap is %+v", got)
	}
	c.take(time.Now(), 4)
	for i, since := range []time.Duration{0, 1500 * time.Millisecond, 10 * time.Second} {
		if got := c.longest(start.Add(since)); got.Duration() < 57*time.Second {
			t.Errorf("%d: the longest gap since %v took %v", i, since, got.Duration())
		}
	}
}

// TestMemory: what the client remembers is bounded, and the count goes on.
func TestMemory(t *testing.T) {
	start := time.Now()
	c := &client{started: start, answered: make(chan struct{})}
	for i := range maxGaps + 10 {
		c.take(start.Add(time.Duration(i)*time.Second), 1+i%2)
		c.paused(pause{start, start})
	}
	gaps, total := c.after(0)
	if len(gaps) != maxGaps || total != maxGaps+10 || len(c.pauses) != maxPauses {
		t.Errorf("%d gaps of %d, %d pauses", len(gaps), total, len(c.pauses))
	}
	if gaps, _ := c.after(total - 2); len(gaps) != 2 {
		t.Errorf("%d gaps after all but 2", len(gaps))
	}
}
