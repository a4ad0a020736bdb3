package sim_test

import (
	"fmt"
	"regexp"
	"testing"
	"time"

	"topdog/election"
	"topdog/internal/lab/assert"
	"topdog/internal/lab/sim"
	"topdog/wire"
)

// TestCountsDeath counts heartbeats to boards in several states.
func TestCountsDeath(t *testing.T) {
	for name, do := range map[string]struct {
		do   func(*sim.Sim, *sim.Board)
		dead int // of the ten heartbeats to that board in a second
	}{
		"lives":   {of(func(*sim.Board) {}), 0},
		"crashed": {of((*sim.Board).Crash), 10},
		"pulled":  {of((*sim.Board).Pull), 10},
		"stopped": {of((*sim.Board).Stop), 10},
		"frozen":  {of((*sim.Board).Freeze), 0},
		"unheard": {func(lan *sim.Sim, b *sim.Board) { deafen(lan, b, 2) }, 0},
		"back":    {of(func(b *sim.Board) { b.Crash(); b.Pull(); b.Start(); b.Plug() }), 0},
	} {
		lan := settled(t, quick, 3, wire.AlgorithmHeir)
		do.do(lan, lan.Board("1"))
		lan.ResetCounts()
		lan.Run(time.Second)
		got := lan.Counts[sim.Kind(wire.TypeHeartbeat)]
		assert.Is(t, sim.Tally{Packets: 10, Live: 20 - do.dead, Dead: do.dead}, got, "%s", name)
		replies := lan.Counts[sim.KindReply].Packets + lan.Counts[sim.KindTimingReply].Packets
		assert.Is(t, got.Packets+replies, lan.Counts.Type(wire.TypeHeartbeat).Packets, "%s: Packets", name)
	}
}

// TestCountsAudience counts a multicast that concerns some boards only.
func TestCountsAudience(t *testing.T) {
	lan := settled(t, quick, 4, wire.AlgorithmBully)
	lan.ResetCounts()
	lan.Board("2").Suspect() // in vain
	lan.Run(time.Second)
	got := lan.Counts[sim.Kind(wire.TypeElection)]
	if got.Live != 2+1 || got.Dead != 0 { // of board 2, and of board 3, which it calls upon
		t.Errorf("ELECTION: %v; want 2 and 1 messages", got)
	}
}

func TestKinds(t *testing.T) {
	lan := settled(t, quick, 3, wire.AlgorithmHeir)
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
		assert.Is(t, want, lan.Counts[kind], "%v", kind)
	}
	query, reply := lan.Counts[sim.KindTimingQuery], lan.Counts[sim.KindTimingReply]
	if query.Packets == 0 || query != reply {
		t.Errorf("timing: %v, answered by %v", query, reply)
	}
	together := lan.Counts[wire.TypeQuery].Packets + lan.Counts[sim.KindHandover].Packets + query.Packets
	assert.Is(t, together, lan.Counts.Type(wire.TypeQuery).Packets, "all kinds of QUERY together")
	lan.ResetCounts()
	if len(lan.Counts.Kinds()) != 0 {
		t.Errorf("after a reset there is %v", lan.Counts.Kinds())
	}
}

func TestWatch(t *testing.T) {
	lan := settled(t, quick, 4, wire.AlgorithmHeir)
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
	assert.Equal(t, trace, got, "the trace, and the watch")
	if agreed, _ := w.Agreed(); agreed == 0 {
		t.Error("they agreed at once")
	}
}

// TestWatchSettled looks at an agreement that ends.
func TestWatchSettled(t *testing.T) {
	lan := settled(t, quick, 3, wire.AlgorithmHeir)
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
	now := lan.Now()
	if !lan.RunUntil(func() bool { return true }, time.Second) || lan.Now() != now {
		t.Error("time passes until what is so already")
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
