package sim_test

import (
	"strings"
	"testing"
	"time"

	"topdog/election"
	"topdog/internal/lab/assert"
	"topdog/internal/lab/scene"
	"topdog/internal/lab/sim"
	"topdog/wire"
)

// TestPartitionDropsWhatIsUnderWay holds that what was sent before does not arrive in between.
func TestPartitionDropsWhatIsUnderWay(t *testing.T) {
	lan := settled(t, sim.Wire{Delay: sim.Constant(10 * time.Millisecond)}, 3, wire.AlgorithmHeir)
	fates := make(map[sim.Fate]int)
	var sent election.Instant
	lan.Board("3").AfterHeartbeat(func() { sent = lan.Now() })
	lan.RunUntil(func() bool { return sent > 0 }, time.Second)
	lan.Run(interval - 5*time.Millisecond) // the next heartbeat is on its way
	new(parts).split(lan, []wire.ID{3})
	lan.Arrivals = func(a sim.Arrival) {
		if a.From == lan.Board("3") {
			fates[a.Fate]++
		}
	}
	lan.Run(9 * time.Millisecond)
	if fates[sim.FateCut] != 2 || fates[sim.FateArrived] != 0 {
		t.Errorf("of 2 copies under way %d were cut off and %d arrived", fates[sim.FateCut], fates[sim.FateArrived])
	}
}

func TestCut(t *testing.T) {
	lan := settled(t, quick, 3, wire.AlgorithmHeir)
	lan.Filter([]scene.Filter{{From: []int{3}, To: []int{1, 2}}}, "")
	w := lan.Watch()
	heard := make(map[string]int)
	lan.Arrivals = func(a sim.Arrival) {
		if a.Fate == sim.FateArrived {
			heard[a.From.Label+">"+a.To.Label]++
		}
	}
	lan.Run(time.Second)
	for _, way := range []string{"3>1", "3>2"} {
		if heard[way] > 0 {
			t.Errorf("%d datagrams went the way %s", heard[way], way)
		}
	}
	for _, way := range []string{"1>3", "2>3", "1>2", "2>1"} {
		if heard[way] == 0 {
			t.Errorf("none went the way %s", way)
		}
	}
	if b := w.Leader(); b == nil || b.Label != "2" {
		t.Errorf("board %v took the address, want 2, since nobody hears 3", b)
	}
}

// TestFilterOfSender loses a part of what one board sends, by chance or by kind; what the others send arrives.
func TestFilterOfSender(t *testing.T) {
	for name, test := range map[string]struct {
		filter scene.Filter
		fate   sim.Fate
		least  float64 // how much of it has that fate
		most   float64
	}{
		"a share":       {scene.Filter{From: []int{3}, Share: 0.5}, sim.FateLost, 0.4, 0.6},
		"its multicast": {scene.Filter{From: []int{3}, Multicast: true}, sim.FateCut, 0.5, 1}, // and neither broadcasts nor replies
	} {
		lan := settled(t, quick, 3, wire.AlgorithmHeir)
		lan.Filter([]scene.Filter{test.filter}, name)
		fates := make(map[string]map[sim.Fate]int)
		for _, b := range lan.Boards() {
			fates[b.Label] = make(map[sim.Fate]int)
		}
		lan.Arrivals = func(a sim.Arrival) { fates[a.From.Label][a.Fate]++ }
		lan.Run(time.Minute)
		of := fates["3"]
		share := float64(of[test.fate]) / float64(of[test.fate]+of[sim.FateArrived])
		if share < test.least || share > test.most || of[sim.FateArrived] == 0 {
			t.Errorf("%s: the fates are %v", name, of)
		}
		if other := fates["1"]; other[test.fate] > 0 || other[sim.FateArrived] == 0 {
			t.Errorf("%s: those of another board are %v", name, other)
		}
	}
}

func TestReorder(t *testing.T) {
	w := quick
	w.Reorder, w.HoldBack = 0.1, 150*time.Millisecond
	lan := sim.New(1, w)
	late, copies := 0, 0
	newest := make(map[[2]string]uint64)
	overtaken := 0
	lan.Arrivals = func(a sim.Arrival) {
		copies++
		if took := a.At - a.Sent; took == latency+w.HoldBack {
			late++
		} else if took != latency {
			t.Errorf("one took %v", took)
		}
		way := [2]string{a.From.Label, a.To.Label}
		if a.Number < newest[way] {
			overtaken++
		}
		newest[way] = max(newest[way], a.Number)
	}
	for id := range wire.ID(3) {
		lan.Add(config(id+1, wire.AlgorithmHeir)).Start()
	}
	lan.Run(5 * time.Minute)
	if share := float64(late) / float64(copies); share < 0.08 || share > 0.12 {
		t.Errorf("%d of %d were held back, want one in ten", late, copies)
	}
	if overtaken < late/2 {
		t.Errorf("of %d that were held back only %d were overtaken", late, overtaken)
	}
}

func TestDuplicates(t *testing.T) {
	w := quick
	w.Duplicate = 0.5
	lan := sim.New(1, w)
	fates := make(map[sim.Fate]int)
	lan.Arrivals = func(a sim.Arrival) { fates[a.Fate]++ }
	for id := range wire.ID(3) {
		lan.Add(config(id+1, wire.AlgorithmHeir)).Start()
	}
	lan.Run(time.Minute)
	if share := float64(fates[sim.FateReplay]) / float64(fates[sim.FateArrived]); share < 0.4 || share > 0.6 {
		t.Errorf("the fates are %v: want one duplicate for two that are none", fates)
	}
}

// TestOrigins holds that boards do nothing else when their clocks show something
// else. Nothing may assume that the clocks of two boards agree.
func TestOrigins(t *testing.T) {
	run := func(origins ...time.Duration) string {
		lan := sim.New(3, sim.Wire{Delay: sim.Exponential(0, 2*time.Millisecond), Loss: 0.1})
		told := story(lan)
		for i, origin := range origins {
			b := lan.Add(config(wire.ID(i+1), wire.AlgorithmHeir))
			b.Clock.Origin = origin
			b.Start()
		}
		play(t, lan, "run 5s; crash 3; freeze 2; run 1s; thaw 2; start 3; run 5s")
		return told.String()
	}
	same, apart := run(0, 0, 0), run(7*time.Second, 3000*time.Hour, 12345*time.Microsecond)
	if same != apart {
		t.Error("with other clocks the boards do something else")
	}
	if strings.Count(same, "takes the address") < 2 {
		t.Error("nothing happened")
	}
}

// TestDrift lets clocks go very wrong. A leader whose clock is fast sends more
// heartbeats, and nobody minds.
func TestDrift(t *testing.T) {
	for _, tc := range []struct {
		ppm  [3]int
		want int
	}{
		{[3]int{0, 0, 0}, 6000},
		{[3]int{-10_000, 0, 10_000}, 6060},
		{[3]int{10_000, 0, -10_000}, 5940},
	} {
		lan := sim.New(1, quick)
		for i, ppm := range tc.ppm {
			b := lan.Add(config(wire.ID(i+1), wire.AlgorithmHeir))
			b.Clock = sim.Clock{Origin: time.Duration(i) * time.Hour, PPM: ppm}
			b.Start()
		}
		lan.Run(2 * time.Second)
		leads(t, lan.Boards(), 3)
		since := lan.Now()
		lan.ResetCounts()
		lan.Run(10 * time.Minute)
		if got := lan.Counts[wire.TypeHeartbeat].Packets; got < tc.want-2 || got > tc.want+2 {
			t.Errorf("with %v ppm there were %d heartbeats in ten minutes, want %d", tc.ppm, got, tc.want)
		}
		if sum := lan.Summarise(since); sum.Moves != 0 || sum.Vacant != 0 {
			t.Errorf("with %v ppm the address moved %d times and was vacant for %v", tc.ppm, sum.Moves, sum.Vacant)
		}
		play(t, lan, "crash 3; run 1s")
		assert.Is(t, "2", holder(t, lan).Label, "with %v ppm, the heir", tc.ppm)
	}
}

func TestClockThatCannotBe(t *testing.T) {
	defer func() {
		if p := recover(); p == nil {
			t.Error("a clock that stands still was accepted")
		}
	}()
	b := sim.New(1, quick).Add(config(1, wire.AlgorithmHeir))
	b.Clock.PPM = -1_000_000
	b.Start()
}
