package wire

import "fmt"

// Algorithm is the number of an election algorithm. Boards of one group must
// agree on it. Only append to this list: the numbers are part of the protocol.
type Algorithm uint8

// The algorithms that have numbers.
const (
	AlgorithmHeir       Algorithm = 1
	AlgorithmBully      Algorithm = 2
	AlgorithmScore      Algorithm = 3
	AlgorithmModified   Algorithm = 4
	AlgorithmCandidates Algorithm = 5
	AlgorithmMinID      Algorithm = 6
	AlgorithmAgents     Algorithm = 7
	AlgorithmStrict     Algorithm = 8
)

var algorithmNames = [...]string{
	AlgorithmHeir:       "heir",
	AlgorithmBully:      "bully",
	AlgorithmScore:      "score",
	AlgorithmModified:   "modified",
	AlgorithmCandidates: "candidates",
	AlgorithmMinID:      "minid",
	AlgorithmAgents:     "agents",
	AlgorithmStrict:     "strict",
}

func (a Algorithm) String() string {
	if int(a) < len(algorithmNames) && algorithmNames[a] != "" {
		return algorithmNames[a]
	}
	return fmt.Sprintf("algorithm %d", uint8(a))
}
