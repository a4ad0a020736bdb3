package daemon

import (
	"context"
	"time"

	"topdog/election"
	"topdog/internal/console"
	"topdog/netio"
	"topdog/wire"
)

// loop handles one event at a time until the board has left the group.
func (d *Daemon) loop(ctx context.Context) {
	d.reporter.ready()
	lost := d.lease.watched()
	d.checks.start()
	d.showRole()
	stop := ctx.Done()
	for !d.finished {
		d.trace.idle()
		d.timer.set(d.due(), d.now())
		select {
		case <-d.killed:
			return
		case <-stop:
			stop = nil
			d.handle(d.stop)
		case <-lost:
			lost = nil
			d.handle(d.holderLost)
		case r := <-d.group.inbox.messages:
			d.handle(func() { d.receive(r) })
		case r := <-d.second.messages():
			d.handle(func() { d.receiveBySecondPath(r) })
		case s := <-d.second.snapshots():
			d.handle(func() { d.second.changed(s) })
		case s := <-d.link.snapshots:
			d.handle(func() { d.linkChanged(s) })
		case do := <-d.tasks.posted:
			d.handle(do)
		case <-d.timer.Expired():
			d.handle(d.timerExpired)
		}
	}
}

// handle handles one event. The dead man's switch is checked first, whatever the event is, and nothing is left
// half done afterwards.
func (d *Daemon) handle(event func()) {
	d.checkDeadman()
	event()
	d.settle()
}

// settle does what every event may have made necessary, and what could wait until the other boards know.
func (d *Daemon) settle() {
	d.address.finishAcquire()
	d.transitions.finish()
	if d.core != nil {
		d.transitions.tellGrade(d.core.Grade().String())
	}
	if d.core != nil {
		d.extendLease()
		d.lan.setWatch(d.core.Watch())
	}
	d.checkClock()
	if now := d.now(); now >= d.lookAt {
		d.lookAt = now + lookEvery
		d.look(now)
	}
	d.checkGrade()
	d.tellPause()
	d.showRole()
	d.backOffIfNotAcquired()
	d.renewIdentity()
}

// look looks after what may be up to lookEvery late.
func (d *Daemon) look(now time.Duration) {
	if d.link.retry {
		d.reopenLink()
	}
	if d.address.endBackOff(now) {
		d.applyPriority()
	}
	d.drain.expire()
	d.checks.expire(now)
	d.group.rejoin(now)
	if d.second != nil {
		d.second.look(now)
	}
	d.lan.maintain(now)
	d.checkPort()
	d.checkAnswers()
	d.checkMajority()
	d.address.checkStrays()
	d.checkArrivals(now)
	d.checkPaths(now)
	d.checkSilence(now)
	d.checkSettings(now)
	d.reporter.feedWatchdog(now)
}

// due is when something has to be done though nothing happens.
func (d *Daemon) due() time.Duration {
	next := min(d.lookAt, d.address.due())
	if d.core != nil {
		if at, ok := d.core.Deadline(); ok {
			next = min(next, at)
		}
	}
	return next
}

// timerExpired does what is due. The core comes first: if this process was not running it releases the address before
// anything renews it.
func (d *Daemon) timerExpired() {
	d.timer.unset()
	d.takeIn()
	now := d.now()
	if at, ok := d.coreDue(now); ok {
		d.trace.timerFired(at, now)
		d.carryOut(d.core.Wake(now))
	}
	d.address.maintain(d.now())
}

// takeIn receives what has arrived meanwhile, since that may change what is due. What arrives while it does so has to wait,
// or a flood would keep the leader from its heartbeat.
func (d *Daemon) takeIn() {
	_, due := d.coreDue(d.now())
	doubts := due && (d.core.Role() != election.Leader || d.lan.asking)
	if doubts {
		d.drainSockets() // the last heartbeat may be waiting there
	}
	d.receiveAll()
	if due && d.group.lostPackets() {
		d.carryOut(d.core.LostPackets(d.now()))
	}
	if doubts && d.lan.heardFrames() {
		d.carryOut(d.core.FramesHeard(d.now()))
	}
}

// drainSockets takes in what the kernel has received by now, and the readers have not read yet.
func (d *Daemon) drainSockets() {
	for _, path := range d.paths() {
		path.drain()
	}
}

// receiveAll receives what is in the inboxes.
func (d *Daemon) receiveAll() {
	for range len(d.group.inbox.messages) {
		d.receive(<-d.group.inbox.messages)
	}
	for range len(d.second.messages()) {
		d.receiveBySecondPath(<-d.second.messages())
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
		d.group.duplicateID(r.from.Addr())
		d.carryOut(d.core.DuplicateID(now, m))
	case conflict == conflictVersion:
		d.carryOut(d.core.OtherVersion(now, m.Sender))
	case conflict == conflictCopy:
		if r.path == netio.PathMulticast {
			d.core.HeardMulticast(now, m.Sender)
		}
	case conflict == conflictElsewhere:
		d.stepBySecondPath(r, now, m)
	default:
		d.trace.messageReceived(r.at, now, m, false)
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

// receiveBySecondPath hands what is new and true to the core. Who may not be in the group is known by the first path alone.
func (d *Daemon) receiveBySecondPath(r *received) {
	now := d.now()
	if m, conflict := d.second.group.receive(r, now); m != nil && conflict == conflictNone {
		d.stepBySecondPath(r, now, m)
	}
	d.second.group.inbox.recycle(r)
}

// stepBySecondPath hands a message to the core that has not come by the first path. In one LAN, it may have been sent on that.
func (d *Daemon) stepBySecondPath(r *received, now time.Duration, m *wire.Message) {
	d.trace.messageReceived(r.at, now, m, true)
	d.carryOut(d.core.StepBySecondPath(now, m))
	d.trace.messageHandled()
}

// stopWithin bounds how long a stopping leader waits for its successor.
const stopWithin = 500 * time.Millisecond

// stop begins to leave the group.
func (d *Daemon) stop() {
	if d.stopping {
		return // another caller has asked for that already
	}
	d.stopping = true
	d.reporter.stopping()
	d.transitions.tell(console.EventStopping, d.transitions.told)
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
	d.checks.close()
	d.lease.close()
	d.closeLink()
	if d.second != nil {
		d.second.end()
	}
	d.reporter.failed("close the timer", d.timer.Close())
}

// timer wakes the loop.
type timer struct {
	Timer
	at time.Duration // for when it is set; never if it has expired since
}

// set has it expire at a time, unless it will anyway: most events change nothing.
func (t *timer) set(at, now time.Duration) {
	if t.at != at {
		t.at = at
		t.Set(max(0, at-now))
	}
}

// unset is called when it has expired.
func (t *timer) unset() { t.at = never }
