package demo

import (
	"context"
	"testing"
	"time"

	"topdog/election/literature"
)

// TestRecord records a run on loopback, and holds that what happened is in it.
func TestRecord(t *testing.T) {
	t.Parallel() // demos never mix
	heir, _ := literature.AlgorithmNamed("heir")
	o := Options{Boards: 4, Heartbeat: playHeartbeat, Algorithm: heir}
	var r Recording
	var err error
	for range attempts {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		r, err = Record(ctx, o)
		cancel()
		if err == nil {
			break
		}
		t.Logf("once more: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Boards) != o.Boards || len(r.Acts) != 5 || r.Address == "" || r.Length < 5*calmIntervals*playHeartbeat {
		t.Errorf("the recording is %+v", r)
	}
	checkRecordedHolders(t, r)
	checkRecordedBoards(t, r)
}

// checkRecordedHolders holds that the address and the client's answers went from board to board.
func checkRecordedHolders(t *testing.T, r Recording) {
	t.Helper()
	var holders, answers []string
	for _, h := range r.Holders {
		holders = append(holders, h.Board)
	}
	for _, g := range r.Gaps {
		if g.Before != g.After {
			answers = append(answers, g.Before+" to "+g.After)
		}
	}
	for i, want := range []string{"pi4", "pi3", "pi2", "pi4"} {
		if i >= len(holders) || holders[i] != want {
			t.Fatalf("the address was at %q", holders)
		}
	}
	for i, want := range []string{"pi4 to pi3", "pi3 to pi2", "pi2 to pi4"} {
		if i >= len(answers) || answers[i] != want {
			t.Fatalf("the answers went from %q", answers)
		}
	}
}

// checkRecordedBoards holds that each board has a state and a light from the beginning on, and
// that the first leader had no power for a while.
func checkRecordedBoards(t *testing.T, r Recording) {
	t.Helper()
	began, light := map[string]string{}, map[string]bool{}
	off := 0
	for _, s := range r.States {
		if began[s.Board] == "" {
			began[s.Board] = s.Role
		}
		if s.Board == "pi4" && !s.Running {
			off++
		}
	}
	for _, e := range r.Lights {
		if e.At == 0 {
			light[e.Board] = true
		}
	}
	for _, name := range r.Boards {
		if want := map[string]string{"pi4": "leader", "pi3": "heir"}[name]; !light[name] || began[name] == "" || want != "" && began[name] != want {
			t.Errorf("%s began as %q, with a light: %v", name, began[name], light[name])
		}
	}
	if off != 1 {
		t.Errorf("pi4 lost its power %d times", off)
	}
}

// TestRecordNeedsThree holds that too few boards are refused.
func TestRecordNeedsThree(t *testing.T) {
	if _, err := Record(context.Background(), Options{Boards: 2, Heartbeat: playHeartbeat}); err == nil {
		t.Error("two boards were recorded")
	}
}
