package literature

import (
	"testing"

	"topdog/internal/lab/assert"
	"topdog/wire"
)

// TestAgentsJudge holds whom the judge trusts: everybody at first, and after 2δ those
// whose ACK it has had within the last 2δ (lines 28 and 29).
func TestAgentsJudge(t *testing.T) {
	b := agentsBoard(t)
	a := b.algorithm.(*agents)
	round := func(k uint32) func(*wire.Message) {
		return func(m *wire.Message) { m.Round.Number = k }
	}
	b.hears(1, wire.TypeStart, round(5))
	for i, want := range [][]wire.ID{
		{1, 2, 3, 4},
		{1, 2, 3, 4},
		{1, 2, 3}, // 4 has acknowledged no OK of this round
		{1, 2, 3}, // 3 has not since one δ
		{1, 2},
		{1, 2},
	} {
		b.hears(1, wire.TypeAck, round(5))
		if i < 2 {
			b.hears(3, wire.TypeAck, round(5))
		}
		b.hears(4, wire.TypeHeartbeat, leading)
		b.hears(4, wire.TypeAck, round(4))
		assert.Equal(t, want, b.Trust(), "after %d times δ", i)
		b.sleep(a.okInterval())
	}
}
