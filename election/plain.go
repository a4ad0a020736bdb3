package election

import (
	"time"

	"topdog/wire"
)

// plain is the core with the answers of most algorithms to the questions that
// they are asked. An algorithm embeds it and says what it does otherwise.
type plain struct{ *Core }

// above is the order of ranks: the higher priority, then the higher id.
func (p plain) above(a, b Rank) bool { return a.Above(b) }

// lasts is the time limit T of the papers, after which the winner proclaims itself.
func (p plain) lasts() time.Duration { return p.answerWithin() }

// query has the leader tell a board that joins whom to follow.
func (p plain) query(m *wire.Message) {
	if p.role == Leader {
		p.assure(m.Sender)
	}
}

func (p plain) joined()   {}
func (p plain) followed() {}
func (p plain) left()     {}
