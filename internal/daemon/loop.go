package daemon

import (
	"context"
	"time"

	"topdog/election"
	"topdog/netio"
	"topdog/wire"
)

// event is something that happens to the board. Each kind has its own handle; what
// has to be done before and after every one stands in [Daemon.handle].
type event interface {
	handle(d *Daemon)
}

// The kinds of events, beside *received.
type (
	linkChange   netio.Snapshot // the state of the interface, or an address, has changed
	posted       func()         // a task, or somebody who asks, wants something done
	timerExpired struct{}       // something is due
	stopRequest  struct{}       // the daemon shall hand over and end
)

func (r *received) handle(d *Daemon) { d.receive(r) }

func (s linkChange) handle(d *Daemon) { d.linkChanged(netio.Snapshot(s)) }

func (do posted) handle(*Daemon) { do() }

func (timerExpired) handle(d *Daemon) { d.timerExpired() }

func (stopRequest) handle(d *Daemon) { d.stop() }

// loop handles one event at a time until the board has left the group.
func (d *Daemon) loop(ctx context.Context) {
	d.reporter.ready()
	d.timer = newTimer(d.platform.NewTimer, d.reporter)
	d.deadman.start(d.holderLost)
	d.checks.start()
	d.showRole()
	stop := ctx.Done()
	for !d.finished {
		d.trace.idle()
		d.timer.set(d.due(), d.now())
		var e event
		select {
		case <-d.killed:
			return
		case <-stop:
			e, stop = stopRequest{}, nil
		case e = <-d.group.inbox.messages:
		case s := <-d.link.snapshots:
			e = linkChange(s)
		case do := <-d.tasks.posted:
			e = posted(do)
		case <-d.timer.Expired():
			e = timerExpired{}
		}
		d.handle(e)
	}
}

// handle handles one event. Whatever it is, the dead man's switch is checked before
// it, and nothing is left half done after it.
func (d *Daemon) handle(e event) {
	d.checkDeadman()
	e.handle(d)
	d.settle()
}

// settle does what every event may have made necessary, and what could wait until
// the other boards know.
func (d *Daemon) settle() {
	d.address.finishAcquire()
	d.transitions.finish()
	if d.core != nil {
		d.transitions.tellGrade(d.core.Grade().String())
	}
	if d.core != nil && d.leaseMoved() {
		d.extendLease()
	}
	d.checkClock()
	d.checkPort()
	d.checkMajority()
	d.address.checkStrays()
	d.checkSettings()
	d.checkFirewall()
	d.checkSilence()
	d.checkGrade()
	d.tellPause()
	d.showRole()
	d.backOffIfNotAcquired()
	d.renewIdentity()
}

// due is when something has to be done though nothing happens.
func (d *Daemon) due() time.Duration {
	next := min(d.address.due(), d.group.due(), d.link.retryAt, d.lan.due(), d.checks.due(), d.drain.checkAt, d.reporter.due(), d.firewall.due(), d.duplicate.due(d.firewall.at), d.silent.due())
	if d.core != nil {
		if at, ok := d.core.Deadline(); ok {
			next = min(next, at)
		}
	}
	return next
}

// timerExpired does what is due. The core comes first: if this process was not running
// it releases the address before anything renews it.
func (d *Daemon) timerExpired() {
	d.timer.unset()
	d.takeIn()
	now := d.now()
	if at, ok := d.coreDue(now); ok {
		d.trace.timerFired(at, now)
		d.carryOut(d.core.Wake(now))
	}
	if d.address.endBackOff(d.now()) {
		d.applyPriority()
	}
	d.checks.expire(d.now())
	if d.drain.expire(d.now()) {
		d.checks.drain(false)
	}
	d.address.maintain(d.now())
	d.maintainLink(d.now())
	d.reporter.feedWatchdog(now)
	d.reporter.tellOverdue()
}

// takeIn receives what has arrived meanwhile, since that may change what is due. What arrives
// while this is handled has to wait, or a flood would keep the leader from its heartbeat.
func (d *Daemon) takeIn() {
	_, due := d.coreDue(d.now())
	doubts := due && (d.core.Role() != election.Leader || d.lan.asking)
	if doubts {
		d.group.drain() // the last heartbeat may be waiting in its socket
	}
	for range len(d.group.inbox.messages) {
		d.receive(<-d.group.inbox.messages)
	}
	if due && d.group.lostPackets() {
		d.carryOut(d.core.LostPackets(d.now()))
	}
	if doubts && d.lan.heardFrames() {
		d.carryOut(d.core.Evidence(d.now()))
	}
}

// coreDue returns the deadline of the core, if it has come.
func (d *Daemon) coreDue(now time.Duration) (at time.Duration, due bool) {
	if d.core == nil {
		return 0, false
	}
	at, ok := d.core.Deadline()
	return at, ok && at <= now
}

// receive hands what is new and true to the core.
func (d *Daemon) receive(r *received) {
	now := d.now()
	switch m, conflict := d.group.receive(r, now); {
	case m == nil:
	case conflict == conflictID:
		d.carryOut(d.core.DuplicateID(now, m))
	case conflict == conflictVersion:
		d.carryOut(d.core.OtherVersion(now, m.Sender))
	case conflict == conflictCopy:
		if r.path == netio.PathMulticast {
			d.core.HeardMulticast(now, m.Sender)
		}
	default:
		d.trace.messageReceived(r.at, now, m)
		if m.Type == wire.TypeHeartbeat {
			d.group.lostPackets() // what was lost before does not matter: the leader is heard
		}
		if r.path == netio.PathMulticast {
			d.carryOut(d.core.Step(now, m))
		} else {
			d.carryOut(d.core.StepDirect(now, m))
		}
		d.trace.messageHandled()
	}
	d.group.inbox.recycle(r)
}

// stopWithin bounds how long a stopping leader waits for its successor.
const stopWithin = 500 * time.Millisecond

// stop begins to leave the group.
func (d *Daemon) stop() {
	if d.stopping {
		return // somebody else wants it as well
	}
	d.stopping = true
	d.reporter.stopping()
	d.tellStopping()
	if d.core == nil {
		d.finished = true
		return
	}
	d.tasks.postAfter(stopWithin, func() {
		if !d.finished {
			d.reporter.log.Warn("no successor answered in time; leaving without one")
			d.finished = true
		}
	})
	d.trace.asked()
	d.carryOut(d.core.Stop(d.now()))
}

// leave releases the address, and closes everything that is open.
func (d *Daemon) leave() {
	d.address.close()
	d.deadman.close(d.address.unreleased)
	d.checks.close()
	d.lease.close()
	d.closeLink()
	d.reporter.failed("close the timer", d.timer.Close())
}
