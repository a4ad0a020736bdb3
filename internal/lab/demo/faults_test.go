package demo

import (
	"context"
	"testing"
	"time"

	"topdog/election"
	"topdog/internal/lab/demopage"
	"topdog/wire"
)

// newTestGroup makes boards that all run and agree on a leader.
func newTestGroup(t *testing.T, boards int) (*group, *board) {
	t.Helper()
	g, err := newGroup(Options{Boards: boards, Heartbeat: playHeartbeat, Algorithm: wire.AlgorithmHeir, guarded: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := g.close(); err != nil {
			t.Error(err)
		}
	})
	act(t, g, demopage.Action{Verb: demopage.AllOn})
	return g, awaitLeader(t, g, func(*board) bool { return true })
}

func testContext(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	t.Cleanup(cancel)
	return ctx
}

func act(t *testing.T, g *group, a demopage.Action) {
	t.Helper()
	if err := g.performAction(testContext(t), a); err != nil {
		t.Fatalf("%s of board %d: %v", a.Verb, a.Board, err)
	}
}

func awaitLeader(t *testing.T, g *group, want func(*board) bool) *board {
	t.Helper()
	leader, err := g.awaitAgreed(testContext(t), want)
	if err != nil {
		t.Fatal(err)
	}
	return leader
}

// TestFaults does everything to a leader that can be done to one board. Another board must lead, and
// when it is undone, all boards must agree.
func TestFaults(t *testing.T) {
	for _, test := range []struct {
		do, undo demopage.Verb
		reason   election.Reason // why the next leader leads
	}{
		{demopage.PowerOff, demopage.PowerOn, election.ReasonUnanswered},
		{demopage.CableOut, demopage.CableIn, election.ReasonUnanswered},
		{demopage.Kill, demopage.Start, election.ReasonHandover},
		{demopage.Stop, demopage.Start, election.ReasonHandover},
		{demopage.Freeze, demopage.Thaw, election.ReasonHandover},
		{demopage.MuteOn, demopage.MuteOff, election.ReasonUnanswered},
		{demopage.DeafOn, demopage.DeafOff, 0},
	} {
		t.Run(string(test.do), func(t *testing.T) {
			t.Parallel()
			g, old := newTestGroup(t, 3)
			act(t, g, demopage.Action{Verb: test.do, Board: old.number})
			_, err := g.client.WaitAnswer(testContext(t), func(n int) bool { return n != old.number })
			if err != nil {
				t.Fatal(err)
			}
			act(t, g, demopage.Action{Verb: test.undo, Board: old.number})
			leader := awaitLeader(t, g, func(b *board) bool { return b != old })
			g.mu.Lock()
			rose := leader.rose
			g.mu.Unlock()
			if test.reason != 0 && rose != test.reason {
				t.Errorf("%s leads because %v, want %v", leader.name, rose, test.reason)
			}
		})
	}
}
