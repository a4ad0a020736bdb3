package election

import (
	"testing"
	"time"

	"topdog/internal/lab/assert"
	"topdog/wire"
)

// TestNamedCandidateClaims, whatever stands behind the RESIGN that names it, unless somebody leads.
func TestNamedCandidateClaims(t *testing.T) {
	for _, tt := range []struct {
		name string
		from wire.ID
		what wire.Type
		as   func(*board, *wire.Message)
		want Role
	}{
		{"a heartbeat that another board has heard", 1, wire.TypeAnswer, func(b *board, m *wire.Message) {
			last := b.lastLeader
			m.Answer = wire.Answer{Leader: 3, Incarnation: last.incarnation, LastHeard: last.lastHeard + 1, Age: time.Millisecond}
		}, Leader},
		{"a board of higher rank objects", 4, wire.TypeAnswer, func(*board, *wire.Message) {}, Leader},
		{"a board of higher rank asks", 4, wire.TypeElection, func(_ *board, m *wire.Message) {
			m.Election.Suspect, m.Election.Round = 3, 1
		}, Leader},
		{"a pause", 1, wire.TypePause, func(_ *board, m *wire.Message) {
			m.Pause = wire.Pause{Number: 9, Leader: 3, Left: time.Hour}
		}, Leader},
		{"a HELLO of the board that has resigned", 3, wire.TypeHello, func(*board, *wire.Message) {}, Leader},
		{"the former leader leads again", 3, wire.TypeHeartbeat, func(_ *board, m *wire.Message) {
			m.Leading, m.Term = true, m.Term+1
		}, Follower},
		{"another board is named", 3, wire.TypeResign, func(_ *board, m *wire.Message) { m.Resign.Successor = 1 }, Follower},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := followerOf3(t, 20)
			for b.role != Candidate {
				b.sleep(time.Millisecond)
			}
			b.hear(3, wire.TypeResign, func(m *wire.Message) { m.Resign.Successor = 2 })
			b.hear(tt.from, tt.what, func(m *wire.Message) { tt.as(b, m) })
			b.Wake(b.clock)
			assert.Is(t, tt.want, b.role, "its role")
		})
	}
}

// TestNamedDeafCandidateClaims, although the RESIGN is the first that it hears: it does not begin its questions anew.
func TestNamedDeafCandidateClaims(t *testing.T) {
	b := followerOf3(t, 20)
	b.hear(1, wire.TypeHello)
	b.evidence.foreign, b.deaf = true, true
	for !b.candidacy.unheard {
		b.sleep(time.Millisecond)
	}
	b.hear(3, wire.TypeResign, func(m *wire.Message) { m.Resign.Successor = 2 })
	b.Wake(b.clock)
	assert.Is(t, Leader, b.role, "its role")
}
