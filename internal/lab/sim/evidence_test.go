package sim_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"topdog/internal/lab/assert"
	"topdog/internal/lab/sim"
	"topdog/wire"
)

// The tests in this file hold what heir makes of what it hears, and of what it does not hear.

// heirsSettled returns a LAN on which n boards run heir, settled and with the last one leading.
func heirsSettled(t *testing.T, n int, witness bool) *sim.Sim {
	t.Helper()
	lan := crowd(1, quick, n, wire.AlgorithmHeir)
	lan.NoWitness = !witness
	lan.Run(20*time.Second + 13*time.Millisecond)
	leads(t, lan.Boards(), wire.ID(n))
	return lan
}

// TestEvidence: what looks like the death of a leader and is none moves nothing, and
// whoever is dead, deaf or mute is replaced.
func TestEvidence(t *testing.T) {
	const (
		noticed = interval + 11*time.Millisecond
		deaf    = 1500 * time.Millisecond // until it finds out
	)
	for _, test := range []struct {
		name      string
		boards    int
		noWitness bool
		steps     string
		moves     int
		vacant    time.Duration // at most
		holder    string
	}{
		{"the leader dies, and a witness answers", 3, false, "crash 3; run 1s", 1, noticed, "2"},
		{"the leader dies, and a third board answers", 3, true, "crash 3; run 1s", 1, noticed, "2"},
		{"one of two dies, and nothing else was ever heard", 2, true, "crash 2; run 1s", 1, noticed, "1"},
		{"the leader and the heir die, and a witness answers", 3, false, "crash 2 3; run 1s", 1, 4 * interval, "1"},
		{"the heir is deaf when the leader dies", 3, false, "deaf 2; run 5s; crash 3; run 5s", 1, 3 * interval, "1"},
		{"nothing passes for 60 ms", 3, false, strings.Repeat("mute 1 2 3; run 60ms; unmute 1 2 3; run 377ms;", 40), 0, 60 * time.Millisecond, "3"},
		{"multicast dies", 3, false, "no-multicast 1 2 3; run 1m", 0, 0, "3"},
		{"multicast to one follower dies", 3, false, "no-multicast 1; run 1m", 0, 0, "3"},
		{"the leader dies where multicast is dead", 3, false, "no-multicast 1 2 3; run 1m; crash 3; run 1s", 1, noticed, "2"},
		{"a frozen board's address falls silent", 3, false, "freeze 3; run 5s; thaw 3; run 5s", 1, 5 * time.Millisecond, "2"},
		{"the leader is deaf", 3, false, "deaf 3; run 61300ms; unmute 3; run 1s", 1, deaf, "2"},
		{"the leader is mute", 3, false, "unheard 3; run 1m; unmute 3; run 1s", 1, noticed, "2"},
		{"the leader of two is deaf, and a witness was heard", 2, false, "run 5s; deaf 2; run 10s", 1, deaf, "1"},
		{"all followers of a leader die", 3, false, "crash 1 2; run 1m", 0, 0, "3"},
	} {
		t.Run(test.name, func(t *testing.T) {
			lan := heirsSettled(t, test.boards, !test.noWitness)
			since := lan.Now()
			play(t, lan, test.steps)
			reach := lan.Reach(since)
			if moves := lan.Summarise(since).Moves; moves != test.moves || reach.Nowhere > test.vacant || reach.Twice > 0 {
				t.Errorf("%d moves, want %d; the address could not be reached for %v, want at most %v; at two boards it could for %v",
					moves, test.moves, reach.Nowhere, test.vacant, reach.Twice)
			}
			assert.Is(t, test.holder, holder(t, lan).Label, "the holder")
		})
	}
}

// A board that starts beside a leader that stands still finds by its probe that the address answers, and claims
// nothing: nobody has ever heard of that leader, and its lease has no end.
func TestProbeFindsAFrozenHolder(t *testing.T) {
	lan := crowd(1, quick, 1, wire.AlgorithmHeir)
	lan.Add(config(2, wire.AlgorithmHeir))
	play(t, lan, "run 2025ms; freeze 1; start 2; run 2s") // no heartbeat is under way
	assert.Is(t, "1", holder(t, lan).Label, "the holder")
	play(t, lan, "thaw 1; run 2s")
	holder(t, lan)
}

// TestSwitchReboots: all links go down and come back, and the ports forward nothing yet.
// Nobody claims before they do, and then one board, soon.
func TestSwitchReboots(t *testing.T) {
	for _, dead := range []time.Duration{5 * time.Second, 35 * time.Second} {
		t.Run(dead.String(), func(t *testing.T) {
			lan := heirsSettled(t, 3, true)
			since := lan.Now()
			play(t, lan, fmt.Sprintf("mute 1 2 3; pull 1 2 3; run 2s; plug 1 2 3; run %v", dead))
			assert.Equal(t, []string(nil), labels(lan.Summarise(since).Holders), "holders on ports that forward nothing")
			play(t, lan, "unmute 1 2 3; run 500ms")
			_, err := leader(lan.Boards())
			assert.NoError(t, err)
			assert.Is(t, 0, lan.Summarise(since).Doubled, "two holders")
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
	play(t, lan, "no-multicast 1 2 3")
	if n := elections(1500 * time.Millisecond); n == 0 || n > 60 {
		t.Errorf("%d questions in the first seconds without multicast", n)
	}
	assert.Is(t, 0, elections(time.Minute), "questions in the minute after it")
	if broadcasts < 600 {
		t.Errorf("%d broadcasts, of 610 heartbeats", broadcasts)
	}
	play(t, lan, "multicast 1 2 3; run 3s")
	broadcasts = 0
	lan.Run(time.Minute)
	if broadcasts > 12 {
		t.Errorf("%d broadcasts although multicast is back", broadcasts)
	}
}

// TestStartWithoutMulticast: boards find each other by broadcast.
func TestStartWithoutMulticast(t *testing.T) {
	lan := sim.New(1, quick)
	for id := range wire.ID(3) {
		lan.Add(config(id+1, wire.AlgorithmHeir))
	}
	play(t, lan, "no-multicast 1 2 3; start 1 2 3; run 1s")
	_, err := leader(lan.Boards())
	assert.NoError(t, err)
	since := lan.Now()
	lan.Run(time.Minute)
	assert.Is(t, 0, lan.Summarise(0).Doubled, "two holders")
	assert.Is(t, 0, lan.Summarise(since).Moves, "moves")
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
			lead, err := leader(lan.Boards())
			assert.NoError(t, err)
			assert.Is(t, test.holder, lead.Label, "the holder")
			// Nobody speaks for up to an interval, and then it takes two messages.
			if sum := lan.Summarise(healed); sum.Doubled > interval+time.Millisecond || sum.Vacant > 0 || sum.Moves >= held {
				t.Errorf("since it healed: two boards held the address for %v, nobody for %v, and it moved %d times, of %d holders",
					sum.Doubled, sum.Vacant, sum.Moves, held)
			}
		})
	}
}
