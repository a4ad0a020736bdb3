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

// backsOff reports whether this board waits because a foreign machine has the
// address. It cannot take an election over: to say so would only have the others ask for ever.
func (p plain) backsOff() bool { return p.role == Listener && p.retry > 0 }

// query has the leader tell a board that joins whom to follow. The papers
// assume that all know the ranks of all. Where ELECTIONs are unicast a board learns
// the rank of another one only from its next HELLO, so that one is due at once.
func (p plain) query(m *wire.Message) {
	switch {
	case p.role == Leader:
		p.assure(m.Sender)
	case p.cfg.Fanout == FanoutUnicast && m.Query.Round == 1:
		p.sayHello(m.Sender)
	}
}

func (p plain) inquiry() (audience []wire.ID, after time.Duration) { return nil, 0 }

func (p plain) candidates() []wire.ID     { return nil }
func (p plain) announced(_ *wire.Message) {}

func (p plain) joined()     {}
func (p plain) followed()   {}
func (p plain) proclaimed() {}
func (p plain) beat()       {}
func (p plain) left()       {}
