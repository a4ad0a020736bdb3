package daemon

import (
	"net/netip"
	"time"

	"topdog/election"
	"topdog/election/literature"
	"topdog/wire"
)

// join makes the core, once the board knows who it is. since is when this incarnation began: a
// voter makes no promise until those of the one before are over.
func (d *Daemon) join(local netip.Addr, since time.Duration) error {
	board := d.cfg.Config
	board.ID, board.Incarnation = d.group.chooseID(local), d.group.incarnation
	board.Priority, board.Members = d.priority(), d.group.members(local)
	core, err := literature.NewCore(board, since)
	if err != nil {
		return err
	}
	d.core = core
	d.group.identify(board.ID, core.Signature)
	d.scoreChanged(d.checks.score)
	d.drain.load(board.ID)
	grade, _ := d.checks.judge(d.drain.on, d.address.backsOff())
	d.carryOut(core.SetGrade(d.now(), grade))
	d.checkVoters()
	d.reporter.log.Infof("board %v (%s) on %s, group %q, algorithm %v, detector %v, fanout %v",
		board.ID, board.Name, d.link.name, d.cfg.Group, board.Algorithm, literature.Detector(board.Algorithm, board.Detector), board.Fanout)
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

// backOffIfNotAcquired makes a leader that could not acquire the address hand over and not
// stand for the lead for a while: another board perhaps can. A board that is alone goes on
// trying.
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

// scoreChanged tells the core what the score command has come to.
func (d *Daemon) scoreChanged(score uint32) {
	if d.core != nil {
		d.carryOut(d.core.SetScore(d.now(), score))
	}
}

// checkGrade tells the core when this board has become more or less fit to lead. What runs on the leader only
// is looked at while this board leads.
func (d *Daemon) checkGrade() {
	d.checks.follow(d.core != nil && d.core.Role() == election.Leader)
	if grade, changed := d.checks.judge(d.drain.on, d.address.backsOff()); changed && d.core != nil {
		d.carryOut(d.core.SetGrade(d.now(), grade))
	}
}

// renewIdentity gives the board a new incarnation, and a new id if its address
// has changed, when it needs one. A leader hands over first, so that the address
// does not suffer from it.
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
	d.group.forget()
	if err := d.join(d.link.local, d.now()); err != nil {
		d.reporter.log.Error(err)
		return
	}
	if d.group.self != before {
		d.reporter.log.Warnf("another board has the address that the id %v was made of; this board is %v from now on", before, d.group.self)
	}
	d.reopenLink() // which may find that this board takes no part
}
