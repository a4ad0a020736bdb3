package daemon

import (
	"net/netip"
	"slices"
	"time"

	"topdog/election"
	"topdog/netio"
	"topdog/wire"
)

// Deadman lets go of the addresses, and says so, when this daemon no longer can;
// netio.Deadman is the real one.
type Deadman interface {
	Prepare(netio.ReleasePlan) error
	Arm()
	Disarm() (inPeace bool)
	Extend(by time.Duration) bool
	Fired() bool
	Exited() <-chan struct{}
	PID() int
	Close() error
}

// deadman is what the loop knows of the dead man's switch.
type deadman struct {
	device Deadman // nil: there is none
	armed  bool
	will   wire.Message // what the companion was given, with its sequence
	link   int          // of the estate
	from   Transport    // likewise
	peers  []netip.Addr // likewise
}

// willAhead is how far the sequence of a will is ahead of what was sent when it was
// signed. It is signed anew when half of that is used up, after an hour at ten
// messages a second.
const willAhead = 1 << 16

// restartDeadman is the pause before a companion that has ended is replaced.
const restartDeadman = time.Second

// startDeadman starts the companion. The election does not depend on it.
func (n *Node) startDeadman() {
	if n.around.StartDeadman == nil {
		return
	}
	device, err := n.around.StartDeadman()
	if err != nil {
		if n.news.trouble("deadman", err.Error(), forever) {
			n.log.Warnf("%v; if this daemon is frozen, its address stays for up to two seconds", err)
		}
		n.later(restartDeadman, n.startDeadman)
		return
	}
	n.news.over("deadman")
	n.deadman = deadman{device: device}
	n.tasks.Go(func() error {
		select {
		case <-device.Exited():
			n.request(n.deadmanExited)
		case <-n.ctx.Done():
		}
		return nil
	})
	n.watchOver()
}

// later has something done in the loop after a while.
func (n *Node) later(after time.Duration, do func()) {
	n.tasks.Go(func() error {
		select {
		case <-time.After(after):
			n.request(do)
		case <-n.ctx.Done():
		}
		return nil
	})
}

// deadmanExited replaces a companion that somebody has killed.
func (n *Node) deadmanExited() {
	n.log.Warnf("the dead man's switch (process %d) has ended; starting another one", n.deadman.device.PID())
	n.report("close the dead man's switch", n.deadman.device.Close())
	n.deadman = deadman{}
	n.later(restartDeadman, n.startDeadman)
}

// watchOver begins or extends the lease of a leader that has just sent a heartbeat,
// and keeps its will up to date.
func (n *Node) watchOver() {
	d := &n.deadman
	if d.device == nil || n.core == nil || n.core.Role() != election.Leader || !n.holding.taken || n.link.transport == nil {
		return
	}
	will, _ := n.core.PresignedResign()
	if !d.armed || will.Term != d.will.Term || will.Resign != d.will.Resign || n.sequence+willAhead/2 > d.will.Sequence ||
		n.holding.holder.ReleasePlan().Link != d.link || n.link.transport != d.from || !slices.Equal(n.cfg.Peers, d.peers) {
		// A leader that runs is not deposed because its will is an old one.
		if !n.bequeath(will) && !d.armed {
			return
		}
	}
	if !d.armed {
		d.armed = true
		d.device.Arm()
	}
	d.device.Extend(n.core.Lease()) // whether it could is asked before the next thing is done
}

// bequeath gives the companion a will, and what there is to let go of.
func (n *Node) bequeath(will wire.Message) bool {
	d := &n.deadman
	will.Incarnation, will.Sequence = n.life, n.sequence+willAhead
	e := n.holding.holder.ReleasePlan()
	if will.Resign.Successor != wire.Nobody {
		datagram, err := n.codec.Append(nil, &will)
		if err != nil {
			n.log.Errorf("make a will: %v", err)
			return false
		}
		e.Resign = datagram
		e.To = append(e.To, n.around.Group)
		for _, peer := range n.cfg.Peers {
			if peer != n.link.local {
				e.To = append(e.To, netip.AddrPortFrom(peer, n.cfg.Port))
			}
		}
		e.From, _ = n.link.transport.(*netio.Conn)
	}
	if err := d.device.Prepare(e); err != nil {
		// A companion that has ended is replaced; a link that has gone is told of elsewhere.
		if !isLinkDown(err) && n.news.trouble("bequeath", err.Error(), time.Minute) {
			n.log.Warn(err)
		}
		return false
	}
	d.will, d.link, d.from, d.peers = will, e.Link, n.link.transport, n.cfg.Peers
	return true
}

// disarm ends the lease when the address has been let go of.
func (n *Node) disarm() {
	d := &n.deadman
	if !d.armed {
		return
	}
	d.armed = false
	if d.device.Disarm() {
		return
	}
	// The will was sent, or is about to be. What this board says from now on must
	// come after it.
	n.sequence = max(n.sequence, d.will.Sequence)
	n.log.Warn("this daemon did not run when its next heartbeat was due: its dead man's switch has let go of the address")
}

// fired reports whether the switch has let go of the address: then this board
// must neither say that it leads nor touch the address.
func (n *Node) fired() bool { return n.deadman.armed && n.deadman.device.Fired() }

// rouse comes before everything that the loop does: a daemon that was frozen must
// know, before it says a word, what was done on its behalf.
func (n *Node) rouse() {
	switch {
	case !n.fired():
	case n.core.Role() == election.Leader:
		n.act(n.core.LeaseExpired(n.now()))
	default:
		n.release() // the core knows already
	}
}

// claims reports whether an effect would say that this board leads, or take the address.
func claims(e *election.Effect) bool {
	return e.Kind == election.EffectAcquire || e.Kind == election.EffectSend && e.Message.Leading
}

// beats reports whether an effect is one from which the others count the time.
func beats(e *election.Effect) bool {
	return e.Kind == election.EffectSend && e.To == wire.Nobody &&
		slices.Contains([]wire.Type{wire.TypeHeartbeat, wire.TypeCoordinator}, e.Message.Type)
}
