package daemon

import (
	"crypto/rand"
	"encoding/binary"
	"net/netip"

	"topdog/election"
	"topdog/election/literature"
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
func (d *Daemon) awaken(local netip.Addr) error {
	d.self = d.cfg.ID
	if d.self == wire.Nobody {
		d.self = wire.IDFromAddr(local)
	}
	board := d.cfg.Config
	board.ID, board.Incarnation, board.Priority, board.Members = d.self, d.life, d.priority(), d.members(local)
	core, err := literature.NewCore(board, d.started)
	if err != nil {
		return err
	}
	d.core = core
	d.act(core.SetScore(d.now(), d.importance.score))
	d.guard = wire.NewGuard(d.self, d.life, d.codec.Authenticated(), wire.RandomNonce)
	d.log.Infof("board %v (%s) on %s, group %q, algorithm %v, detector %v, fanout %v",
		d.self, d.cfg.Name, d.link.name, d.cfg.Group, d.cfg.Algorithm, literature.Detector(d.cfg.Algorithm, d.cfg.Detector), d.cfg.Fanout)
	return nil
}

// members are the boards that are configured, present or not. A peer is configured
// by its address, which is its id as well unless somebody gave it another one. A
// board that was given one itself takes its peers to be like it, and knows nothing.
func (d *Daemon) members(local netip.Addr) (ids []wire.ID) {
	if d.self != wire.IDFromAddr(local) {
		return nil
	}
	for _, peer := range d.cfg.Peers {
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
func (d *Daemon) namesake() {
	if d.cfg.ID == wire.Nobody && wire.IDFromAddr(d.link.local) != d.self {
		d.outdated = true
	}
}

// renewIdentity gives the board a new incarnation, and a new id if its address
// has changed, when it needs one. A leader hands over first, so that the address
// does not suffer from it.
func (d *Daemon) renewIdentity() {
	if d.sequence > outlived {
		d.outdated = true
	}
	if !d.outdated || d.link.transport == nil {
		return
	}
	switch d.core.Role() {
	case election.Leader:
		effects, err := d.core.Resign(d.now())
		d.act(effects)
		if err == nil {
			return
		}
	case election.Follower:
		if d.core.Leader() == wire.Nobody {
			return // the successor has not spoken yet
		}
	}
	before := d.self
	d.linkLost()
	d.outdated = false
	d.life, d.sequence = newIncarnation(), 0
	clear(d.paths)
	if err := d.awaken(d.link.local); err != nil {
		d.log.Error(err)
		return
	}
	if d.self != before {
		d.log.Warnf("another board has the address that the id %v was made of; this board is %v from now on", before, d.self)
	}
	d.act(d.core.Link(d.now(), true))
}
