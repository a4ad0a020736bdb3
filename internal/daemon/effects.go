package daemon

import (
	"fmt"
	"net"
	"net/netip"
	"time"

	"topdog/election"
	"topdog/election/steps"
	"topdog/gpio"
	"topdog/internal/console"
	"topdog/netio"
	"topdog/wire"
)

// outcome is what the steps of one call have come to so far.
type outcome struct {
	sent    bool              // a message from which the others count the time until the next heartbeat
	lapsed  []election.Effect // what people have to be told, since the lease was over by then
	named   wire.ID           // the successor that the dead man's switch has named, while the core named one as well
	expired bool              // the switch came first to release the address
}

// carryOut does what the core wants done, in the steps that package steps makes of it.
func (d *Daemon) carryOut(effects []election.Effect) {
	var so outcome
	d.steps.CarryOut(effects, func(s steps.Step) bool { return d.take(s, &so) })
}

// take takes a step. It reports false if the steps that depend on it must be left out.
func (d *Daemon) take(s steps.Step, so *outcome) bool {
	switch e := s.Effect; s.Kind {
	case steps.Note:
		d.trace.effectBegun(e)
	case steps.Gate:
		state := steps.State{Fired: d.lease.fired(), MayAnswer: d.address.mayAnswer(), Named: so.named}
		return !state.Withholds(e)
	case steps.Send:
		d.send(e)
		so.sent = so.sent || steps.StartsInterval(e)
	case steps.Fenced:
		d.transitions.held(false) // even if the fence keeps it
		return !d.lease.closes()
	case steps.Open:
		d.address.take(s)
		d.noteRelease(e, so)
	case steps.Probe:
		d.address.probe(d.probed)
	case steps.AskLAN:
		d.lan.ask(d.group.addressOf(e.To))
	case steps.Finish:
		d.finished = true
	case steps.Lapse:
		if so.sent {
			so.lapsed = d.checkLapse()
		}
	case steps.Extend:
		return d.core.Role() == election.Leader && (so.sent || d.leaseMoved())
	case steps.ExtendTimer: // Fence.Extend sets it before the lease word
	case steps.ExtendWord:
		d.address.extendLease(d.leaseEnd(), d.core.OverdueAt())
	case steps.Prepare:
		resign, _ := d.core.PresignedResign()
		d.address.prepare(resign)
	case steps.Tell, steps.Told, steps.Named, steps.Expired, steps.Check:
		d.conclude(s, so)
	default:
		d.address.take(s)
	}
	return true
}

// noteRelease notes whether the dead man's switch came before a release.
func (d *Daemon) noteRelease(e *election.Effect, so *outcome) {
	switch {
	case !d.address.overtaken:
	case e.Kind == election.EffectFenced:
		so.expired = true
	default:
		so.named = d.lease.named()
	}
}

// conclude takes a step that comes when all effects were carried out. This took time, in which the lease may have run out.
func (d *Daemon) conclude(s steps.Step, so *outcome) {
	switch s.Kind {
	case steps.Tell:
		d.tell(s.Effect)
	case steps.Told:
		d.transitions.finish()
		for i := range so.lapsed {
			d.tell(&so.lapsed[i])
			d.transitions.finish()
		}
	case steps.Named:
		if so.named != wire.Nobody {
			d.core.SuccessorNamed(so.named)
		}
	case steps.Expired:
		if so.expired {
			d.carryOut(d.core.LeaseExpired(d.now()))
		}
	case steps.Check:
		d.checkDeadman()
	}
}

// tell tells people of a change or a notice.
func (d *Daemon) tell(e *election.Effect) {
	switch e.Kind {
	case election.EffectChange:
		d.changed(e.Change)
	case election.EffectNotice:
		d.reporter.noticed(e.Notice, d.describeNotice(e.Notice))
	}
}

// send sends a message of the core.
func (d *Daemon) send(e *election.Effect) {
	d.group.send(e)
	if e.SecondPath && d.second != nil {
		d.second.send(&e.Message, e.To)
	}
	if e.Beat != 0 {
		d.core.Sent(e.Beat, e.Message.Sequence)
	}
	if !e.Floating { // nobody knows which board that will reach
		d.trace.messageSent(e.To, &e.Message)
	}
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

// extendLease moves the end of the lease of a leader if that is necessary, and keeps up to date what the dead man's switch
// does then.
func (d *Daemon) extendLease() {
	var so outcome
	d.steps.Do(steps.Extends, func(s steps.Step) bool { return d.take(s, &so) })
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
	return max(p.LastHeard, p.SecondPathAt)
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
