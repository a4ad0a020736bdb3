package daemon

import (
	"crypto/rand"
	"encoding/binary"
	"net/netip"

	"topdog/election"
	"topdog/wire"
)

// newIncarnation draws a random number that is not zero.
func newIncarnation() wire.Incarnation {
	var b [4]byte
	for {
		rand.Read(b[:])
		if i := binary.BigEndian.Uint32(b[:]); i != 0 {
			return wire.Incarnation(i)
		}
	}
}

// awaken makes the core and the guard, once the board knows who it is.
func (n *Node) awaken(local netip.Addr) error {
	n.self = n.cfg.ID
	if n.self == wire.Nobody {
		n.self = wire.IDFromAddr(local)
	}
	core, err := election.New(election.Config{
		ID: n.self, Incarnation: n.life, Name: n.cfg.Name,
		Priority: n.priority(), Preempt: n.cfg.Preempt,
		Interval: n.cfg.Heartbeat, Algorithm: n.cfg.Algorithm,
		Detector: n.cfg.Detector, Fanout: n.cfg.Fanout, ScoreSource: n.cfg.Measure, Members: n.members(local),
	}, n.started)
	if err != nil {
		return err
	}
	n.core = core
	n.act(core.SetScore(n.now(), n.importance.score))
	n.guard = wire.NewGuard(n.self, n.life, n.codec.Authenticated(), wire.RandomNonce)
	n.log.Infof("board %v (%s) on %s, group %q, algorithm %v, detector %v, fanout %v",
		n.self, n.cfg.Name, n.link.name, n.cfg.Group, n.cfg.Algorithm, n.cfg.Detector.For(n.cfg.Algorithm), n.cfg.Fanout)
	return nil
}

// members are the boards that are configured, present or not. A peer is configured
// by its address, which is its id as well unless somebody gave it another one. A
// board that was given one itself takes its peers to be like it, and knows nothing.
func (n *Node) members(local netip.Addr) (ids []wire.ID) {
	if n.self != wire.IDFromAddr(local) {
		return nil
	}
	for _, peer := range n.cfg.Peers {
		ids = append(ids, wire.IDFromAddr(peer))
	}
	return ids
}

// outlived is the sequence number from which on a new incarnation is due: at
// ten milliseconds between heartbeats it takes more than a year to come here.
const outlived = ^wire.Sequence(0) - 1<<16

// namesake is called when another board uses this board's id. If the id was made
// of an address that this board no longer has, another board has that address
// now, and this one needs a new id.
func (n *Node) namesake() {
	if n.cfg.ID == wire.Nobody && wire.IDFromAddr(n.link.local) != n.self {
		n.outdated = true
	}
}

// renewIdentity gives the board a new incarnation, and a new id if its address
// has changed, when it needs one. A leader hands over first, so that the address
// does not suffer from it.
func (n *Node) renewIdentity() {
	if n.sequence > outlived {
		n.outdated = true
	}
	if !n.outdated || n.link.transport == nil {
		return
	}
	switch n.core.Role() {
	case election.Leader:
		effects, err := n.core.Resign(n.now())
		n.act(effects)
		if err == nil {
			return
		}
	case election.Follower:
		if n.core.Leader() == wire.Nobody {
			return // the successor has not spoken yet
		}
	}
	before := n.self
	n.linkLost()
	n.outdated = false
	n.life, n.sequence = newIncarnation(), 0
	clear(n.paths)
	if err := n.awaken(n.link.local); err != nil {
		n.log.Error(err)
		return
	}
	if n.self != before {
		n.log.Warnf("another board has the address that the id %v was made of; this board is %v from now on", before, n.self)
	}
	n.act(n.core.Link(n.now(), true))
}
