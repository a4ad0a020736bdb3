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

// group is a LAN of processes 1…n, all of which know of each other.
type group struct {
	algorithm wire.Algorithm
	lan       *sim.Sim
	boards    []*sim.Board // by process
}

// newGroup starts all processes but the absent ones, and lets them elect.
func newGroup(a wire.Algorithm, n int, absent ...int) (*group, error) {
	g := &group{algorithm: a, lan: sim.New(1, sim.Wire{Latency: latency}), boards: make([]*sim.Board, n+1)}
	var all []wire.ID
	for id := 1; id <= n; id++ {
		all = append(all, wire.ID(id))
	}
	for id := 1; id <= n; id++ {
		g.boards[id] = g.lan.Add(election.Config{
			ID: wire.ID(id), Priority: election.DefaultPriority, Interval: interval,
			Algorithm: a, Detector: silence.DetectorFixed, Members: all,
		})
	}
	w := g.lan.Watch()
	defer w.Stop()
	for id := 1; id <= n; id++ {
		if !slices.Contains(absent, id) {
			g.boards[id].Start()
		}
	}
	g.lan.Run(settling)
	if _, ok := w.Settled(); !ok {
		return nil, fmt.Errorf("%v: %d processes did not agree on a leader within %v", a, n, settling)
	}
	return g, nil
}

// leader returns the process that leads.
func (g *group) leader() int {
	for id, b := range g.boards {
		if b != nil && b.Running() && b.Role() == election.Leader {
			return id
		}
	}
	return 0
}

// election crashes processes, the leader among them, and has one other notice
// before the others can. It counts until all agree on the next leader.
func (g *group) election(noticer int, crash ...int) (sim.Counts, error) {
	var w *sim.Watch
	g.boards[g.leader()].AfterHeartbeat(func() {
		for _, id := range crash {
			g.boards[id].Crash()
		}
		g.lan.ResetCounts()
		w = g.lan.Watch()
		g.boards[noticer].Suspect()
	})
	g.lan.Run(2 * interval)
	return g.outcome(w)
}

// recovery starts a process that was absent, and counts until all agree.
func (g *group) recovery(id int) (sim.Counts, error) {
	g.lan.ResetCounts()
	w := g.lan.Watch()
	g.boards[id].Start()
	return g.outcome(w)
}

// outcome lets the election come to its end, and the last messages arrive.
func (g *group) outcome(w *sim.Watch) (sim.Counts, error) {
	defer w.Stop()
	agreed := func() bool { _, ok := w.Settled(); return ok }
	if !g.lan.RunUntil(agreed, agreeTimeout) {
		return sim.Counts{}, fmt.Errorf("%v: no agreement within %v", g.algorithm, agreeTimeout)
	}
	g.lan.Run(2 * latency)
	return g.lan.Counts, nil
}

// crashed is a group in which process crash fails, noticed by noticer alone.
func crashed(a wire.Algorithm, n, noticer int, crash ...int) (sim.Counts, error) {
	g, err := newGroup(a, n)
	if err != nil {
		return sim.Counts{}, err
	}
	counts, err := g.election(noticer, crash...)
	if err != nil {
		return counts, fmt.Errorf("%d processes, %v crash, %d notices: %w", n, crash, noticer, err)
	}
	return counts, nil
}

// The conventions by which the papers count.

// live001 is the report's: an ELECTION to a dead process counts, a victory message
// to one does not.
func live001(c *sim.Counts) int {
	return c.Type(wire.TypeElection).Messages() + c.Type(wire.TypeAnswer).Messages() + c.Type(wire.TypeCoordinator).Live
}

// live004 is that of 004 for the bully algorithm: between living processes only.
func live004(c *sim.Counts) int {
	return c.Type(wire.TypeElection).Live + c.Type(wire.TypeAnswer).Live + c.Type(wire.TypeCoordinator).Live
}

// all004 is that of 004 for the candidate sets: whatever is sent.
func all004(c *sim.Counts) int {
	return c.Type(wire.TypeElection).Messages() + c.Type(wire.TypeAnswer).Messages() + c.Type(wire.TypeCoordinator).Messages()
}

// broadcasts004 is that of 004 for its own algorithm: a broadcast is one message.
func broadcasts004(c *sim.Counts) int {
	return c.Type(wire.TypeElection).Packets + c.Type(wire.TypeAnswer).Packets + c.Type(wire.TypeCoordinator).Packets
}

// answers004 are the answers to a QUERY; joining004 is all that a process costs that joins.
func answers004(c *sim.Counts) int {
	return c[sim.KindReply].Packets + c.Type(wire.TypeAnswer).Packets
}

func joining004(c *sim.Counts) int {
	return c[sim.Kind(wire.TypeQuery)].Packets + answers004(c) + c.Type(wire.TypeCoordinator).Packets
}
