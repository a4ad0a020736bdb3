package election

import (
	"testing"

	"topdog/wire"
)

// TestOvertakenAnswer: an ANSWER comes by unicast, and the ELECTION that its sender
// holds next by multicast. The sockets of a board may be read in the other order.
func TestOvertakenAnswer(t *testing.T) {
	for _, a := range []wire.Algorithm{wire.AlgorithmBully, wire.AlgorithmScore} {
		of := func(m *wire.Message) { m.Algorithm = a }
		b := newBoard(t, func(c *Config) { c.Algorithm = a })
		b.hear(3, wire.TypeHeartbeat, leading, of)
		b.hear(4, wire.TypeHello, of)
		b.Suspect(b.clock)
		if b.role != Candidate {
			t.Fatalf("%v: the board is a %v", a, b.role)
		}
		answer := b.from(4, wire.TypeAnswer, of)
		b.hear(4, wire.TypeElection, of)
		b.Step(b.clock, answer)
		b.sleep(b.algorithm.lasts() + testInterval/2)
		if b.role != Candidate {
			t.Errorf("%v: a board that was answered is a %v", a, b.role)
		}
	}
}
