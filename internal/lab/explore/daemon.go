package explore

import (
	"slices"
	"time"

	"topdog/election"
	"topdog/wire"
)

// daemon is the event loop of a board as internal/daemon has it (loop.go, effects.go,
// address.go, lease.go), in steps between which it may stand still.
type daemon struct {
	core  *election.Core // nil while there is no process
	owned bool           // no other world has the same core
	// sum is that of the core and of what was heard, as long as summed says so.
	sum    uint64
	summed bool
	role   election.Role

	paused bool
	steps  []step
	at     time.Duration // when it takes the next one

	read     election.Instant // the clock, when the present call began
	beatAt   election.Instant // the clock, before the newest heartbeat was sent
	late     time.Duration    // by how much its lease is too long; only with a seeded bug
	newest   newest           // of what it has sent; only seeded bugs read it
	held     bool             // it believes that it has the address
	armed    bool
	set      election.Instant // what it set the lease word to last
	sequence wire.Sequence
	plan     wire.Message // what the switch was told last
	windows  [maxBoards]window
}

// step is one thing that a daemon does at once.
type step struct {
	kind     stepKind
	message  *packet
	to       wire.ID
	floating bool             // it goes to the floating address
	beat     uint32           // the core must be told which sequence the message has got
	begins   bool             // of stepTimer and stepSwap: the lease, unless it has begun
	askedAt  election.Instant // of the ARP request that was answered
}

type stepKind uint8

const (
	stepCheck     stepKind = iota + 1 // whether the switch has fired
	stepRead                          // the clock
	stepReceive                       // hand a message to the core
	stepWake                          // tell the core that a deadline has come
	stepExpired                       // tell the core that its lease has run out
	stepUnplugged                     // tell the core that the link is lost
	stepProbed                        // tell the core whether the address is free
	stepAskLAN
	stepAnswered // tell the core that the address has answered
	stepEvidence // tell the core that a witness has answered
	stepStop
	stepResign
	stepGate // skip the next effect if the switch has fired
	stepSend
	stepAdd      // the address
	stepRemove   // the address
	stepShut     // end the lease, which closes the fence
	stepReleased // open the fence, since there is no address behind it
	stepTimer    // set the timer of the switch
	stepSwap     // the lease word
	stepLapse    // tell the core if the lease had ended before the heartbeat left
	stepRestore
)

var stepNames = [...]string{
	stepCheck: "looks whether its switch has fired", stepRead: "reads the clock", stepReceive: "receives",
	stepWake: "does what is due", stepExpired: "learns that its lease has run out", stepUnplugged: "learns that its link is lost",
	stepAskLAN: "asks the LAN", stepAnswered: "learns that the address answers", stepEvidence: "learns that a witness answers",
	stepProbed: "has probed the address", stepStop: "is asked to stop", stepResign: "is asked to resign", stepGate: "looks whether its switch has fired",
	stepSend: "sends", stepAdd: "adds the address", stepRemove: "removes the address",
	stepShut: "ends the lease", stepReleased: "opens the fence", stepTimer: "sets the timer of the switch", stepSwap: "swaps the lease word",
	stepLapse:   "looks whether its lease had ended",
	stepRestore: "looks whether the address is still there",
}

// busy is how long a step takes. It is not 0, so that what follows from each other is never
// at the same instant.
const busy = time.Microsecond

// pending returns when the daemon does something next; ok is false if it waits for others.
func (b *board) daemonAt(now time.Duration) (at time.Duration, ok bool) {
	d := &b.daemon
	switch {
	case d.core == nil || d.paused || b.kernel.off:
		return 0, false
	case len(d.steps) > 0:
		return max(now, d.at), true
	case len(b.kernel.inbox) > 0 || b.kernel.deleted:
		return max(now, d.at), true
	}
	deadline, ok := d.core.Deadline()
	if !ok {
		return 0, false
	}
	return max(now, d.at, b.clock.global(deadline)), true
}

// event begins the next event of a daemon that has nothing left to do.
func (w *world) event(b *board) {
	d := &b.daemon
	d.steps = append(d.steps, step{kind: stepCheck})
	switch {
	case b.kernel.deleted:
		b.kernel.deleted = false
		d.steps = append(d.steps, step{kind: stepRestore})
	case len(b.kernel.inbox) > 0:
		r := b.kernel.inbox[0]
		b.kernel.inbox = b.kernel.inbox[1:]
		next := step{kind: stepReceive, message: r.message, askedAt: r.askedAt}
		switch r.kind {
		case flightReply:
			next.kind = stepAnswered
		case flightWitness:
			next.kind = stepEvidence
		}
		d.steps = append(d.steps, step{kind: stepRead}, next)
	default:
		d.steps = append(d.steps, step{kind: stepRead}, step{kind: stepWake})
	}
}

// idles reports whether the next step does nothing, so that to stand still before it is the
// same as before the step behind it.
func (d *daemon) idles() bool {
	return len(d.steps) > 0 && !d.armed && (d.steps[0].kind == stepCheck || d.steps[0].kind == stepGate)
}

// insert has the daemon do these steps before all others.
func (d *daemon) insert(steps ...step) { d.steps = append(steps, d.steps...) }

// skip leaves out what belongs to the effect at hand.
func (d *daemon) skip() {
	for len(d.steps) > 0 && d.steps[0].kind != stepGate && d.steps[0].kind != stepCheck && d.steps[0].kind != stepShut {
		d.steps = d.steps[1:]
	}
}

// run takes the next step of a daemon.
func (w *world) run(b *board) {
	d := &b.daemon
	if len(d.steps) == 0 {
		w.event(b)
	}
	s := d.steps[0]
	d.steps = slices.Clip(d.steps[1:])
	d.at = w.now + busy
	w.traceStep(b, &s)
	if !w.callCore(b, &s) {
		w.actOn(b, &s)
	}
}

// callCore takes a step in which the core is called that may want something done. It reports false
// for the others.
func (w *world) callCore(b *board, s *step) bool {
	d := &b.daemon
	switch s.kind {
	case stepReceive:
		d.summed = false
		if d.windows[s.message.Sender-1].admit(&s.message.Message) {
			w.step(b, s.message.Message)
		}
	case stepWake:
		if at, ok := d.core.Deadline(); ok && at <= d.read {
			was := d.role
			effects := w.ownCore(b).Wake(d.read)
			w.spoil(b, was, effects)
			w.carryOut(b, effects)
		}
	case stepExpired:
		w.carryOut(b, w.ownCore(b).LeaseExpired(d.read))
	case stepUnplugged:
		if w.bug == bugPromiseLink && !b.kernel.cable {
			*promiseOf(w.ownCore(b)).until = d.read
		}
		was := d.role
		effects := w.ownCore(b).Link(d.read, b.kernel.cable)
		w.spoil(b, was, effects)
		w.carryOut(b, effects)
	case stepAnswered:
		w.carryOut(b, w.ownCore(b).AddressAnswered(d.read, s.askedAt))
	case stepEvidence:
		w.carryOut(b, w.ownCore(b).Evidence(d.read))
	case stepProbed:
		w.carryOut(b, w.ownCore(b).Probed(d.read, w.addressInUse(b)))
	case stepStop:
		w.carryOut(b, w.ownCore(b).Stop(d.read))
	case stepResign:
		effects, _ := w.ownCore(b).Resign(d.read)
		w.carryOut(b, effects)
	default:
		return false
	}
	return true
}

// actOn takes a step of the daemon's own: it looks at something, or has something done.
func (w *world) actOn(b *board, s *step) {
	d := &b.daemon
	switch s.kind {
	case stepCheck:
		w.check(b)
	case stepRead:
		d.read = b.clock.local(w.now)
	case stepAskLAN:
		w.askLAN(b, s.to)
	case stepGate:
		if d.armed && b.kernel.word == wordFired {
			d.skip()
		}
	case stepSend:
		w.send(b, s)
		if s.beat != 0 {
			w.ownCore(b).Sent(s.beat, d.sequence)
		}
	case stepAdd:
		b.kernel.address, d.held = true, true
	case stepRemove:
		b.kernel.address, d.held = false, false
	case stepShut:
		w.shut(b)
	case stepReleased:
		b.kernel.word, d.set = wordIdle, wordIdle
	case stepTimer:
		w.setTimer(b, s.begins)
	case stepLapse:
		if now := b.clock.local(w.now); d.armed && now >= d.set {
			w.ownCore(b).LeaseLapsed(now, d.set)
		}
	case stepSwap:
		w.setLease(b, s.begins)
	case stepRestore:
		if d.held && !b.kernel.address {
			d.insert(step{kind: stepGate}, step{kind: stepAdd})
		}
	}
}

// step hands a message to the core.
func (w *world) step(b *board, m wire.Message) {
	d := &b.daemon
	was := d.role
	core := w.ownCore(b)
	w.alter(b, &m)
	effects := core.Step(d.read, &m)
	w.spoilHeard(b, &m)
	w.spoil(b, was, effects)
	w.carryOut(b, effects)
}

// ownCore returns the core, which no other world has from now on.
func (w *world) ownCore(b *board) *election.Core {
	if !b.daemon.owned {
		b.daemon.core, b.daemon.owned = cloneCore(b.daemon.core), true
	}
	b.daemon.summed = false
	return b.daemon.core
}

// check is what the daemon does before and after everything else: it learns what the switch
// has done meanwhile.
func (w *world) check(b *board) {
	d := &b.daemon
	switch {
	case !d.armed || b.kernel.word != wordFired:
	case d.core.Role() == election.Leader:
		d.insert(step{kind: stepRead}, step{kind: stepExpired})
	default:
		d.insert(releaseSteps...)
	}
}

// carryOut has the daemon do what the core wants done, in order. The effects are in memory
// of the core, so they are copied.
func (w *world) carryOut(b *board, effects []election.Effect) {
	var steps []step
	sent := false // a heartbeat
	for i := range effects {
		e := &effects[i]
		switch e.Kind {
		case election.EffectSend:
			sent = sent || startsInterval(e)
			steps = append(steps, sendSteps(e)...)
		case election.EffectAcquire:
			// The lease begins before the address is there.
			steps = append(steps, step{kind: stepGate}, step{kind: stepTimer, begins: true}, step{kind: stepSwap, begins: true}, step{kind: stepAdd})
		case election.EffectRelease:
			steps = append(steps, releaseSteps...)
		case election.EffectAskLAN:
			steps = append(steps, step{kind: stepAskLAN, to: e.To})
		case election.EffectProbe:
			steps = append(steps, step{kind: stepRead}, step{kind: stepProbed})
		case election.EffectChange:
			w.traceChange(b, e.Change)
		case election.EffectFinished:
		}
	}
	d := &b.daemon
	d.role = d.core.Role()
	if sent {
		d.beatAt = d.read
		if !w.strict { // there the majority decides that
			steps = append(steps, step{kind: stepLapse})
		}
	}
	if d.role == election.Leader && (sent || d.set != b.leaseEnd()) {
		steps = append(steps, step{kind: stepTimer}, step{kind: stepSwap})
	}
	steps = append(steps, step{kind: stepCheck})
	d.insert(w.reordered(steps)...)
}

// releaseSteps release the address: the fence is closed until it is gone.
var releaseSteps = []step{{kind: stepShut}, {kind: stepRemove}, {kind: stepReleased}}

// sendSteps are the steps of one message.
func sendSteps(e *election.Effect) []step {
	send := step{kind: stepSend, message: newPacket(e.Message), to: e.To, floating: e.Floating, beat: e.Beat}
	if e.Message.Leading {
		return []step{{kind: stepGate}, send}
	}
	return []step{send}
}

func startsInterval(e *election.Effect) bool {
	return e.To == wire.Nobody && beginsInterval(e.Message.Type)
}

// leaseEnd is what the daemon sets the lease word to. The core has counted it from an instant
// that was read before the heartbeat was sent.
func (b *board) leaseEnd() election.Instant {
	end, ends := b.daemon.core.LeaseEnd()
	if !ends {
		return wordForever
	}
	return end + b.daemon.late
}

// firstLeaseEnd is the same for a lease that begins, until the COORDINATOR has left.
func (b *board) firstLeaseEnd() election.Instant {
	return b.daemon.core.FirstLeaseEnd() + b.daemon.late
}

// setTimer tells the switch when to wake, before the word says so. A lease that has begun does
// not begin again, and one that has not is not extended.
func (w *world) setTimer(b *board, begins bool) {
	d := &b.daemon
	if w.bug == bugLeaseAfterSend {
		d.late = b.clock.local(w.now) - d.read
	}
	if w.bug == bugNoSlack {
		d.late = w.grace() / 4
	}
	switch {
	case d.role != election.Leader || begins == d.armed:
	case begins:
		b.kernel.timer = b.firstLeaseEnd()
	case w.strict:
		// The switch is for a daemon that sends no heartbeat. When the majority is not
		// heard, the word runs out by itself.
		b.kernel.timer = d.beatAt + w.lease()
	default:
		b.kernel.timer = b.leaseEnd()
	}
}

// setLease begins or extends the lease, unless the switch has ended it.
func (w *world) setLease(b *board, begins bool) {
	d := &b.daemon
	if d.role != election.Leader || begins == d.armed {
		return
	}
	end := b.leaseEnd()
	if begins {
		// The first lease counts from the claim, before anything was sent.
		end = b.firstLeaseEnd()
		d.armed, b.reign.until = true, end
	} else {
		resign, ok := d.core.PresignedResign()
		w.prepare(b, resign, ok)
	}
	if b.kernel.word == d.set || w.bug == bugStore {
		b.kernel.word, d.set = end, end
	}
}

// presignAhead is how far the sequence of the pre-signed RESIGN is ahead.
const presignAhead = 1 << 16

// prepare gives the switch its plan.
func (w *world) prepare(b *board, resign wire.Message, ok bool) {
	if !ok {
		b.toggle.plan = nil
		return
	}
	d := &b.daemon
	if b.toggle.plan != nil && resign.Term == d.plan.Term && resign.Resign == d.plan.Resign {
		return
	}
	resign.Incarnation, resign.Sequence = b.incarnation, d.sequence+presignAhead
	d.plan = resign
	b.toggle.plan = newPacket(resign)
}

// shut ends the lease before the address is released.
func (w *world) shut(b *board) {
	d := &b.daemon
	if d.armed && b.kernel.word == wordFired {
		d.sequence = max(d.sequence, d.plan.Sequence)
	}
	d.armed, d.set = false, wordFired
	b.kernel.word = wordFired
}
