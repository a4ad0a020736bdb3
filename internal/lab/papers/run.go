package papers

import (
	"fmt"
	"slices"
	"time"

	"topdog/election"
	"topdog/election/silence"
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
	// agreeTimeout bounds an election that is measured.
	agreeTimeout = 30 * time.Second
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

func (r *Run) String() string {
	return fmt.Sprintf("%v, %d processes without %v, %v crash, %d notices, %d joins",
		r.Algorithm, r.Processes, r.Absent, r.Crash, r.Noticer, r.Joins)
}

// Equal reports whether the same happens in another run.
func (r *Run) Equal(other *Run) bool {
	same := func(a, b []int) bool {
		return slices.Equal(slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b)))
	}
	return r.Algorithm == other.Algorithm && r.Processes == other.Processes && r.Noticer == other.Noticer &&
		r.Joins == other.Joins && same(r.Crash, other.Crash) && same(r.Absent, other.Absent)
}

// Counts plays the run, and counts from what happens until all agree on a leader.
func (r *Run) Counts() (sim.Counts, error) {
	lan, boards := r.start()
	w := lan.Watch()
	lan.Run(settling)
	if _, ok := w.Settled(); !ok {
		return sim.Counts{}, fmt.Errorf("%v: the processes did not agree on a leader within %v", r, settling)
	}
	begin := func() {
		lan.ResetCounts()
		w = lan.Watch()
		for _, id := range r.Crash {
			boards[id].Crash()
		}
	}
	switch {
	case r.Joins != 0:
		begin()
		boards[r.Joins].Start()
	case r.Noticer != 0:
		leads := func(b *sim.Board) bool { return b != nil && b.Running() && b.Role() == election.Leader }
		boards[slices.IndexFunc(boards, leads)].AfterHeartbeat(func() {
			begin()
			boards[r.Noticer].Suspect()
		})
		lan.Run(2 * interval)
	default:
		begin()
		lan.Run(settling)
		return lan.Counts, nil
	}
	if !lan.RunUntil(func() bool { _, ok := w.Settled(); return ok }, agreeTimeout) {
		return sim.Counts{}, fmt.Errorf("%v: no agreement within %v", r, agreeTimeout)
	}
	lan.Run(2 * latency) // the last messages arrive
	return lan.Counts, nil
}

// start switches the processes on that are there from the beginning. All know of each other.
func (r *Run) start() (*sim.Sim, []*sim.Board) {
	lan, boards := sim.New(1, sim.Wire{Delay: sim.Constant(latency)}), make([]*sim.Board, r.Processes+1)
	var all []wire.ID
	for id := range wire.ID(r.Processes) {
		all = append(all, id+1)
	}
	for _, id := range all {
		boards[id] = lan.Add(election.Config{
			ID: id, Priority: election.DefaultPriority, Interval: interval,
			Algorithm: r.Algorithm, Detector: silence.DetectorFixed, Members: all,
		})
	}
	for id, b := range boards[1:] {
		if id+1 != r.Joins && !slices.Contains(r.Absent, id+1) {
			b.Start()
		}
	}
	return lan, boards
}
