package election

import "topdog/wire"

// A switch that snoops IGMP and has no querier forgets who wants multicast, and passes none.
// Unicast and broadcast live on. Who hears its leader so says it in its HELLO, and while a
// board says that, whatever goes to all is sent by broadcast as well.

// multicastMissed is for how many intervals a follower hears its leader without its
// multicasts before it believes that they are lost. At 40 % loss, ten in a row are lost by chance
// once in ten thousand times. Until then it asks every interval, and is answered.
const multicastMissed = 10

// paths is by which ways this board hears its leader.
type paths struct {
	direct      bool    // the present message came by unicast or broadcast
	multicastAt Instant // when the leader was heard by multicast last, or began to be followed
	noMulticast bool    // it is heard, and not by multicast; or was when it was heard last
}

// StepDirect is Step for a message that came by unicast or broadcast.
func (c *Core) StepDirect(now Instant, m *wire.Message) []Effect {
	c.paths.direct = true
	effects := c.Step(now, m)
	c.paths.direct = false
	return effects
}

// HeardMulticast tells that a copy has come by multicast of a message that came by another way before.
func (c *Core) HeardMulticast(now Instant, sender wire.ID) {
	if sender == c.leader || c.role == Leader {
		c.paths.multicastAt, c.paths.noMulticast = max(c.paths.multicastAt, now), false
	}
}

// notePathToLeader learns from any message that multicast reaches this leader again. It hears no
// heartbeats.
func (c *Core) notePathToLeader() {
	if c.role == Leader && !c.paths.direct {
		c.paths.multicastAt, c.paths.noMulticast = c.now, false
	}
}

// notePath learns from a heartbeat of this board's leader by which way it came.
func (c *Core) notePath() {
	p := &c.paths
	switch {
	case !p.direct:
		p.multicastAt, p.noMulticast = c.now, false
	case !p.noMulticast && c.now-p.multicastAt > multicastMissed*c.cfg.Interval:
		p.noMulticast = true
		c.notify(Notice{Kind: NoticeNoMulticast, Board: c.cfg.ID})
		c.sendHello()
	}
}

// seeksCompany reports whether a message is the HELLO of a leader that hears nobody. Perhaps there
// is another one, to which multicast does not get.
func (c *Core) seeksCompany(m *wire.Message) bool {
	return m.Type == wire.TypeHello && c.role == Leader && c.roster.Live(c.now) == 0
}

// getsNoMulticast reports whether this board gets no multicast from a board that it hears: its
// leader, or any if it leads itself. Where nobody is heard, nothing shows that a path is lost.
func (c *Core) getsNoMulticast(now Instant) bool {
	if c.role == Leader {
		return c.paths.noMulticast && c.roster.Live(now) > 0
	}
	leader := c.roster.Peer(c.leader)
	return c.paths.noMulticast && leader != nil && leader.Live(now)
}

// losesMulticast reports whether this board, or one that it hears, gets no multicast. While no peer
// lives, there is nobody to broadcast to. A leader cannot tell at first: another leader, which
// nobody could tell, must hear of it as well.
func (c *Core) losesMulticast() bool {
	return c.paths.noMulticast && c.roster.Live(c.now) > 0 || c.roster.LosesMulticast(c.now) ||
		c.role == Leader && c.now-c.leading.since <= multicastMissed*c.cfg.Interval
}
