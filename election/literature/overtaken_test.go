package literature

import (
	"testing"

	"topdog/election"
	"topdog/wire"
)

// TestOvertakenAnswer: an ANSWER comes by unicast, and the ELECTION that its sender
// holds next by multicast. The sockets of a board may be read in the other order.
func TestOvertakenAnswer(t *testing.T) {
	for _, a := range []wire.Algorithm{wire.AlgorithmBully, wire.AlgorithmScore} {
		b := newBoard(t, a)
		b.hears(3, wire.TypeHeartbeat, leading)
		b.hears(4, wire.TypeHello)
		b.Suspect(b.clock)
		if b.Role() != election.Candidate {
			t.Fatalf("%v: the board is a %v", a, b.Role())
		}
		answer := b.from(4, wire.TypeAnswer)
		b.hears(4, wire.TypeElection)
		b.Step(b.clock, answer)
		b.sleep(b.algorithm.ElectionDuration() + testInterval/2)
		if b.Role() != election.Candidate {
			t.Errorf("%v: a board that was answered is a %v", a, b.Role())
		}
	}
}
