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

// heirsSettled returns a LAN on which n boards run heir, settled and with the last one leading. A witness answers, or none.
func heirsSettled(t *testing.T, n int, answers bool) *sim.Sim {
	t.Helper()
	lan := crowd(1, quick, n, wire.AlgorithmHeir)
	witness(lan, answers)
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
			wantCourse(t, lan, test.steps, test.moves, test.vacant, test.holder)
		})
	}
}

// wantCourse plays what happens to a group. It wants so many moves, so much time at most in which the address cannot be reached, never
// two boards at which it can, and this holder in the end.
func wantCourse(t *testing.T, lan *sim.Sim, steps string, moves int, vacant time.Duration, last string) {
	t.Helper()
	since := lan.Now()
	play(t, lan, steps)
	sum := lan.Summarise(since)
	if sum.Moves != moves || sum.Nowhere > vacant || sum.Twice > 0 {
		t.Errorf("%d moves, want %d; the address could not be reached for %v, want at most %v; at two boards it could for %v",
			sum.Moves, moves, sum.Nowhere, vacant, sum.Twice)
	}
	assert.Is(t, last, holder(t, lan).Label, "the holder")
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
	lan.Trace = func(e sim.Event) {
		if e.Broadcast {
			broadcasts++
		}
	}
	elections := func(d time.Duration) int {
		lan.ResetCounts()
		lan.Run(d)
		return lan.Counts.Type(wire.TypeElection).Packets
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

// TestHealing: when the LAN has been cut, each part has settled on a leader soon. When it is whole again, the address stays
// with whom more boards have followed since the younger leader led, and with the younger one if as many have.
func TestHealing(t *testing.T) {
	const short, long = 300 * time.Millisecond, 3 * time.Second
	for _, test := range []struct {
		name    string
		boards  int
		parts   string
		cut     time.Duration
		holders []string // of the parts
		holder  string   // in the end
	}{
		{"the leader alone, for a moment", 3, "3", short, []string{"2", "3"}, "2"},
		{"the leader alone", 3, "3", long, []string{"2", "3"}, "2"},
		{"the leader of two, for a moment", 2, "2", short, []string{"1", "2"}, "1"},
		{"the leader of two", 2, "2", long, []string{"1", "2"}, "1"},
		{"the larger side has the leader", 5, "3,4,5", long, []string{"2", "5"}, "5"},
		{"the smaller side has the leader", 5, "4,5", long, []string{"3", "5"}, "3"},
		{"a lone follower", 3, "1", long, []string{"1", "3"}, "3"},
		{"nobody has followed the first leader, and the others are as many", 5, "1,2 3,4", long, []string{"2", "4", "5"}, "4"},
	} {
		t.Run(test.name, func(t *testing.T) {
			lan := heirsSettled(t, test.boards, true)
			w := lan.Watch()
			play(t, lan, fmt.Sprintf("partition %s; run %v", test.parts, test.cut))
			assert.Equal(t, test.holders, labels(lan.Summarise(0).Holders), "the holders of the parts")
			if _, ok := w.Settled(); !ok {
				t.Error("the parts have not settled, each on its own leader")
			}
			healed := lan.Now()
			play(t, lan, "heal; run 5s")
			lead, err := leader(lan.Boards())
			assert.NoError(t, err)
			assert.Is(t, test.holder, lead.Label, "the holder")
			// Nobody speaks for up to an interval, and then it takes two messages.
			sum := lan.Summarise(healed)
			if sum.Doubled > interval+time.Millisecond || sum.Vacant > 0 || sum.Moves >= len(test.holders) {
				t.Errorf("since it healed: two boards held the address for %v, nobody for %v, and it moved %d times",
					sum.Doubled, sum.Vacant, sum.Moves)
			}
		})
	}
}
