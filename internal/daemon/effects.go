package daemon

import (
	"fmt"
	"net"
	"net/netip"
	"time"

	"topdog/election"
	"topdog/gpio"
	"topdog/internal/console"
	"topdog/netio"
	"topdog/wire"
)

// carryOut does what the core wants done, in order. The order keeps the address from having two holders: it is released
// before the RESIGN leaves. What is for people comes last, because the log, the light and systemd take longer than the
// takeover itself.
func (d *Daemon) carryOut(effects []election.Effect) {
	sent := false        // a message from which the others count the time until the next heartbeat
	expired := false     // the dead man's switch came first to release the address
	named := wire.Nobody // the successor that the switch has then named, while the core named one as well
	for i := range effects {
		e := &effects[i]
		d.trace.effectBegun(e)
		if d.withheld(e, named) {
			continue
		}
		switch e.Kind {
		case election.EffectSend:
			d.send(e)
		case election.EffectAcquire:
			d.address.acquire()
		case election.EffectRelease:
			if !d.address.release() {
				named = d.lease.named()
			}
		case election.EffectFenced:
			d.transitions.held(false) // even if the fence keeps it
			expired = !d.lease.closes() && !d.address.release()
		case election.EffectProbe:
			d.address.probe(d.probed)
		case election.EffectAskLAN:
			d.lan.ask(d.group.addressOf(e.To))
		case election.EffectFinished:
			d.finished = true
		}
		sent = sent || startsInterval(e)
	}
	var lapsed []election.Effect
	if sent {
		lapsed = d.checkLapse()
	}
	if sent || d.leaseMoved() {
		d.extendLease()
	}
	d.tell(effects)
	d.tell(lapsed)
	// All of this took time, in which the lease may have run out. The core may be called again only now, since the effects
	// are in memory of its own.
	if named != wire.Nobody {
		d.core.SuccessorNamed(named)
	}
	if expired {
		d.carryOut(d.core.LeaseExpired(d.now()))
	}
	d.checkDeadman()
}

// withheld reports whether an effect must not be carried out. named is the successor that the dead man's switch has named.
//
// Once the switch has fired, this board neither acquires the address nor says that it leads.
//
// No message may leave while this board may answer for an address that it could not release: upon any of them another
// board may acquire the address, or hold it for longer. A RESIGN makes another board claim, and with votes a promise
// helps one to. Even a request for votes does harm: every message of this board says that it leads no more, and a
// board without a leader does not ask whether the address still answers. A withheld message is as good as lost, so a
// board that needs it asks again.
//
// A RESIGN must not follow that of the switch: the two may name different boards, and both would claim. The core then repeats
// what the switch has said.
func (d *Daemon) withheld(e *election.Effect, named wire.ID) bool {
	sends := e.Kind == election.EffectSend
	claims := e.Kind == election.EffectAcquire || sends && e.Message.Leading
	resigns := sends && e.Message.Type == wire.TypeResign
	return claims && d.lease.fired() || sends && d.address.mayAnswer() || resigns && named != wire.Nobody
}

// tell tells people what the effects say.
func (d *Daemon) tell(effects []election.Effect) {
	for i := range effects {
		switch e := &effects[i]; e.Kind {
		case election.EffectChange:
			d.changed(e.Change)
		case election.EffectNotice:
			d.reporter.noticed(e.Notice, d.describeNotice(e.Notice))
		}
	}
	d.transitions.finish()
}

// send sends a message of the core.
func (d *Daemon) send(e *election.Effect) {
	d.group.send(e)
	if e.Beat != 0 {
		d.core.Sent(e.Beat, e.Message.Sequence)
	}
	if !e.Floating { // nobody knows which board that will reach
		d.trace.messageSent(e.To, &e.Message)
	}
}

// startsInterval reports whether an effect is a message from which the others count the time until the next heartbeat.
func startsInterval(e *election.Effect) bool {
	return e.Kind == election.EffectSend && e.To == wire.Nobody && !e.Floating &&
		(e.Message.Type == wire.TypeHeartbeat || e.Message.Type == wire.TypeCoordinator)
}

// leaseMoved reports whether the lease of this leader has another end now. Not only a heartbeat moves it.
func (d *Daemon) leaseMoved() bool {
	return d.core.Role() == election.Leader && !d.lease.endsAt(d.leaseEnd())
}

// leaseEnd is when the lease of this leader ends. The core has counted it from a time that was read before the heartbeat
// left, so it does not matter how long it takes to come here.
func (d *Daemon) leaseEnd() time.Duration {
	if end, ends := d.core.LeaseEnd(); ends {
		return end
	}
	return netio.NoEnd
}

// checkLapse is called when a heartbeat has left. If the lease was over by then, an heir may have claimed: the core looks
// whether one has before the lease begins again. It returns what people have to be told of that.
func (d *Daemon) checkLapse() []election.Effect {
	now := d.now()
	if end, lapsed := d.lease.lapsed(now); lapsed {
		return d.core.LeaseLapsed(now, end)
	}
	return nil
}

// extendLease moves the end of the lease of a leader, and keeps up to date what the dead man's switch does then.
func (d *Daemon) extendLease() {
	if d.core == nil || d.core.Role() != election.Leader {
		return
	}
	resign, _ := d.core.PresignedResign()
	d.address.extendLease(resign, d.leaseEnd(), d.core.OverdueAt())
}

// probed gives the core the outcome of a probe.
func (d *Daemon) probed(answer probeAnswer) {
	d.carryOut(d.core.Probed(d.now(), answer.inUse()))
	if d.core.TakesInUse() {
		d.address.tellTaken(answer)
	}
}

// rivalHeard is told of a machine that claims an address of this board. If this process was not running, that may be its
// successor: the core must know the time before anything is announced against it.
func (d *Daemon) rivalHeard(addr netip.Addr, mac net.HardwareAddr) {
	if d.link.owns(mac) {
		return // another interface of this board has answered
	}
	if addr == d.link.local {
		d.duplicateHeard(mac)
		return
	}
	d.carryOut(d.core.Wake(d.now()))
	d.address.defend(addr, d.lan.hostWith(mac, d.called))
}

// changed tells of a change of role or leader: the light, the history, the control socket with its hooks, the caller that
// waits for a handover, the log and systemd.
func (d *Daemon) changed(c election.Change) {
	d.showRole() // at once, since the rest takes longer
	d.reporter.remember(c, d.lastSeen(c))
	d.tellChange(c)
	if d.observe != nil {
		d.observe(c)
	}
	if c.LeaderChanged() && c.NewLeader != wire.Nobody && c.NewLeader != d.group.self && d.successor != nil {
		d.handedOver(c.NewLeader)
	}
	d.reporter.tell(c, d.describe(c))
}

// lastSeen is when the leader that was replaced was heard last.
func (d *Daemon) lastSeen(c election.Change) time.Duration {
	if c.From == election.Isolated || c.From == election.Listener || c.From == election.Leader {
		return 0
	}
	p, _ := d.core.Peer(c.OldLeader)
	return p.LastHeard
}

// patterns says what the light shows in each role.
var patterns = map[election.Role]gpio.Pattern{
	election.Isolated:  gpio.Fault,
	election.Listener:  gpio.Election,
	election.Follower:  gpio.Follower,
	election.Candidate: gpio.Election,
	election.Leader:    gpio.Leader,
	election.Barred:    gpio.Fault,
}

// showRole has the light show the role. A board that leads without the address shows a fault: a leader's light means that the
// users are served. So does a board that hears nothing on its port. A follower's light means that there is a leader.
func (d *Daemon) showRole() {
	switch {
	case d.core == nil, d.portDead, d.core.Role() == election.Leader && !d.address.held:
		d.light.Show(gpio.Fault)
	case d.missesLeader():
		d.light.Show(gpio.Election)
	default:
		d.light.Show(patterns[d.core.Role()])
	}
}

// tellChange tells of a change of role or leader.
func (d *Daemon) tellChange(c election.Change) {
	now := console.Transition{
		Role: c.To.String(), Reason: c.Reason.Identifier(), ReasonText: c.Reason.String(), Term: uint32(c.Term),
		Group: d.cfg.Group, Addresses: []string{}, Interface: d.link.name,
		Board: idText(d.group.self), BoardName: d.cfg.Name, Priority: int(d.priority()), Grade: d.core.Grade().String(),
	}
	now.Leader, now.LeaderName = d.idAndName(c.NewLeader)
	for _, p := range d.address.prefixes() {
		now.Addresses = append(now.Addresses, p.String())
	}
	event := console.EventLeaderChanged
	if c.From != c.To {
		event = console.EventRoleChanged
	}
	d.transitions.tellGrade(now.Grade) // it may be the reason
	d.transitions.tellChange(event, now)
}

// lanAnswered gives the core what the LAN has answered.
func (d *Daemon) lanAnswered(answer netio.ARPAnswer) {
	asked := d.silentAnswered(answer)
	switch {
	case d.link.isFloating(answer.Addr):
		d.carryOut(d.core.AddressAnswered(d.now(), answer.AskedAt))
	case !asked && d.lan.isNews(answer):
		d.carryOut(d.core.Evidence(d.now()))
	}
}

// checkDeadman comes before everything that the loop does: a daemon that was frozen must know, before it sends anything, what
// its dead man's switch has done.
func (d *Daemon) checkDeadman() {
	switch {
	case !d.lease.fired():
	case d.core.Role() == election.Leader:
		d.carryOut(d.core.LeaseExpired(d.now()))
	default:
		d.address.release() // the core knows already
	}
}

// holderLost is called when the holder has ended, or stands still. What it had opened is useless, and the addresses are gone or
// will be soon. So this board hands over, and starts again.
func (d *Daemon) holderLost() {
	if d.stopping {
		return
	}
	d.lost = fmt.Errorf("daemon: the holder (process %d), which has the address and the sockets, has ended or stands still",
		d.lease.holder.PID())
	d.reporter.log.Error(d.lost)
	d.stop()
}
