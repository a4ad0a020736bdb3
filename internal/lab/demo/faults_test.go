package demo

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"topdog/election"
	"topdog/internal/config"
	"topdog/internal/daemon"
	"topdog/internal/lab/demopage"
	judged "topdog/internal/lab/judge"
	"topdog/netio"
	"topdog/wire"
)

// newTestGroup makes boards that all run and agree on a leader.
func newTestGroup(t testing.TB, boards int) (*group, *board) {
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

func testContext(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	t.Cleanup(cancel)
	return ctx
}

func act(t testing.TB, g *group, a demopage.Action) {
	t.Helper()
	if err := g.performAction(testContext(t), a); err != nil {
		t.Fatalf("%s of board %d: %v", a.Verb, a.Board, err)
	}
}

func awaitLeader(t testing.TB, g *group, want func(*board) bool) *board {
	t.Helper()
	leader, err := g.awaitAgreed(testContext(t), want)
	if err != nil {
		t.Fatal(err)
	}
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
// when it is undone, all boards must agree.
func TestFaults(t *testing.T) {
	// These are the reasons of whoever was told that the leader goes: named by it, or, if that board was late, without that.
	told := []election.Reason{election.ReasonHandover, election.ReasonResigned}
	parts := map[string]func(*judged.T){}
	for _, test := range []struct {
		do, undo demopage.Verb
		reasons  []election.Reason // why the next leader leads; nil for any
	}{
		{demopage.PowerOff, demopage.PowerOn, []election.Reason{election.ReasonUnanswered}},
		{demopage.CableOut, demopage.CableIn, []election.Reason{election.ReasonUnanswered}},
		{demopage.Kill, demopage.Start, told},
		{demopage.Stop, demopage.Start, told},
		{demopage.Freeze, demopage.Thaw, told},
		{demopage.MuteOn, demopage.MuteOff, []election.Reason{election.ReasonUnanswered}},
		{demopage.DeafOn, demopage.DeafOff, nil},
	} {
		parts[string(test.do)] = func(t *judged.T) {
			g, old := newTestGroup(t, 3)
			act(t, g, demopage.Action{Verb: test.do, Board: old.number})
			n, err := g.client.WaitAnswer(testContext(t), func(n int) bool { return n != old.number })
			if err != nil {
				t.Fatal(err)
			}
			rose := whyLeads(t, g, n)
			if test.reasons != nil && !slices.Contains(test.reasons, rose) {
				t.Errorf("%s leads because %v, want one of %v", g.name(n), rose, test.reasons)
			}
			act(t, g, demopage.Action{Verb: test.undo, Board: old.number})
			awaitLeader(t, g, func(*board) bool { return true })
		}
	}
	judged.RunOnLoopback(t, func(t *judged.T) { t.Together(parts) })
}

// brokenLAN is a LAN of which some things fail.
type brokenLAN struct {
	lan
	power_, cable_, impair_ int // fails for this board
	lose_, split_           bool
}

var errBroken = errors.New("broken")

func brokenIf(broken bool, do func() error) error {
	if broken {
		return errBroken
	}
	return do()
}

func (l brokenLAN) power(n int, on bool) error {
	return brokenIf(n == l.power_, func() error { return l.lan.power(n, on) })
}

func (l brokenLAN) cable(n int, in bool) error {
	return brokenIf(n == l.cable_, func() error { return l.lan.cable(n, in) })
}

func (l brokenLAN) impair(n int, deaf, mute bool) error {
	return brokenIf(n == l.impair_, func() error { return l.lan.impair(n, deaf, mute) })
}

func (l brokenLAN) lose(share float64) error {
	return brokenIf(l.lose_, func() error { return l.lan.lose(share) })
}

func (l brokenLAN) split(apart []int) error {
	return brokenIf(l.split_, func() error { return l.lan.split(apart) })
}

// TestAllOnGoesOn: what cannot be repaired is told, keeps nothing else from being repaired, and is shown as it is.
func TestAllOnGoesOn(t *testing.T) {
	for name, test := range map[string]struct {
		lan  brokenLAN
		want [3]boardState // but for what the boards elect
		loss int
	}{
		"power of 1":  {brokenLAN{power_: 1}, [3]boardState{{cable: true}, {power: running, cable: true}, {power: running, cable: true}}, 0},
		"cable of 1":  {brokenLAN{cable_: 1}, [3]boardState{{power: running}, {power: running, cable: true}, {power: running, cable: true}}, 0},
		"ears of 1":   {brokenLAN{impair_: 1}, [3]boardState{{power: running, cable: true, deaf: true}, {power: running, cable: true}, {power: running, cable: true}}, 0},
		"loss":        {brokenLAN{lose_: true}, [3]boardState{{power: running, cable: true}, {power: running, cable: true}, {power: running, cable: true}}, 20},
		"split":       {brokenLAN{split_: true}, [3]boardState{{power: running, cable: true, apart: true}, {power: running, cable: true}, {power: running, cable: true}}, 0},
		"everything":  {brokenLAN{power_: 1, cable_: 1, impair_: 1, lose_: true, split_: true}, [3]boardState{{deaf: true, apart: true}, {power: running, cable: true}, {power: running, cable: true}}, 20},
		"power of 3":  {brokenLAN{power_: 3}, [3]boardState{{power: running, cable: true}, {power: running, cable: true}, {cable: true}}, 0},
		"not a thing": {brokenLAN{}, [3]boardState{{power: running, cable: true}, {power: running, cable: true}, {power: running, cable: true}}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			g, err := newGroup(Options{Boards: 3, Heartbeat: playHeartbeat, Algorithm: wire.AlgorithmHeir})
			if err != nil {
				t.Fatal(err)
			}
			defer func() {
				if err := g.close(); err != nil {
					t.Error(err)
				}
			}()
			percent := 20
			for _, a := range []demopage.Action{
				{Verb: demopage.CableOut, Board: 1}, {Verb: demopage.DeafOn, Board: 1},
				{Verb: demopage.Loss, Percent: &percent}, {Verb: demopage.Split, Apart: []int{1}},
			} {
				act(t, g, a)
			}
			test.lan.lan = g.lan
			g.lan = test.lan
			err = g.performAction(t.Context(), demopage.Action{Verb: demopage.AllOn})
			if broken := test.lan != (brokenLAN{lan: test.lan.lan}); errors.Is(err, errBroken) != broken {
				t.Errorf("got %v", err)
			}
			for i, want := range test.want {
				got := g.state(i + 1)
				got = boardState{power: got.power, cable: got.cable, deaf: got.deaf, mute: got.mute, apart: got.apart, frozen: got.frozen}
				if got != want {
					t.Errorf("board %d: got %+v, want %+v", i+1, got, want)
				}
			}
			if g.loss != test.loss {
				t.Errorf("a loss of %d, want %d", g.loss, test.loss)
			}
		})
	}
}

// TestFailedAction: what was not done is not shown as if it had been.
func TestFailedAction(t *testing.T) {
	g, err := newGroup(Options{Boards: 2, Heartbeat: playHeartbeat, Algorithm: wire.AlgorithmHeir})
	if err != nil {
		t.Fatal(err)
	}
	defer g.close()
	g.lan = brokenLAN{g.lan, 1, 1, 1, true, true}
	percent := 20
	for _, a := range []demopage.Action{
		{Verb: demopage.CableOut, Board: 1}, {Verb: demopage.DeafOn, Board: 1}, {Verb: demopage.MuteOn, Board: 1}, {Verb: demopage.PowerOn, Board: 1},
		{Verb: demopage.Loss, Percent: &percent}, {Verb: demopage.Split, Apart: []int{1}},
	} {
		before := g.state(1)
		if err := g.performAction(t.Context(), a); !errors.Is(err, errBroken) {
			t.Errorf("%s: %v", a.Verb, err)
		}
		if got := g.state(1); got != before || g.loss != 0 {
			t.Errorf("%s: %+v, a loss of %d; before %+v", a.Verb, got, g.loss, before)
		}
	}
}

// failingLAN is a LAN on which a daemon that ends does so with an error.
type failingLAN struct {
	lan
	watching chan bool // closed when a daemon has begun
}

func (l failingLAN) platform(n int, cfg *config.Config) daemon.Platform {
	p := l.lan.platform(n, cfg)
	p.Watch = func(ctx context.Context, _ string, _ func(error), _ func(netio.Snapshot)) error {
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
			g, err := newGroup(Options{Boards: 2, Heartbeat: playHeartbeat, Algorithm: wire.AlgorithmHeir})
			if err != nil {
				t.Fatal(err)
			}
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
			if err := g.close(); !errors.Is(err, test.err) {
				t.Errorf("in the end: %v, want %v", err, test.err)
			}
		})
	}
}

// TestEnded: a daemon that was made to end has not ended by itself.
func TestEnded(t *testing.T) {
	parts := map[string]func(*judged.T){}
	for verb, want := range map[demopage.Verb]string{
		demopage.PowerOff: daemonOff, demopage.Kill: daemonKilled, demopage.Stop: daemonStopped,
	} {
		parts[string(verb)] = func(t *judged.T) {
			g, _ := newTestGroup(t, 2)
			act(t, g, demopage.Action{Verb: verb, Board: 1})
			if shown := newPageSource(g).document().Boards[0]; shown.Daemon != want || shown.Ended != "" {
				t.Errorf("the board is shown as %+v", shown)
			}
		}
	}
	judged.RunOnLoopback(t, func(t *judged.T) { t.Together(parts) })
}

// noLAN connects no boards.
type noLAN struct{ lan }

func (noLAN) lose(float64) error { return nil }
func (noLAN) split([]int) error  { return nil }

func (noLAN) cannot(demopage.Verb) string { return "" }

// TestPageFails: a page of which the boards cannot be switched on, or fail later, ends what serves it first.
func TestPageFails(t *testing.T) {
	for name, broken := range map[string]bool{"in the beginning": true, "later": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := &group{
					started: time.Now(), changed: make(chan struct{}), failed: make(chan error, 1),
					lan: brokenLAN{lan: noLAN{}, lose_: broken},
				}
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
