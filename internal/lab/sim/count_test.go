package sim_test

import (
	"fmt"
	"regexp"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"topdog/election"
	"topdog/internal/lab/sim"
	"topdog/wire"
)

// tallies returns what is no routine, by the names of the kinds.
func tallies(c *sim.Counts) map[string]sim.Tally {
	all := make(map[string]sim.Tally)
	for _, k := range c.Kinds() {
		if !k.Routine() {
			all[k.String()] = c[k]
		}
	}
	return all
}

// crashNoticedBy crashes the leader just after a heartbeat, so that one board
// alone notices, and lets the election run.
func crashNoticedBy(lan *sim.Sim, leader, by string) *sim.Watch {
	var w *sim.Watch
	lan.Board(leader).AfterHeartbeat(func() {
		lan.ResetCounts()
		w = lan.Watch()
		lan.Board(leader).Crash()
		lan.Board(by).Suspect()
	})
	lan.Run(5 * time.Second)
	return w
}

// TestCounts counts an election as the literature does: with the dead
// coordinator among the addressees of ELECTION.
func TestCounts(t *testing.T) {
	for _, fanout := range []election.Fanout{election.FanoutMulticast, election.FanoutUnicast} {
		t.Run(fanout.String(), func(t *testing.T) {
			lan := sim.New(1, quick)
			for id := range wire.ID(10) {
				cfg := config(id + 1)
				cfg.Algorithm, cfg.Fanout = wire.AlgorithmBully, fanout
				lan.Add(cfg).Start()
			}
			lan.Run(3 * time.Second)
			crashNoticedBy(lan, "10", "6")
			// Process 5 of 0…9 notices: 24, as in figure 2 of Kuang and others. They do
			// not send the victory to the dead one.
			got := tallies(&lan.Counts)
			want := map[string]sim.Tally{
				"ELECTION": {Packets: 4, Live: 6, Dead: 4}, "ANSWER": {Packets: 6, Live: 6}, "COORDINATOR": {Packets: 1, Live: 8, Dead: 1},
			}
			if fanout == election.FanoutUnicast {
				want["ELECTION"] = sim.Tally{Packets: 10, Live: 6, Dead: 4}
				want["COORDINATOR"] = sim.Tally{Packets: 9, Live: 8, Dead: 1}
				want["HEARTBEAT in reply"] = sim.Tally{Packets: 1, Live: 8, Dead: 1} // for those who know of nobody
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("want -, got +:\n%s", diff)
			}
		})
	}
}

// TestCountsDeath counts heartbeats to boards in several states.
func TestCountsDeath(t *testing.T) {
	for name, do := range map[string]struct {
		do   func(b *sim.Board)
		dead int // of the ten heartbeats to that board in a second
	}{
		"lives":   {func(*sim.Board) {}, 0},
		"crashed": {(*sim.Board).Crash, 10},
		"pulled":  {(*sim.Board).Pull, 10},
		"stopped": {(*sim.Board).Stop, 10},
		"frozen":  {(*sim.Board).Freeze, 0},
		"unheard": {func(b *sim.Board) { b.Deafen(2) }, 0},
		"back":    {func(b *sim.Board) { b.Crash(); b.Pull(); b.Start(); b.Plug() }, 0},
	} {
		lan := group(t, 3, wire.AlgorithmHeir, quick)
		do.do(lan.Board("1"))
		lan.ResetCounts()
		lan.Run(time.Second)
		got := lan.Counts.Of(sim.Kind(wire.TypeHeartbeat))
		if want := (sim.Tally{Packets: 10, Live: 20 - do.dead, Dead: do.dead}); got != want {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
		if got.Packets != lan.Packets[wire.TypeHeartbeat]-lan.Counts.Of(sim.KindReply, sim.KindTimingReply).Packets {
			t.Errorf("%s: Packets says %d", name, lan.Packets[wire.TypeHeartbeat])
		}
	}
}

// TestCountsAudience counts a multicast that concerns some boards only.
func TestCountsAudience(t *testing.T) {
	lan := group(t, 4, wire.AlgorithmBully, quick)
	lan.ResetCounts()
	lan.Board("2").Suspect() // in vain
	lan.Run(time.Second)
	got := lan.Counts.Of(sim.Kind(wire.TypeElection))
	if got.Live != 2+1 || got.Dead != 0 {
		t.Errorf("an election of board 2 and of board 3, which it calls upon: %v; want 2 and 1 messages", got)
	}
}

func TestKinds(t *testing.T) {
	lan := group(t, 3, wire.AlgorithmHeir, quick)
	lan.ResetCounts()
	lan.Board("1").Crash()
	lan.Run(time.Second)
	lan.Board("1").Start() // asks who leads, is answered, and times the way
	lan.Run(2 * time.Second)
	lan.Board("1").Reprioritise(200, true) // asks for a handover
	lan.Run(5 * time.Second)
	for kind, want := range map[sim.Kind]sim.Tally{
		sim.Kind(wire.TypeQuery): {Packets: 1, Live: 2},
		sim.KindReply:            {Packets: 1, Live: 1},
		sim.KindHandover:         {Packets: 1, Live: 1},
	} {
		if got := lan.Counts[kind]; got != want {
			t.Errorf("%v: %v, want %v", kind, got, want)
		}
	}
	query, reply := lan.Counts[sim.KindTimingQuery], lan.Counts[sim.KindTimingReply]
	if query.Packets == 0 || query != reply {
		t.Errorf("timing: %v, answered by %v", query, reply)
	}
	if got := lan.Counts.Type(wire.TypeQuery).Packets; got != lan.Packets[wire.TypeQuery] {
		t.Errorf("all kinds of QUERY together are %d, want %d", got, lan.Packets[wire.TypeQuery])
	}
	lan.ResetCounts()
	if len(lan.Counts.Kinds()) != 0 || len(lan.Packets) != 0 {
		t.Errorf("after a reset there is %v, %v", lan.Counts.Kinds(), lan.Packets)
	}
}

func TestWatch(t *testing.T) {
	lan := group(t, 4, wire.AlgorithmHeir, quick)
	lan.Run(37 * time.Millisecond)
	var trace []string
	since := lan.Now()
	lan.Trace = func(e sim.Event) {
		switch {
		case e.Message != nil && e.Message.Type == wire.TypeCoordinator:
			trace = append(trace, fmt.Sprintf("proclaimed %v", e.At-since))
		case e.What == "takes the address":
			trace = append(trace, fmt.Sprintf("taken %v by %s", e.At-since, e.Board.Label))
		case e.Kind == sim.EventChange && e.Change.NewLeader == 2 && e.Change.To == election.Follower:
			trace = append(trace, fmt.Sprintf("agreed %v", e.At-since))
		}
	}
	w := lan.Watch()
	lan.Board("3").Crash() // at the same time, and before the leader: no agreement in between counts
	lan.Board("4").Crash()
	lan.Run(2 * time.Second)
	var got []string
	if d, ok := w.Acquired(); ok {
		got = append(got, fmt.Sprintf("taken %v by %s", d, w.Leader().Label))
	}
	if d, ok := w.Proclaimed(); ok {
		got = append(got, fmt.Sprintf("proclaimed %v", d))
	}
	if d, ok := w.Agreed(); ok {
		got = append(got, fmt.Sprintf("agreed %v", d))
	}
	if diff := cmp.Diff(trace, got); diff != "" {
		t.Errorf("as the trace has it -, as the watch has it +:\n%s", diff)
	}
	if agreed, _ := w.Agreed(); agreed == 0 {
		t.Error("they agreed at once")
	}
}

// TestWatchSettled looks at an agreement that ends.
func TestWatchSettled(t *testing.T) {
	lan := group(t, 3, wire.AlgorithmHeir, quick)
	w := lan.Watch()
	lan.Board("3").Crash()
	lan.Run(time.Second)
	first, ok := w.Agreed()
	if settled, also := w.Settled(); !ok || !also || settled != first {
		t.Fatalf("agreed after %v, %v; settled after %v, %v; want the same", first, ok, settled, also)
	}
	lan.Board("2").Crash()
	if _, ok := w.Settled(); ok {
		t.Error("they still agree, although the leader has crashed")
	}
	lan.Run(time.Second)
	if again, ok := w.Settled(); !ok || again <= time.Second {
		t.Errorf("settled after %v, %v; want more than a second", again, ok)
	}
	if still, _ := w.Agreed(); still != first {
		t.Errorf("agreed for the first time after %v, before that after %v", still, first)
	}
	w.Stop()
	lan.Board("1").Crash()
	if _, ok := w.Settled(); !ok {
		t.Error("a watch that was stopped has seen a crash")
	}
}

// TestKindIdentifiers holds that a program can tell the kinds of a JSON report apart.
func TestKindIdentifiers(t *testing.T) {
	identifier := regexp.MustCompile(`^[A-Z]+(_[A-Z]+)*$`)
	seen := make(map[string]sim.Kind)
	for k := sim.Kind(wire.TypeHeartbeat); k <= sim.KindLook; k++ {
		name := k.Identifier()
		if !identifier.MatchString(name) {
			t.Errorf("%v is called %q", k, name)
		}
		if other, twice := seen[name]; twice {
			t.Errorf("%v and %v are both called %q", other, k, name)
		}
		seen[name] = k
	}
}
