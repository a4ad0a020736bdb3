package demo

import (
	"context"
	"testing"
	"time"

	"topdog/election/literature"
	"topdog/internal/lab/assert"
	judged "topdog/internal/lab/judge"
)

// TestRecord records a run on loopback, and holds that what happened is in it.
func TestRecord(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: a recording takes seconds")
	}
	judged.RunOnLoopback(t, func(t *judged.T) {
		heir, _ := literature.AlgorithmNamed("heir")
		o := Options{Boards: 4, Heartbeat: playHeartbeat, Algorithm: heir}
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		r, err := Record(ctx, o)
		assert.NoError(t, err)
		if len(r.Boards) != o.Boards || len(r.Acts) != 5 || r.Address == "" || r.Length < 5*calmIntervals*playHeartbeat {
			t.Errorf("the recording is %+v", r)
		}
		checkRecordedHolders(t, r)
		checkRecordedBoards(t, r)
	})
}

// checkRecordedHolders holds that the address and the client's answers went from board to board in the order of the acts.
func checkRecordedHolders(t testing.TB, r Recording) {
	t.Helper()
	var holders, answers []string
	for _, h := range r.Holders {
		holders = append(holders, h.Board)
	}
	for _, g := range r.Gaps {
		if g.Before != g.After {
			answers = append(answers, g.After)
		}
	}
	if !inOrder(holders, "pi4", "pi3", "pi2", "pi4") {
		t.Errorf("the address was at %q", holders)
	}
	if !inOrder(answers, "pi3", "pi2", "pi4") {
		t.Errorf("the answers went to %q", answers)
	}
}

// inOrder reports whether all of these are there, one after the other, whatever is between.
func inOrder(all []string, want ...string) bool {
	for _, s := range all {
		if len(want) > 0 && s == want[0] {
			want = want[1:]
		}
	}
	return len(want) == 0
}

// checkRecordedBoards holds that each board has a state and a light from the beginning on, that it was seen who leads and who is
// the heir, and that the first leader had no power for a while.
func checkRecordedBoards(t testing.TB, r Recording) {
	t.Helper()
	state, light, was := map[string]bool{}, map[string]bool{}, map[string]bool{}
	off := 0
	for _, s := range r.States {
		was[s.Board+" "+s.Role] = true
		state[s.Board] = state[s.Board] || s.At < r.Acts[0].At && s.Role != ""
		if s.Board == "pi4" && !s.Running {
			off++
		}
	}
	for _, e := range r.Lights {
		light[e.Board] = light[e.Board] || e.At == 0
	}
	for _, name := range r.Boards {
		if !light[name] || !state[name] {
			t.Errorf("%s: a state from the beginning on %t, a light %t", name, state[name], light[name])
		}
	}
	for _, want := range []string{"pi4 leader", "pi3 heir", "pi3 leader", "pi2 leader"} {
		if !was[want] {
			t.Errorf("it was never %s", want)
		}
	}
	assert.Is(t, 1, off, "how often pi4 lost its power")
}

// TestRecordNeedsThree holds that too few boards are refused.
func TestRecordNeedsThree(t *testing.T) {
	if _, err := Record(context.Background(), Options{Boards: 2, Heartbeat: playHeartbeat}); err == nil {
		t.Error("two boards were recorded")
	}
}
