package literature

import (
	"fmt"
	"sort"

	"topdog/election"
	"topdog/election/silence"
	"topdog/wire"
)

// definitions are all algorithms of topdog. Most take a silence of some intervals for a
// failure, as their papers do, because several of them act on a suspicion without asking
// anybody; the paper of agents brings a detector of its own.
var definitions = map[wire.Algorithm]election.Definition{
	wire.AlgorithmHeir:       election.Heir,
	wire.AlgorithmStrict:     election.Strict,
	wire.AlgorithmBully:      {New: newBully, Detector: silence.DetectorFixed, HighestLeads: true},
	wire.AlgorithmModified:   {New: newModified, Detector: silence.DetectorFixed, HighestLeads: true},
	wire.AlgorithmScore:      {New: newScore, Detector: silence.DetectorFixed, HighestLeads: true, Order: byScore, ComparesScores: true},
	wire.AlgorithmCandidates: {New: newCandidates, Detector: silence.DetectorFixed, HighestLeads: true},
	wire.AlgorithmMinID:      {New: newMinID, Detector: silence.DetectorFixed, HighestLeads: true, Order: bySmallestID},
	wire.AlgorithmAgents:     {New: newAgents, Detector: silence.DetectorNFDE},
}

// What the algorithms bring besides.
var (
	_ election.LeaderWatcher = (*bully)(nil)

	_ election.LeaderWatcher       = (*modified)(nil)
	_ election.ProclamationWatcher = (*modified)(nil)

	_ election.LeaderWatcher = (*score)(nil)
	_ election.QueryAnswerer = (*score)(nil)

	_ election.LeaderWatcher   = (*candidates)(nil)
	_ election.CandidateLister = (*candidates)(nil)
	_ election.Inquirer        = (*candidates)(nil)
	_ election.QueryAnswerer   = (*candidates)(nil)
	_ election.Resetter        = (*candidates)(nil)

	_ election.LeaderWatcher = (*minid)(nil)
	_ election.Inquirer      = (*minid)(nil)
	_ election.Resetter      = (*minid)(nil)

	_ election.LeaderWatcher    = (*agents)(nil)
	_ election.HeartbeatWatcher = (*agents)(nil)
	_ election.Resetter         = (*agents)(nil)
	_ election.Truster          = (*agents)(nil)
)

// NewCore returns the core of a board that runs the algorithm cfg.Algorithm: one of this
// package, or heir. Its link is down. now is when its process started.
func NewCore(cfg election.Config, now election.Instant) (*election.Core, error) {
	definition, ok := definitions[cfg.Algorithm]
	if !ok {
		return nil, fmt.Errorf("election: no such algorithm: %v", cfg.Algorithm)
	}
	return election.New(cfg, definition, now)
}

// Algorithms returns the names of the algorithms that need nothing but boards, the default
// first: all but strict, which needs a list of voters.
func Algorithms() []string {
	var numbers []wire.Algorithm
	for n := range definitions {
		if n != wire.AlgorithmStrict {
			numbers = append(numbers, n)
		}
	}
	sort.Slice(numbers, func(i, j int) bool { return numbers[i] < numbers[j] })
	names := make([]string, len(numbers))
	for i, n := range numbers {
		names[i] = n.String()
	}
	return names
}

// AlgorithmNamed returns the number of an algorithm.
func AlgorithmNamed(name string) (wire.Algorithm, bool) {
	for n := range definitions {
		if n.String() == name {
			return n, true
		}
	}
	return 0, false
}

// Detector returns the failure detector of a board that runs an algorithm: the one that
// was configured, or the one that suits the algorithm.
func Detector(n wire.Algorithm, configured silence.DetectorKind) silence.DetectorKind {
	return configured.Or(definitions[n].Detector)
}
