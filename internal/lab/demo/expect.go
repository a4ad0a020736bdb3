package demo

import (
	"time"

	"topdog/election"
	"topdog/election/literature"
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

const (
	// probing is how long a board looks for a foreign owner of the address before
	// it acquires it for the first time, roughly.
	probing = 150 * time.Millisecond
	// maxElectionTime bounds the search for how long an algorithm takes.
	maxElectionTime = time.Minute
)

// expect asks the algorithm itself, so that nothing here has to be kept in step with it.
func expect(o Options) (expectation, error) {
	// The board knows one that comes before it and one that comes after it, and
	// waits in vain for both, each in its own virtual time.
	core, err := literature.NewCore(election.Config{
		ID: 2, Incarnation: 1, Priority: priority, Interval: o.Heartbeat, Algorithm: o.Algorithm,
		Members: []wire.ID{1, 3},
	}, 0)
	if err != nil {
		return expectation{}, err
	}
	m := expectation{bullies: !incumbentsStay[o.Algorithm], above: core.Above, electionTime: maxElectionTime}
	var now election.Instant
	probed := maxElectionTime // when the probe ends
	effects := core.Link(now, true)
	for now < maxElectionTime {
		asks := false
		for _, e := range effects {
			switch e.Kind {
			case election.EffectAcquire:
				m.electionTime = now
				return m, nil
			case election.EffectProbe:
				probed = now + probing
			case election.EffectAskLAN:
				asks = true
			}
		}
		at, ok := core.Deadline()
		switch {
		case asks:
			effects = core.Evidence(now)
		case probed < maxElectionTime && (!ok || probed <= at):
			now, probed = probed, maxElectionTime
			effects = core.Probed(now, false)
		case !ok:
			return m, nil
		default:
			now = max(now, at)
			effects = core.Wake(now)
		}
	}
	return m, nil
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
