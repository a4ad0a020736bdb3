package papers

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"topdog/election"
	"topdog/election/silence"
	"topdog/internal/lab/scenario"
	"topdog/internal/lab/scene"
	"topdog/internal/lab/sim"
	"topdog/wire"
)

// The papers' processes share a synchronous network that loses nothing. Latency
// has no influence on a count as long as it is short against the time limit T.
const (
	interval = 100 * time.Millisecond
	latency  = 200 * time.Microsecond
	// settling is enough for any group to start up and agree.
	settling = 20 * time.Second
	// afterwards is for how long what happens is counted. Its election is over long before.
	afterwards = 5 * time.Second
)

// Run is what happens to a group of processes, which are numbered from 1: some crash at once, or one joins.
type Run struct {
	Algorithm wire.Algorithm
	Processes int
	Noticer   int   // notices before the others can, if the leader is among those that crash
	Crash     []int // at once
	Joins     int   // or 0
	Absent    []int // all the time
}

func crash(a wire.Algorithm, n, noticer int, crash ...int) Run {
	return Run{Algorithm: a, Processes: n, Noticer: noticer, Crash: crash}
}

// joins has a process join nine others, of which some are absent.
func joins(a wire.Algorithm, process int, absent ...int) Run {
	return Run{Algorithm: a, Processes: 10, Joins: process, Absent: absent}
}

// Equal reports whether the same happens in another run.
func (r *Run) Equal(other *Run) bool {
	return r.Algorithm == other.Algorithm && r.scene() == other.scene()
}

// scene is what happens, in which all agree on a leader before and after it.
func (r *Run) scene() string {
	boards := func(numbers ...int) string {
		var names []string
		for _, n := range slices.Sorted(slices.Values(numbers)) {
			names = append(names, scene.Name(n))
		}
		return strings.Join(names, ",")
	}
	var there []int
	for n := 1; n <= r.Processes; n++ {
		if n != r.Joins && !slices.Contains(r.Absent, n) {
			there = append(there, n)
		}
	}
	lines := []string{boards(there...) + " start", fmt.Sprintf("at %v: agreed", settling)}
	switch gone := boards(r.Crash...); {
	case r.Joins != 0:
		lines = append(lines, boards(r.Joins)+" start")
	case r.Noticer != 0:
		lines = append(lines, gone+" heartbeat", gone+" kill", boards(r.Noticer)+" notices")
	default:
		lines = append(lines, gone+" kill")
	}
	return strings.Join(append(lines, "agreed"), "\n")
}

// Counts plays the run, and counts from what happens on.
func (r *Run) Counts() (sim.Counts, error) {
	text := r.scene()
	s := scenario.Scenario{
		Nodes: r.Processes, Members: true, Seed: 1, Wire: sim.Wire{Delay: sim.Constant(latency)},
		Board: election.Config{Algorithm: r.Algorithm, Interval: interval, Detector: silence.DetectorFixed},
		From:  settling, For: settling + afterwards,
	}
	var err error
	if s.Scene, err = scene.Parse(r.Algorithm.String(), text); err != nil {
		return sim.Counts{}, err
	}
	play, err := s.Run(context.Background(), scenario.Options{})
	if err != nil {
		return sim.Counts{}, fmt.Errorf("%w, in this scene of %d processes:\n%s", err, r.Processes, text)
	}
	return play.LAN.Counts, nil
}
