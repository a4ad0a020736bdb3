package election

import (
	"time"
	"topdog/election/clock"
	"topdog/election/roster"
	"topdog/wire"
)

// sendHello makes this board known, more rarely the more boards there are.
func (c *Core) sendHello() {
	if c.role == Isolated || c.role == Barred {
		return
	}
	if c.role != Candidate {
		c.computeScore() // nobody's score changes while boards compare it
	}
	c.sayHello(wire.Nobody)
	c.remindPause()
	c.grace.Told()
	c.hello = clock.Due(c.now + c.helloInterval())
	c.conflict.told = c.now
}

// helloInterval is how often this board says HELLO.
func (c *Core) helloInterval() time.Duration { return roster.HelloInterval(c.roster.Live(c.now) + 1) }

// sayHello makes this board known to one board, or to all. That it got no multicast it says even if
// it hears nobody any more: whoever hears it must broadcast, or it would not hear them.
func (c *Core) sayHello(to wire.ID) {
	c.send(to, wire.Message{
		Header: wire.Header{Type: wire.TypeHello},
		Hello: wire.Hello{
			Following:   c.leader,
			Age:         (c.now - c.startedAt).Truncate(time.Second),
			Interval:    c.helloInterval(),
			NoMulticast: c.paths.noMulticast,
			Name:        c.cfg.Name,
			Grace:       c.wishedGrace(),
			Score:       c.score.told,
		},
	})
}

// receiveHello completes the sender's entry in the roster.
func (c *Core) receiveHello(m *wire.Message) {
	p := c.roster.Peer(m.Sender)
	if m.Hello.NoMulticast && !p.NoMulticast {
		c.notify(Notice{Kind: NoticeNoMulticast, Board: m.Sender}) // once: a status says as long as it is so
	}
	p.Follow(c.now, c.cfg.ID, &m.Hello)
	c.hearWish(m)
	if c.role == Follower && m.Sender == c.leader {
		c.compareRanks() // its rank may be another one now
	}
}
