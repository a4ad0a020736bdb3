package daemon

import (
	"errors"
	"net/netip"
	"syscall"
	"time"

	"topdog/election"
	"topdog/election/literature"
	"topdog/internal/console"
	"topdog/netio"
	"topdog/wire"
)

// linkChanged handles a new state of the interface and of all addresses.
func (d *Daemon) linkChanged(s netio.Snapshot) {
	readdressed := d.link.update(s)
	d.link.report()
	d.trace.linkSeen(s)
	d.reopenLink()
	if crowded, changed := d.link.crowding(); changed {
		d.group.byAnyInterface(crowded)
	}
	d.address.restore(s)
	if readdressed && d.link.open {
		// The kernels of the boards and the clients keep the old one until they ask again.
		d.reporter.log.Infof("the Ethernet address of %s is %v now", d.link.name, d.link.seen.Link.HardwareAddr)
		d.address.announceAnew()
		d.lan.resolve(d.link.local)
	}
}

// reopenLink opens and closes the sockets as the present state of the interface demands.
func (d *Daemon) reopenLink() {
	local, problem := d.link.chooseLocal()
	if problem != "" {
		d.linkLost()
		d.closeLink()
		if d.link.name != "" { // else the interface is the problem
			d.reporter.waiting(problem)
		}
		return
	}
	if d.link.open {
		replaced := d.link.seen.Link.Index != d.link.index
		if replaced {
			d.linkLost()
		}
		if replaced || local != d.link.local {
			d.closeLink()
		}
	}
	opens := !d.link.open
	if opens {
		if err := d.openLink(local); err != nil {
			d.openFailed(err)
			d.linkLost() // a leader that cannot speak must not hold the address
			return
		}
	}
	problem = d.link.noCarrier()
	d.reporter.set(console.ProblemLink, problem)
	if problem != "" {
		d.linkLost()
		return
	}
	if d.staysOut() {
		d.linkLost()
		return
	}
	wasDown := d.core.Role() == election.Isolated
	d.carryOut(d.core.Link(d.now(), true))
	if opens || wasDown {
		d.lan.findWitnesses()
	}
}

// openLink opens the sockets, and makes the core when the board's address is known for the first time.
func (d *Daemon) openLink(local netip.Addr) error {
	d.reporter.beforeLong(d.now())
	transport, err := d.platform.OpenTransport(d.link.name, local)
	if err != nil {
		return err
	}
	var announcer Announcer
	if !d.witness {
		announcer, err = d.platform.OpenAnnouncer(d.link.seen.Link.Index, local)
	}
	if err == nil && d.core == nil {
		err = d.join(local, d.started)
	}
	if err != nil {
		transport.Close()
		if announcer != nil {
			announcer.Close()
		}
		return err
	}
	d.reporter.solved(console.ProblemSockets)
	if local != d.link.local {
		d.duplicate = duplicate{}
	}
	d.link.opened(local)
	d.group.open(transport, local)
	d.lan.open(announcer, d.link.seen.Link.Index)
	d.address.open(d.link.name, announcer)
	d.probeOwn()
	return nil
}

func (d *Daemon) openFailed(err error) {
	d.link.closed(true)
	text := err.Error()
	if errors.Is(err, syscall.EPERM) {
		text += ": the holder lacks rights; look at topdog-holder.service, or, by hand, run topdog as root"
	}
	d.reporter.set(console.ProblemSockets, text)
}

// linkLost tells the core, which releases the address.
func (d *Daemon) linkLost() {
	if d.core != nil {
		d.carryOut(d.core.Link(d.now(), false))
	}
}

// closeLink closes what is open on the interface.
func (d *Daemon) closeLink() {
	d.link.closed(false)
	d.group.close()
	d.lan.close()
	d.address.closeAnnouncer()
}

// join makes the core, once the board knows who it is. since is when this incarnation began: a voter makes no promise until
// those of the one before are over.
func (d *Daemon) join(local netip.Addr, since time.Duration) error {
	board := d.cfg.Config
	board.ID, board.Incarnation = d.group.chooseID(local), d.group.incarnation
	board.Priority, board.Members = d.priority(), d.group.members(local)
	core, err := literature.NewCore(board, since)
	if err != nil {
		return err
	}
	d.core = d.recording.Of(core)
	for _, path := range d.paths() {
		path.identify(board.ID, core.Signature)
	}
	d.scoreChanged(d.checks.score)
	d.drain.load(board.ID)
	grade, _ := d.checks.judge(d.drain.on, d.address.backsOff())
	d.carryOut(d.core.SetGrade(d.now(), grade))
	d.checkVoters()
	on := d.link.name
	if d.second != nil {
		on += " and " + d.second.link.name
	}
	d.reporter.log.Infof("board %v (%s) on %s, group %q, algorithm %v, detector %v, fanout %v",
		board.ID, board.Name, on, d.cfg.Group, board.Algorithm, literature.Detector(board.Algorithm, board.Detector), board.Fanout)
	return nil
}

// priority is the configured one, or 0 while the board backs off.
func (d *Daemon) priority() uint8 {
	if d.address.backsOff() {
		return 0
	}
	return d.cfg.Priority
}

// applyPriority tells the core with which priority this board stands for the lead.
func (d *Daemon) applyPriority() {
	d.core.DelayPreemption(d.cfg.PreemptDelay)
	d.carryOut(d.core.Reprioritise(d.now(), d.priority(), d.cfg.Preempt))
}

// backOffIfNotAcquired makes a leader that could not acquire the address hand over, and not stand for the lead for a
// while: another board may be able to acquire it. A board that is alone goes on trying.
func (d *Daemon) backOffIfNotAcquired() {
	if !d.address.clearFailure() {
		return
	}
	_, _, paused := d.core.Paused(d.now()) // then no other board can lead
	if _, ok := d.core.Successor(d.now()); ok && !paused {
		d.address.beginBackOff(d.now())
		d.applyPriority()
	}
}

// scoreChanged tells the core the result of the score command.
func (d *Daemon) scoreChanged(score uint32) {
	if d.core != nil {
		d.carryOut(d.core.SetScore(d.now(), score))
	}
}

// checkGrade tells the core when this board has become more or less fit to lead. Checks that run on the leader only count while
// this board leads.
func (d *Daemon) checkGrade() {
	d.checks.follow(d.core != nil && d.core.Role() == election.Leader)
	if grade, changed := d.checks.judge(d.drain.on, d.address.backsOff()); changed && d.core != nil {
		d.carryOut(d.core.SetGrade(d.now(), grade))
	}
}

// renewIdentity gives the board a new incarnation when it needs one, and a new id if its address has changed. A leader hands
// over first, so that the address does not suffer from it.
func (d *Daemon) renewIdentity() {
	if !d.group.identityDue() {
		return
	}
	switch d.core.Role() {
	case election.Leader:
		effects, err := d.core.Resign(d.now())
		d.carryOut(effects)
		if err == nil {
			return
		}
	case election.Follower:
		if d.core.Leader() == wire.Nobody {
			return // the successor has not spoken yet
		}
	}
	before := d.group.self
	d.linkLost()
	d.group.renew()
	for _, path := range d.paths() {
		path.tellIncarnation()
	}
	if err := d.join(d.link.local, d.now()); err != nil {
		d.reporter.log.Error(err)
		return
	}
	if d.group.self != before {
		d.reporter.log.Warnf("another board has the address that the id %v was made of; this board is %v from now on", before, d.group.self)
	}
	d.reopenLink() // this may find that this board takes no part
}
