package sim_test

import (
	"testing"
	"time"

	"topdog/election"
	"topdog/internal/lab/sim"
	"topdog/wire"
)

// heirsSettled returns a LAN on which n boards run heir, settled and with the last one leading.
func heirsSettled(t *testing.T, n int, witness bool) *sim.Sim {
	t.Helper()
	lan := sim.New(1, sim.Wire{Latency: 200 * time.Microsecond})
	lan.NoWitness = !witness
	for id := range n {
		lan.Add(election.Config{ID: wire.ID(id + 1), Priority: 100, Interval: interval, Algorithm: wire.AlgorithmHeir}).Start()
	}
	lan.Run(20*time.Second + 13*time.Millisecond)
	if lead, err := leader(lan.Boards()); err != nil || lead != lan.Boards()[n-1] {
		t.Fatalf("it has not settled: %v", err)
	}
	return lan
}

// each does something to all boards.
func each(lan *sim.Sim, do func(*sim.Board)) {
	for _, b := range lan.Boards() {
		do(b)
	}
}

// A board that starts beside a leader that stands still finds by its probe that the address answers, and claims
// nothing: nobody has ever heard of that leader, and its lease has no end.
func TestProbeFindsAFrozenHolder(t *testing.T) {
	lan := sim.New(1, sim.Wire{Latency: 200 * time.Microsecond})
	for id := wire.ID(1); id <= 2; id++ {
		lan.Add(election.Config{ID: id, Priority: 100, Interval: interval, Algorithm: wire.AlgorithmHeir})
	}
	one, two := lan.Boards()[0], lan.Boards()[1]
	one.Start()
	lan.Run(2*time.Second + interval/4) // no heartbeat is under way
	one.Freeze()
	two.Start()
	lan.Run(2 * time.Second)
	if !one.Holding() || two.Holding() {
		t.Errorf("the one that stands still has the address: %t; the one that came: %t", one.Holding(), two.Holding())
	}
	one.Thaw()
	lan.Run(2 * time.Second)
	if one.Holding() == two.Holding() {
		t.Errorf("afterwards, the one has it: %t; the other: %t", one.Holding(), two.Holding())
	}
}

// TestEvidence: what looks like the death of a leader and is none moves nothing, and
// whoever is dead, deaf or mute is replaced.
func TestEvidence(t *testing.T) {
	for _, test := range []struct {
		name      string
		boards    int
		noWitness bool
		play      func(lan *sim.Sim, one, two, three *sim.Board)
		moves     int
		vacant    time.Duration // at most
		holder    string
	}{
		{"the leader dies, and a witness answers", 3, false, func(lan *sim.Sim, _, _, three *sim.Board) {
			three.Crash()
			lan.Run(time.Second)
		}, 1, interval + 11*time.Millisecond, "2"},
		{"the leader dies, and a third board answers", 3, true, func(lan *sim.Sim, _, _, three *sim.Board) {
			three.Crash()
			lan.Run(time.Second)
		}, 1, interval + 11*time.Millisecond, "2"},
		{"one of two dies, and nothing else was ever heard", 2, true, func(lan *sim.Sim, _, two, _ *sim.Board) {
			two.Crash()
			lan.Run(time.Second)
		}, 1, interval + 11*time.Millisecond, "1"},
		{"the leader and the heir die, and a witness answers", 3, false, func(lan *sim.Sim, _, two, three *sim.Board) {
			two.Crash()
			three.Crash()
			lan.Run(time.Second)
		}, 1, 4 * interval, "1"},
		{"the heir is deaf when the leader dies", 3, false, func(lan *sim.Sim, _, two, three *sim.Board) {
			two.DropIn()
			lan.Run(5 * time.Second)
			three.Crash()
			lan.Run(5 * time.Second)
		}, 1, 3 * interval, "1"},
		{"nothing passes for 60 ms", 3, false, func(lan *sim.Sim, _, _, _ *sim.Board) {
			for range 40 {
				each(lan, (*sim.Board).Mute)
				lan.Run(60 * time.Millisecond)
				each(lan, (*sim.Board).Unmute)
				lan.Run(377 * time.Millisecond)
			}
		}, 0, 60 * time.Millisecond, "3"},
		{"multicast dies", 3, false, func(lan *sim.Sim, _, _, _ *sim.Board) {
			each(lan, func(b *sim.Board) { b.LoseMulticast(true) })
			lan.Run(time.Minute)
		}, 0, 0, "3"},
		{"multicast to one follower dies", 3, false, func(lan *sim.Sim, one, _, _ *sim.Board) {
			one.LoseMulticast(true)
			lan.Run(time.Minute)
		}, 0, 0, "3"},
		{"the leader dies where multicast is dead", 3, false, func(lan *sim.Sim, _, _, three *sim.Board) {
			each(lan, func(b *sim.Board) { b.LoseMulticast(true) })
			lan.Run(time.Minute)
			three.Crash()
			lan.Run(time.Second)
		}, 1, interval + 11*time.Millisecond, "2"},
		{"a frozen board's address falls silent", 3, false, func(lan *sim.Sim, _, _, three *sim.Board) {
			three.Freeze()
			lan.Run(5 * time.Second)
			three.Thaw()
			lan.Run(5 * time.Second)
		}, 1, 5 * time.Millisecond, "2"},
		{"the leader is deaf", 3, false, func(lan *sim.Sim, _, _, three *sim.Board) {
			three.DropIn()
			lan.Run(1300 * time.Millisecond)
			lan.Run(time.Minute)
			three.Unmute()
			lan.Run(time.Second)
		}, 1, 1500 * time.Millisecond, "2"},
		{"the leader is mute", 3, false, func(lan *sim.Sim, _, _, three *sim.Board) {
			three.DropOut()
			lan.Run(time.Minute)
			three.Unmute()
			lan.Run(time.Second)
		}, 1, interval + 11*time.Millisecond, "2"},
		{"the leader of two is deaf, and a witness was heard", 2, false, func(lan *sim.Sim, _, two, _ *sim.Board) {
			lan.Run(5 * time.Second)
			two.DropIn()
			lan.Run(10 * time.Second)
		}, 1, 1500 * time.Millisecond, "1"},
		{"all followers of a leader die", 3, false, func(lan *sim.Sim, one, two, _ *sim.Board) {
			one.Crash()
			two.Crash()
			lan.Run(time.Minute)
		}, 0, 0, "3"},
	} {
		t.Run(test.name, func(t *testing.T) {
			lan := heirsSettled(t, test.boards, !test.noWitness)
			since := lan.Now()
			var three *sim.Board
			if test.boards > 2 {
				three = lan.Boards()[2]
			}
			test.play(lan, lan.Boards()[0], lan.Boards()[1], three)
			sum := lan.Summarise(since)
			reach := lan.Reach(since)
			if sum.Moves != test.moves || reach.Nowhere > test.vacant || reach.Twice > 0 {
				t.Errorf("%d moves, want %d; the address could not be reached for %v, want at most %v; at two boards it could for %v",
					sum.Moves, test.moves, reach.Nowhere, test.vacant, reach.Twice)
			}
			if got := labels(sum.Holders); len(got) != 1 || got[0] != test.holder {
				t.Errorf("the address is at %v, want %s", got, test.holder)
			}
		})
	}
}

// TestSwitchReboots: all links go down and come back, and the ports forward nothing yet.
// Nobody claims before they do, and then one board, soon.
func TestSwitchReboots(t *testing.T) {
	for _, dead := range []time.Duration{5 * time.Second, 35 * time.Second} {
		t.Run(dead.String(), func(t *testing.T) {
			lan := heirsSettled(t, 3, true)
			since := lan.Now()
			each(lan, (*sim.Board).Mute)
			each(lan, (*sim.Board).Pull)
			lan.Run(2 * time.Second)
			each(lan, (*sim.Board).Plug)
			lan.Run(dead)
			if holders := lan.Summarise(since).Holders; len(holders) > 0 {
				t.Errorf("%v holds an address on a port that forwards nothing", labels(holders))
			}
			each(lan, (*sim.Board).Unmute)
			lan.Run(500 * time.Millisecond)
			if _, err := leader(lan.Boards()); err != nil {
				t.Error(err)
			}
			if d := lan.Summarise(since).Doubled; d > 0 {
				t.Errorf("two boards held the address for %v", d)
			}
		})
	}
}

// TestBroadcastInstead: boards that get no multicast say so, and hear their leader by broadcast
// soon, without asking for it any more. When multicast is back, broadcast ends.
func TestBroadcastInstead(t *testing.T) {
	lan := heirsSettled(t, 3, true)
	broadcasts := 0
	lan.Broadcast = func(*wire.Message) { broadcasts++ }
	elections := func(d time.Duration) int {
		lan.ResetCounts()
		lan.Run(d)
		return lan.Packets[wire.TypeElection]
	}
	each(lan, func(b *sim.Board) { b.LoseMulticast(true) })
	if n := elections(1500 * time.Millisecond); n == 0 || n > 60 {
		t.Errorf("%d questions in the first seconds without multicast", n)
	}
	if n := elections(time.Minute); n > 0 {
		t.Errorf("%d questions in the minute after it", n)
	}
	if broadcasts < 600 {
		t.Errorf("%d broadcasts, of 610 heartbeats", broadcasts)
	}
	each(lan, func(b *sim.Board) { b.LoseMulticast(false) })
	lan.Run(3 * time.Second)
	broadcasts = 0
	lan.Run(time.Minute)
	if broadcasts > 12 {
		t.Errorf("%d broadcasts although multicast is back", broadcasts)
	}
}

// TestStartWithoutMulticast: boards find each other by broadcast.
func TestStartWithoutMulticast(t *testing.T) {
	lan := sim.New(1, sim.Wire{Latency: 200 * time.Microsecond})
	for id := range wire.ID(3) {
		b := lan.Add(election.Config{ID: id + 1, Priority: 100, Interval: interval, Algorithm: wire.AlgorithmHeir})
		b.LoseMulticast(true)
		b.Start()
	}
	lan.Run(time.Second)
	if _, err := leader(lan.Boards()); err != nil {
		t.Fatal(err)
	}
	since := lan.Now()
	lan.Run(time.Minute)
	if sum := lan.Summarise(0); sum.Doubled > 0 || lan.Summarise(since).Moves > 0 {
		t.Errorf("two boards held the address for %v, and it moved %d times", sum.Doubled, lan.Summarise(since).Moves)
	}
}

// TestHealing: when the LAN has been cut and is whole again, the address stays with whom more
// boards have followed since the younger leader led, and with the younger one if as many have.
func TestHealing(t *testing.T) {
	for _, test := range []struct {
		name   string
		boards int
		apart  []wire.ID // whom the others are cut off from
		cut    time.Duration
		holder string
	}{
		{"the leader alone, for 300 ms", 3, []wire.ID{3}, 300 * time.Millisecond, "2"},
		{"the leader alone, for 3 s", 3, []wire.ID{3}, 3 * time.Second, "2"},
		{"the leader of two, for 300 ms", 2, []wire.ID{2}, 300 * time.Millisecond, "1"},
		{"the leader of two, for 3 s", 2, []wire.ID{2}, 3 * time.Second, "1"},
		{"the larger side has the leader", 5, []wire.ID{3, 4, 5}, 3 * time.Second, "5"},
		{"the smaller side has the leader", 5, []wire.ID{4, 5}, 3 * time.Second, "3"},
		{"a lone follower", 3, []wire.ID{1}, 3 * time.Second, "3"},
	} {
		t.Run(test.name, func(t *testing.T) {
			lan := heirsSettled(t, test.boards, true)
			lan.Partition(test.apart)
			lan.Run(test.cut)
			held := len(lan.Summarise(0).Holders)
			lan.Heal()
			healed := lan.Now()
			lan.Run(5 * time.Second)
			sum := lan.Summarise(healed)
			if got := labels(sum.Holders); len(got) != 1 || got[0] != test.holder {
				t.Errorf("the address is at %v, want %s", got, test.holder)
			}
			if _, err := leader(lan.Boards()); err != nil {
				t.Error(err)
			}
			// Nobody speaks for up to an interval, and then it takes two messages.
			if sum.Doubled > interval+time.Millisecond || sum.Vacant > 0 || sum.Moves >= held {
				t.Errorf("since it healed: two boards held the address for %v, nobody for %v, and it moved %d times, of %d holders",
					sum.Doubled, sum.Vacant, sum.Moves, held)
			}
		})
	}
}
