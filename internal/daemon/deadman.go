package daemon

import (
	"net/netip"
	"slices"
	"time"

	"topdog/election"
	"topdog/internal/console"
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
func (d *Daemon) startDeadman() {
	if d.platform.StartDeadman == nil {
		return
	}
	device, err := d.platform.StartDeadman()
	if err != nil {
		if d.news.trouble(console.ProblemDeadman, err.Error(), forever) {
			d.log.Warnf("%v; if this daemon is frozen, its address stays for up to two seconds", err)
		}
		d.later(restartDeadman, d.startDeadman)
		return
	}
	d.news.over(console.ProblemDeadman)
	d.deadman = deadman{device: device}
	d.tasks.Go(func() error {
		select {
		case <-device.Exited():
			d.request(d.deadmanExited)
		case <-d.ctx.Done():
		}
		return nil
	})
	d.watchOver()
}

// later has something done in the loop after a while.
func (d *Daemon) later(after time.Duration, do func()) {
	d.tasks.Go(func() error {
		select {
		case <-time.After(after):
			d.request(do)
		case <-d.ctx.Done():
		}
		return nil
	})
}

// deadmanExited replaces a companion that somebody has killed.
func (d *Daemon) deadmanExited() {
	d.log.Warnf("the dead man's switch (process %d) has ended; starting another one", d.deadman.device.PID())
	d.report("close the dead man's switch", d.deadman.device.Close())
	d.deadman = deadman{}
	d.later(restartDeadman, d.startDeadman)
}

// watchOver begins or extends the lease of a leader that has just sent a heartbeat,
// and keeps its will up to date.
func (d *Daemon) watchOver() {
	s := &d.deadman
	if s.device == nil || d.core == nil || d.core.Role() != election.Leader || !d.holding.taken || d.link.transport == nil {
		return
	}
	will, _ := d.core.PresignedResign()
	if !s.armed || will.Term != s.will.Term || will.Resign != s.will.Resign || d.sequence+willAhead/2 > s.will.Sequence ||
		d.holding.holder.ReleasePlan().Link != s.link || d.link.transport != s.from || !slices.Equal(d.cfg.Peers, s.peers) {
		// A leader that runs is not deposed because its will is an old one.
		if !d.bequeath(will) && !s.armed {
			return
		}
	}
	if !s.armed {
		s.armed = true
		s.device.Arm()
	}
	s.device.Extend(d.core.Lease()) // whether it could is asked before the next thing is done
}

// bequeath gives the companion a will, and what there is to let go of.
func (d *Daemon) bequeath(will wire.Message) bool {
	s := &d.deadman
	will.Incarnation, will.Sequence = d.life, d.sequence+willAhead
	e := d.holding.holder.ReleasePlan()
	if will.Resign.Successor != wire.Nobody {
		datagram, err := d.codec.Append(nil, &will)
		if err != nil {
			d.log.Errorf("sign the RESIGN in advance: %v", err)
			return false
		}
		e.Resign = datagram
		e.To = append(e.To, d.cfg.Multicast)
		for _, peer := range d.cfg.Peers {
			if peer != d.link.local {
				e.To = append(e.To, netip.AddrPortFrom(peer, d.cfg.Multicast.Port()))
			}
		}
		e.From, _ = d.link.transport.(*netio.Conn)
	}
	if err := s.device.Prepare(e); err != nil {
		// A companion that has ended is replaced; a link that has gone is told of elsewhere.
		if !isLinkDown(err) && d.news.trouble(console.ProblemDeadmanOutdated, err.Error(), time.Minute) {
			d.log.Warn(err)
		}
		return false
	}
	s.will, s.link, s.from, s.peers = will, e.Link, d.link.transport, d.cfg.Peers
	return true
}

// disarm ends the lease when the address has been let go of.
func (d *Daemon) disarm() {
	s := &d.deadman
	if !s.armed {
		return
	}
	s.armed = false
	if s.device.Disarm() {
		return
	}
	// The will was sent, or is about to be. What this board says from now on must
	// come after it.
	d.sequence = max(d.sequence, s.will.Sequence)
	d.log.Warn("this daemon did not run when its next heartbeat was due: its dead man's switch has released the address")
}

// fired reports whether the switch has released the address: then this board
// must neither say that it leads nor touch the address.
func (d *Daemon) fired() bool { return d.deadman.armed && d.deadman.device.Fired() }

// rouse comes before everything that the loop does: a daemon that was frozen must
// know, before it says a word, what was done on its behalf.
func (d *Daemon) rouse() {
	switch {
	case !d.fired():
	case d.core.Role() == election.Leader:
		d.act(d.core.LeaseExpired(d.now()))
	default:
		d.release() // the core knows already
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
