package demo

import (
	"fmt"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"topdog/internal/console"
	"topdog/internal/lab/assert"
	"topdog/internal/lab/demopage"
	"topdog/internal/lab/observe"
	"topdog/wire"
)

// newTestTakeovers returns the takeovers of boards that do not run, and of which traces are made by a test. It has to be called
// in a bubble of synctest.
func newTestTakeovers(t *testing.T, boards int, line *scriptedLine) *watch {
	t.Helper()
	g := &group{started: time.Now(), changed: make(chan struct{}), client: observe.StartAsker(line, askEvery)}
	t.Cleanup(g.client.Close)
	for n := 1; n <= boards; n++ {
		addr := netip.AddrFrom4([4]byte{127, 77, 0, byte(10 + n)})
		g.boards = append(g.boards, &board{number: n, name: fmt.Sprintf("pi%d", n), addr: addr, id: wire.IDFromAddr(addr)})
	}
	return newWatch(g)
}

// rise is the trace of a board that becomes the leader after another one (0 for none), with other steps before and after.
func (w *watch) rise(leader, old int, at time.Duration, before, after int) console.Trace {
	id := func(n int) string {
		if n == 0 {
			return ""
		}
		return w.boards[n-1].id.String()
	}
	c := console.TracedChange{LeaderChanged: true, Over: true, OldLeader: id(old), NewLeader: id(leader)}
	for i := range before {
		c.Steps = append(c.Steps, console.TraceStep{AtNs: int64(at) - int64(before-i), Step: console.StepTimer})
	}
	c.Steps = append(c.Steps, console.TraceStep{AtNs: int64(at), Step: console.StepRole, Role: console.RoleLeader, Board: id(leader)})
	for i := range after {
		c.Steps = append(c.Steps, console.TraceStep{AtNs: int64(at) + int64(i+1), Step: console.StepSent, Message: "COORDINATOR"})
	}
	c.ZeroNs = c.Steps[0].AtNs
	return console.Trace{Board: id(leader), Changes: []console.TracedChange{c}}
}

// TestCause: what is said to have caused a takeover concerns one of its leaders, or else all boards, and came before.
func TestCause(t *testing.T) {
	type done struct {
		at    time.Duration
		verb  demopage.Verb
		board int
	}
	const rose = 10 * time.Second
	for name, test := range map[string]struct {
		old  int
		done []done
		want done
	}{
		"the old leader":             {2, []done{{9 * time.Second, demopage.PowerOff, 2}}, done{9 * time.Second, demopage.PowerOff, 2}},
		"another board after it":     {2, []done{{9 * time.Second, demopage.PowerOff, 2}, {9900 * time.Millisecond, demopage.CableOut, 1}}, done{9 * time.Second, demopage.PowerOff, 2}},
		"all boards after it":        {2, []done{{9 * time.Second, demopage.Kill, 2}, {9900 * time.Millisecond, demopage.Loss, 0}}, done{9 * time.Second, demopage.Kill, 2}},
		"all boards before it":       {2, []done{{8 * time.Second, demopage.Split, 0}, {9 * time.Second, demopage.Resign, 2}}, done{9 * time.Second, demopage.Resign, 2}},
		"all boards alone":           {2, []done{{8 * time.Second, demopage.Split, 0}, {9 * time.Second, demopage.Stop, 1}}, done{8 * time.Second, demopage.Split, 0}},
		"the last to all boards":     {2, []done{{8 * time.Second, demopage.Split, 0}, {9 * time.Second, demopage.Heal, 0}}, done{9 * time.Second, demopage.Heal, 0}},
		"another board alone":        {2, []done{{9 * time.Second, demopage.Freeze, 1}}, done{}},
		"the new leader has power":   {2, []done{{7 * time.Second, demopage.CableOut, 1}, {9 * time.Second, demopage.PowerOn, 3}}, done{9 * time.Second, demopage.PowerOn, 3}},
		"the new leader has a cable": {2, []done{{9 * time.Second, demopage.CableIn, 3}}, done{9 * time.Second, demopage.CableIn, 3}},
		"the new leader is started":  {2, []done{{9 * time.Second, demopage.Start, 3}}, done{9 * time.Second, demopage.Start, 3}},
		"the new leader thaws":       {2, []done{{9 * time.Second, demopage.Thaw, 3}}, done{9 * time.Second, demopage.Thaw, 3}},
		"the new leader is heard":    {2, []done{{9 * time.Second, demopage.MuteOff, 3}}, done{9 * time.Second, demopage.MuteOff, 3}},
		"the new leader hears":       {2, []done{{9 * time.Second, demopage.DeafOff, 3}}, done{9 * time.Second, demopage.DeafOff, 3}},
		"another board comes back":   {2, []done{{9 * time.Second, demopage.PowerOff, 2}, {9900 * time.Millisecond, demopage.PowerOn, 1}}, done{9 * time.Second, demopage.PowerOff, 2}},
		"the old leader comes back":  {2, []done{{9 * time.Second, demopage.MuteOn, 2}, {9900 * time.Millisecond, demopage.MuteOff, 2}}, done{9 * time.Second, demopage.MuteOn, 2}},
		"the LAN is healed":          {2, []done{{9 * time.Second, demopage.Heal, 0}}, done{9 * time.Second, demopage.Heal, 0}},
		"everything is switched on":  {0, []done{{9 * time.Second, demopage.AllOn, 0}}, done{9 * time.Second, demopage.AllOn, 0}},
		"after the rise":             {2, []done{{rose + 1, demopage.PowerOff, 2}}, done{}},
		"too long before":            {2, []done{{4 * time.Second, demopage.PowerOff, 2}}, done{}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				takeovers := newTestTakeovers(t, 3, newScriptedLine())
				for i, d := range test.done {
					takeovers.actions = append(takeovers.actions, action{i + 1, takeovers.started.Add(d.at), deed{d.verb, d.board, ""}})
				}
				takeovers.takeIn(map[int]console.Trace{3: takeovers.rise(3, test.old, rose, 1, 9)}, true)
				last := takeovers.lastTakeover()
				got := done{verb: last.Action, board: last.Board}
				if last.ActedNs != nil {
					got.at = time.Duration(*last.ActedNs)
				}
				if got != test.want || last.Leader != 3 {
					t.Errorf("%d leads because of %+v, want %+v", last.Leader, got, test.want)
				}
			})
		})
	}
}

// TestLastTakeover: an election is not replaced by an older one, and is told again only if more is known of it.
func TestLastTakeover(t *testing.T) {
	type look struct {
		traces map[int]console.Trace
		all    bool
		want   string // leader, document, whether to look again
	}
	synctest.Test(t, func(t *testing.T) {
		takeovers := newTestTakeovers(t, 3, newScriptedLine())
		first := takeovers.rise(1, 0, 1*time.Second, 1, 5)
		second := takeovers.rise(2, 1, 2*time.Second, 1, 5)
		seen := takeovers.rise(3, 0, 2*time.Second+1, 0, 3)
		seen.Changes[0].Steps = seen.Changes[0].Steps[1:] // another board that has seen the second
		third := takeovers.rise(1, 2, 3*time.Second, 1, 5)
		for i, l := range []look{
			{nil, false, "0 leads, document 0, again true"},
			{map[int]console.Trace{1: first}, true, "1 leads, document 1, again false"},
			{map[int]console.Trace{1: first, 2: second}, false, "2 leads, document 2, again true"},
			{map[int]console.Trace{1: first}, false, "2 leads, document 2, again true"},
			{map[int]console.Trace{2: second, 3: seen}, true, "2 leads, document 3, again false"},
			{map[int]console.Trace{2: second}, true, "2 leads, document 3, again false"},
			{map[int]console.Trace{1: first, 3: seen}, true, "2 leads, document 3, again false"},
			{map[int]console.Trace{1: third}, true, "1 leads, document 4, again false"},
		} {
			takeovers.takeIn(l.traces, l.all)
			last := takeovers.lastTakeover()
			got := fmt.Sprintf("%d leads, document %d, again %t", last.Leader, last.Number, takeovers.more)
			assert.Is(t, l.want, got, "look %d", i)
		}
	})
}

// TestSilenceOfTakeover: the document waits for the end of the client's outage, also if the boards are done before.
func TestSilenceOfTakeover(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		line := newScriptedLine()
		takeovers := newTestTakeovers(t, 2, line)
		line.who.Store(1)
		time.Sleep(10*time.Second + askEvery/2)
		line.who.Store(0)
		time.Sleep(time.Second)
		traces := map[int]console.Trace{2: takeovers.rise(2, 1, 10*time.Second+60*time.Millisecond, 1, 5)}
		takeovers.takeIn(traces, true)
		if last := takeovers.lastTakeover(); last.Number != 1 || len(last.SilentNs) != 0 || !takeovers.more {
			t.Errorf("while nobody answers: document %d, silent %v, again %t", last.Number, last.SilentNs, takeovers.more)
		}
		line.who.Store(2)
		time.Sleep(time.Second)
		synctest.Wait()
		takeovers.takeIn(traces, true)
		if last := takeovers.lastTakeover(); last.Number != 2 || len(last.SilentNs) != 2 || takeovers.more {
			t.Errorf("when somebody answers: document %d, silent %v, again %t", last.Number, last.SilentNs, takeovers.more)
		}
	})
}

// TestTooManySteps: the first and the last steps stay, and those of the rise, and it is said how many do not.
func TestTooManySteps(t *testing.T) {
	for _, test := range []struct{ before, after, omittedThere int }{
		{10, 10, 0}, {10, 10, 7}, {10, 2000, 0}, {2000, 10, 5}, {2000, 2000, 0}, {stepsShown, 1, 0}, {stepsShown - 2, 1, 0}, {0, stepsShown, 0},
	} {
		t.Run(fmt.Sprint(test), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				takeovers := newTestTakeovers(t, 3, newScriptedLine())
				trace := takeovers.rise(3, 2, time.Second, test.before, test.after)
				trace.Changes[0].Omitted = test.omittedThere
				takeovers.takeIn(map[int]console.Trace{3: trace}, true)
				last := takeovers.lastTakeover()
				all := test.before + 1 + test.after
				if n := len(last.Steps); n > stepsShown || n+last.Omitted != all+test.omittedThere || n < min(all, stepsShown/2) {
					t.Fatalf("%d steps of %d, %d omitted", n, all, last.Omitted)
				}
				want := []int64{int64(time.Second) - int64(test.before), int64(time.Second), int64(time.Second) + int64(test.after)}
				var got []int64
				for _, s := range last.Steps {
					if s.Role == console.RoleLeader || s.AtNs == want[0] || s.AtNs == want[2] {
						got = append(got, s.AtNs)
					}
				}
				if test.before == 0 {
					want = want[1:]
				}
				assert.Equal(t, want, got, "the first step, the rise and the last one")
			})
		})
	}
}
