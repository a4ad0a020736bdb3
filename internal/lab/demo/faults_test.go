package demo

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"topdog/election"
	"topdog/internal/config"
	"topdog/internal/daemon"
	"topdog/internal/lab/assert"
	"topdog/internal/lab/demopage"
	judged "topdog/internal/lab/judge"
	"topdog/internal/lab/scene"
	"topdog/netio"
	"topdog/wire"
)

// heirs are the options of a group of that many boards.
func heirs(boards int) Options {
	return Options{Boards: boards, Heartbeat: playHeartbeat, Algorithm: wire.AlgorithmHeir}
}

// offGroup prepares a group of which no board has power. It must be closed without an error.
func offGroup(t testing.TB, o Options) *group {
	t.Helper()
	g, err := newGroup(t.Context(), o)
	assert.NoError(t, err)
	t.Cleanup(func() { assert.ErrorIs(t, g.close(), nil, "") })
	return g
}

// newTestGroup makes boards that all run and agree on a leader.
func newTestGroup(t testing.TB, boards int) (*group, *board) {
	t.Helper()
	o := heirs(boards)
	o.guarded = true
	g := offGroup(t, o)
	return g, allOn(t, g)
}

// allOn switches everything on and repairs it, and returns the leader.
func allOn(t testing.TB, g *group) *board {
	t.Helper()
	act(t, g, demopage.Action{Verb: demopage.AllOn})
	return awaitLeader(t, g, anyBoard)
}

func anyBoard(*board) bool { return true }

func testContext(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	t.Cleanup(cancel)
	return ctx
}

func act(t testing.TB, g *group, a demopage.Action) {
	t.Helper()
	if err := g.perform(a); err != nil {
		t.Fatalf("%s of board %d: %v", a.Verb, a.Board, err)
	}
}

// awaitLeader waits until all boards that can follow a leader who satisfies want, and it answers.
func awaitLeader(t testing.TB, g *group, want func(*board) bool) (leader *board) {
	t.Helper()
	lack := g.Until(0, func() string {
		holders := g.Holders()
		if len(holders) != 1 || !g.Answers(holders[0]) || !want(g.boards[holders[0]-1]) {
			return fmt.Sprintf("boards %v hold the address", holders)
		}
		leader = g.boards[holders[0]-1]
		for _, b := range g.boards {
			if is := g.state(b.number); is.runs() && is.Cable && is.Follows != leader.number {
				return fmt.Sprintf("%s leads, and %s is a %s that follows %d", leader.name, b.name, is.Role, is.Follows)
			}
		}
		return ""
	})
	assert.Is(t, "", lack, "what lacks of a leader")
	return leader
}

// whyLeads is the reason of a board that answers. Its address may answer before the group has heard that it leads.
func whyLeads(t testing.TB, g *group, n int) election.Reason {
	t.Helper()
	for ctx := testContext(t); ; {
		g.mu.Lock()
		rose, changed := g.boards[n-1].rose, g.changed
		g.mu.Unlock()
		if rose != election.ReasonNone {
			return rose
		}
		select {
		case <-changed:
		case <-ctx.Done():
			t.Fatalf("%s answers, and does not lead", g.name(n))
		}
	}
}

// TestFaults does everything to a leader that can be done to one board. Another board must lead, and
// when it is undone, all boards must agree. What was done to a daemon is shown: it has not ended by itself.
func TestFaults(t *testing.T) {
	// These are the reasons of whoever was told that the leader goes: named by it, or, if that board was late, without that.
	told := []election.Reason{election.ReasonHandover, election.ReasonResigned}
	unanswered := []election.Reason{election.ReasonUnanswered}
	parts := map[string]func(*judged.T){}
	for _, test := range []struct {
		do, undo demopage.Verb
		reasons  []election.Reason // why the next leader leads; nil for any
		shown    string            // of its daemon
	}{
		{demopage.PowerOff, demopage.PowerOn, unanswered, daemonOff},
		{demopage.CableOut, demopage.CableIn, unanswered, daemonRuns},
		{demopage.Kill, demopage.Start, told, daemonKilled},
		{demopage.Stop, demopage.Start, told, daemonStopped},
		{demopage.Freeze, demopage.Thaw, told, daemonFrozen},
		{demopage.MuteOn, demopage.MuteOff, unanswered, daemonRuns},
		{demopage.DeafOn, demopage.DeafOff, nil, daemonRuns},
	} {
		parts[string(test.do)] = func(t *judged.T) {
			g, old := newTestGroup(t, 3)
			act(t, g, demopage.Action{Verb: test.do, Board: old.number})
			if shown := newPageSource(g).document().Boards[old.number-1]; shown.Daemon != test.shown || shown.Ended != "" {
				t.Errorf("the board is shown as %+v", shown)
			}
			n, err := g.client.WaitAnswer(testContext(t), func(n int) bool { return n != old.number })
			assert.NoError(t, err)
			rose := whyLeads(t, g, n)
			if test.reasons != nil && !slices.Contains(test.reasons, rose) {
				t.Errorf("%s leads because %v, want one of %v", g.name(n), rose, test.reasons)
			}
			act(t, g, demopage.Action{Verb: test.undo, Board: old.number})
			awaitLeader(t, g, anyBoard)
		}
	}
	judged.RunOnLoopback(t, func(t *judged.T) { t.Together(parts) })
}

// brokenLAN is a LAN of which some things fail.
type brokenLAN struct {
	lan
	power_, cable_ int // fails for this board
	filter_        bool
}

var errBroken = errors.New("broken")

func brokenIf(broken bool, do func() error) error {
	if broken {
		return errBroken
	}
	return do()
}

// link fails to give power, or to put a cable in or out.
func (l brokenLAN) link(n int, powered, plugged bool) error {
	whole := l.lan.(*loopback).boards[n-1]
	broken := n == l.power_ && powered != whole.powered.Load() || n == l.cable_ && plugged != whole.plugged.Load()
	return brokenIf(broken, func() error { return l.lan.link(n, powered, plugged) })
}

func (l brokenLAN) filter(filters []scene.Filter) error {
	return brokenIf(l.filter_, func() error { return l.lan.filter(filters) })
}

// afterActs is what a board is, but for what the boards elect.
func afterActs(is pageBoard) pageBoard {
	return pageBoard{Daemon: is.Daemon, Power: is.Power, Cable: is.Cable, Deaf: is.Deaf, Mute: is.Mute, Apart: is.Apart}
}

// TestAllOnGoesOn: what cannot be repaired is told, keeps nothing else from being repaired, and is shown as it is.
func TestAllOnGoesOn(t *testing.T) {
	whole := pageBoard{Daemon: daemonRuns, Power: true, Cable: true}
	for name, test := range map[string]struct {
		lan    brokenLAN
		first  pageBoard // board 1
		third  pageBoard
		losses int
	}{
		"power of 1":  {brokenLAN{power_: 1}, pageBoard{Daemon: daemonOff, Cable: true}, whole, 0},
		"cable of 1":  {brokenLAN{cable_: 1}, pageBoard{Daemon: daemonRuns, Power: true}, whole, 0},
		"the switch":  {brokenLAN{filter_: true}, pageBoard{Daemon: daemonRuns, Power: true, Cable: true, Deaf: true, Apart: true}, whole, 20},
		"everything":  {brokenLAN{power_: 1, cable_: 1, filter_: true}, pageBoard{Daemon: daemonOff, Deaf: true, Apart: true}, whole, 20},
		"power of 3":  {brokenLAN{power_: 3}, whole, pageBoard{Daemon: daemonOff, Cable: true}, 0},
		"not a thing": {brokenLAN{}, whole, whole, 0},
	} {
		t.Run(name, func(t *testing.T) {
			g := offGroup(t, heirs(3))
			percent := 20
			for _, a := range []demopage.Action{
				{Verb: demopage.CableOut, Board: 1}, {Verb: demopage.DeafOn, Board: 1},
				{Verb: demopage.Loss, Percent: &percent}, {Verb: demopage.Split, Apart: []int{1}},
			} {
				act(t, g, a)
			}
			test.lan.lan = g.lan
			g.lan = test.lan
			err := g.perform(demopage.Action{Verb: demopage.AllOn})
			if broken := test.lan != (brokenLAN{lan: test.lan.lan}); errors.Is(err, errBroken) != broken {
				t.Errorf("got %v", err)
			}
			for i, want := range []pageBoard{test.first, whole, test.third} {
				assert.Equal(t, want, afterActs(g.state(i+1)), "board %d", i+1)
			}
			assert.Is(t, test.losses, g.loss, "the loss")
		})
	}
}

// TestFailedAction: what was not done is not shown as if it had been.
func TestFailedAction(t *testing.T) {
	g := offGroup(t, heirs(2))
	g.lan = brokenLAN{g.lan, 1, 1, true}
	percent := 20
	for _, a := range []demopage.Action{
		{Verb: demopage.CableOut, Board: 1}, {Verb: demopage.DeafOn, Board: 1}, {Verb: demopage.MuteOn, Board: 1}, {Verb: demopage.PowerOn, Board: 1},
		{Verb: demopage.Loss, Percent: &percent}, {Verb: demopage.Split, Apart: []int{1}},
	} {
		before := g.state(1)
		assert.ErrorIs(t, g.perform(a), errBroken, "%s", a.Verb)
		assert.Equal(t, before, g.state(1), "%s", a.Verb)
		assert.Is(t, 0, g.loss, "the loss after %s", a.Verb)
	}
}

// failingLAN is a LAN on which a daemon that ends does so with an error.
type failingLAN struct {
	lan
	watching chan bool // closed when a daemon has begun
}

func (l failingLAN) platform(n int, cfg *config.Config) daemon.Platform {
	p := l.lan.platform(n, cfg)
	p.Watch = func(ctx context.Context, _ netio.WatchOptions, _ func(netio.Snapshot)) error {
		close(l.watching)
		<-ctx.Done()
		return errBroken
	}
	return p
}

// TestDaemonEnds: a daemon that ends by itself is shown so, with the reason. It can be started again.
func TestDaemonEnds(t *testing.T) {
	for _, test := range []struct {
		name string
		err  error
		why  string
		then demopage.Action
	}{
		{"with an error", errBroken, "broken", demopage.Action{Verb: demopage.Start, Board: 1}},
		{"with an error, and all is repaired", errBroken, "broken", demopage.Action{Verb: demopage.AllOn}},
		{"without one", nil, "it ended by itself, without an error", demopage.Action{Verb: demopage.Start, Board: 1}},
		{"without power", errBroken, "broken", demopage.Action{Verb: demopage.PowerOff, Board: 1}},
	} {
		t.Run(test.name, func(t *testing.T) {
			g, err := newGroup(t.Context(), heirs(2))
			assert.NoError(t, err)
			whole := g.lan
			watching := make(chan bool)
			if test.err != nil {
				g.lan = failingLAN{whole, watching}
			} else {
				close(watching)
			}
			act(t, g, demopage.Action{Verb: demopage.PowerOn, Board: 1})
			<-watching
			g.lan = whole
			b := g.boards[0]
			b.daemon.Kill()
			<-b.done
			shown := newPageSource(g).document().Boards[0]
			if shown.Daemon != daemonEnded || shown.Ended != test.why || shown.Role != "" || !shown.Power {
				t.Errorf("the board is shown as %+v", shown)
			}
			act(t, g, test.then)
			want := daemonRuns
			if test.then.Verb == demopage.PowerOff {
				want = daemonOff
			}
			if shown := newPageSource(g).document().Boards[0]; shown.Daemon != want || shown.Ended != "" {
				t.Errorf("then the board is shown as %+v", shown)
			}
			assert.ErrorIs(t, g.close(), test.err, "in the end")
		})
	}
}

// noLAN connects no boards.
type noLAN struct{ lan }

func (noLAN) filter([]scene.Filter) error { return nil }

func (noLAN) cannot(demopage.Verb) string { return "" }

// TestPageFails: a page of which the boards cannot be switched on, or fail later, ends what serves it first.
func TestPageFails(t *testing.T) {
	for name, broken := range map[string]bool{"in the beginning": true, "later": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := &group{
					started: time.Now(), changed: make(chan struct{}), failed: make(chan error, 1),
					lan: brokenLAN{lan: noLAN{}, filter_: broken},
				}
				g.play = scene.Improvise(g)
				if !broken {
					g.failed <- errBroken
				}
				asked, end, result := make(chan bool), make(chan bool), make(chan error, 1)
				go func() {
					result <- newPageSource(g).run(t.Context(), func(ctx context.Context) error {
						<-ctx.Done()
						close(asked)
						<-end
						return nil
					})
				}()
				<-asked
				synctest.Wait()
				select {
				case err := <-result:
					t.Fatalf("the page is still being served: %v", err)
				default:
				}
				close(end)
				if err := <-result; err == nil || err.Error() != errBroken.Error() {
					t.Errorf("got %v", err)
				}
			})
		})
	}
}
