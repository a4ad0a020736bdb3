package demo

import (
	"time"

	"topdog/election"
	"topdog/election/literature"
	"topdog/internal/lab/sim"
	"topdog/wire"
)

// expectation is what the show expects of an algorithm.
type expectation struct {
	// bullies says that the first board in the algorithm's order always takes the
	// lead, also from a living leader. Otherwise the incumbent stays.
	bullies bool
	// above is the order in which the algorithm prefers boards.
	above election.Order
	// electionTime is how long boards may take to find a leader in the worst case,
	// when nobody that they know of answers.
	electionTime time.Duration
}

// incumbentsStay lists the algorithms in which a board that comes disturbs nobody.
// The others got it from the bully, where whoever recovers holds an election.
var incumbentsStay = map[wire.Algorithm]bool{wire.AlgorithmHeir: true, wire.AlgorithmAgents: true}

// maxElectionTime bounds the search for how long an algorithm takes.
const maxElectionTime = time.Minute

// expect asks the algorithm itself, so that nothing here has to be kept in step with it.
func expect(o Options) (expectation, error) {
	// The board knows one that comes before it and one that comes after it, and waits in vain for both.
	cfg := election.Config{
		ID: 2, Incarnation: 1, Priority: priority, Interval: o.Heartbeat, Algorithm: o.Algorithm, Members: []wire.ID{1, 3},
	}
	core, err := literature.NewCore(cfg, 0)
	if err != nil {
		return expectation{}, err
	}
	lan := sim.New(1, sim.Wire{})
	alone := lan.Add(cfg)
	alone.Start()
	lan.RunUntil(alone.Holding, maxElectionTime)
	return expectation{bullies: !incumbentsStay[o.Algorithm], above: core.Above, electionTime: lan.Now()}, nil
}

// rank is what the boards are ordered by: all have the same priority, and so the
// same score.
func (b *board) rank() election.Rank {
	return election.Rank{Priority: priority, ID: b.id, Score: priority}
}

// best returns the first of the boards in the algorithm's order for which a
// condition holds, or nil.
func (g *group) best(holds func(*board) bool) (first *board) {
	for _, b := range g.boards {
		if holds(b) && (first == nil || g.expected.above(b.rank(), first.rank())) {
			first = b
		}
	}
	return first
}
