package explore

import (
	"slices"
	"time"

	"topdog/election"
	"topdog/election/steps"
	"topdog/wire"
)

// daemon is the event loop of a board as internal/daemon has it (loop.go), in steps between which it may stand still.
// What follows from the effects of its core are the steps of the daemon, see package steps.
type daemon struct {
	core *election.Core // nil while there is no process
	sum  uint64         // of the core and of what was heard; 0 after a step, until somebody wants to know
	role election.Role

	paused bool
	steps  []step
	at     time.Duration // when it takes the next one

	read      election.Instant `hash:"-"` // the clock, when the present call began
	handles   election.Instant // the same, if something is handled at that moment; only for the sum
	sent      bool             // a heartbeat, in the present call
	named     wire.ID          // the successor that the switch has named before the release of the present call
	overtaken bool             // the switch came before the last release
	late      time.Duration    // by how much its lease is too long; only with a seeded bug
	newest    newest           // of what it has sent; only seeded bugs read it
	held      bool             // it believes that it has the address
	armed     bool
	set       election.Instant // what it set the lease word to last
	wake      election.Instant // what it set the timer of the switch to last
	sequence  wire.Sequence
	plan      wire.Message         `hash:"-"` // what the switch was told last
	windows   [2][maxBoards]window `hash:"-"` // of the first path and of the second
}

// step is one thing that a daemon does at once.
type step struct {
	steps.Step
	message *packet
	askedAt election.Instant // of the ARP request that was answered
	second  bool             // the message came by the second path
}

// What a daemon does besides the steps of effects.
const (
	stepRead      = steps.Kinds + iota // the clock
	stepReceive                        // hand a message to the core
	stepWake                           // tell the core that a deadline has come
	stepExpired                        // tell the core that its lease has run out
	stepUnplugged                      // tell the core that the link is lost
	stepAnswered                       // tell the core that the address has answered
	stepEvidence                       // tell the core that a witness has answered
	stepStop
	stepResign
	stepRestore
)

var stepNames = [...]string{
	steps.Check: "looks whether its switch has fired", stepRead: "reads the clock", stepReceive: "receives",
	stepWake: "does what is due", stepExpired: "learns that its lease has run out", stepUnplugged: "learns that its link is lost",
	steps.AskLAN: "asks the LAN", stepAnswered: "learns that the address answers", stepEvidence: "learns that a witness answers",
	steps.Probe: "has probed the address", stepStop: "is asked to stop", stepResign: "is asked to resign", steps.Gate: "looks whether its switch has fired",
	steps.Send: "sends", steps.Add: "adds the address", steps.Remove: "removes the address",
	steps.Shut: "ends the lease", steps.Open: "opens the fence",
	steps.BeginTimer: "sets the timer of the switch", steps.ExtendTimer: "sets the timer of the switch",
	steps.BeginWord: "swaps the lease word", steps.ExtendWord: "swaps the lease word", steps.Prepare: "has the switch prepare a RESIGN",
	steps.Lapse: "looks whether its lease had ended",
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
	d.steps = append(d.steps, plain(steps.Check))
	switch {
	case b.kernel.deleted:
		b.kernel.deleted = false
		d.steps = append(d.steps, plain(stepRestore))
	case len(b.kernel.inbox) > 0:
		r := b.kernel.inbox[0]
		b.kernel.inbox = b.kernel.inbox[1:]
		next := step{Step: steps.Step{Kind: stepReceive}, message: r.message, askedAt: r.askedAt, second: r.kind == flightSecond}
		switch r.kind {
		case flightReply:
			next.Kind = stepAnswered
		case flightWitness:
			next.Kind = stepEvidence
		}
		d.steps = append(d.steps, plain(stepRead), next)
	default:
		d.steps = append(d.steps, plain(stepRead), plain(stepWake))
	}
}

// idles reports whether the next step does nothing, so that to stand still before it is the
// same as before the step behind it.
func (d *daemon) idles() bool {
	return len(d.steps) > 0 && !d.armed && (d.steps[0].Kind == steps.Check || d.steps[0].Kind == steps.Gate)
}

// insert has the daemon do these steps before all others.
func (d *daemon) insert(next ...step) { d.steps = append(next, d.steps...) }

func plain(kind steps.Kind) step { return step{Step: steps.Step{Kind: kind}} }

// run takes the next step of a daemon, and what takes no time behind it.
func (w *world) run(b *board) {
	d := &b.daemon
	if len(d.steps) == 0 {
		w.event(b)
	}
	d.at, d.sum = w.now+busy, 0
	for first := true; first || len(d.steps) > 0 && d.atOnce(&d.steps[0]); first = false {
		s := d.steps[0]
		d.steps = d.steps[1:]
		w.traceStep(b, &s)
		if !w.callCore(b, &s) && !w.actOn(b, &s) {
			d.steps = d.steps[s.Rest:]
		}
	}
}

// atOnce reports whether a step takes no time, since it depends on nothing but what the daemon knows.
func (d *daemon) atOnce(s *step) bool {
	switch s.Kind {
	case steps.Gate:
		return d.withholds(s, true) == d.withholds(s, false)
	case steps.Lapse:
		return !d.sent
	case steps.Fenced, steps.Extend, steps.Named:
		return true
	}
	return false
}

// withholds reports whether the effect of a step is withheld, if the switch has fired or not.
func (d *daemon) withholds(s *step, fired bool) bool {
	return steps.State{Fired: fired, Named: d.named}.Withholds(s.Effect)
}

// callCore takes a step in which the core is called that may want something done. It reports false
// for the others.
func (w *world) callCore(b *board, s *step) bool {
	d := &b.daemon
	switch s.Kind {
	case stepReceive:
		windows, receive := &d.windows[0], d.core.Step
		if s.second {
			windows, receive = &d.windows[1], d.core.StepBySecondPath
		}
		if windows[s.message.Sender-1].admit(&s.message.Message) {
			m := s.message.Message
			w.alter(b, &m)
			effects := receive(d.read, &m)
			w.spoilHeard(b, &m)
			w.carryOut(b, effects)
		}
	case stepWake:
		if at, ok := d.core.Deadline(); ok && at <= d.read {
			w.carryOut(b, d.core.Wake(d.read))
		}
	case stepExpired:
		w.carryOut(b, d.core.LeaseExpired(d.read))
	case stepUnplugged:
		if w.bug == bugPromiseLink && !b.kernel.cable {
			*promiseOf(d.core).until = d.read
		}
		w.carryOut(b, d.core.Link(d.read, b.kernel.cable))
	case stepAnswered:
		w.carryOut(b, d.core.AddressAnswered(d.read, s.askedAt))
	case stepEvidence:
		w.carryOut(b, d.core.Evidence(d.read))
	case steps.Probe:
		w.carryOut(b, d.core.Probed(d.read, w.addressInUse(b)))
	case stepStop:
		w.carryOut(b, d.core.Stop(d.read))
	case stepResign:
		effects, _ := d.core.Resign(d.read)
		w.carryOut(b, effects)
	default:
		return false
	}
	return true
}

// actOn takes a step of the daemon's own: it looks at something, or has something done. It reports false if what depends on it
// is left out.
func (w *world) actOn(b *board, s *step) bool {
	d := &b.daemon
	switch s.Kind {
	case steps.Check:
		w.check(b)
	case stepRead:
		d.read = b.clock.local(w.now)
	case steps.AskLAN:
		w.askLAN(b, s.Effect.To)
	case steps.Gate:
		return !d.withholds(s, d.armed && b.kernel.word == wordFired)
	case steps.Send:
		w.send(b, s)
		d.sent = d.sent || steps.StartsInterval(s.Effect)
		if s.Effect.Beat != 0 {
			d.core.Sent(s.Effect.Beat, d.sequence)
		}
	case steps.Add:
		b.kernel.address, d.held = true, true
	case steps.Fenced:
		return false // the fence closes
	case steps.Remove:
		b.kernel.address, d.held = false, false
	case steps.Lapse:
		if now := b.clock.local(w.now); d.armed && now >= d.set {
			d.core.LeaseLapsed(now, d.set)
		}
	case steps.Named:
		if d.named != wire.Nobody {
			d.core.SuccessorNamed(d.named)
		}
	case stepRestore:
		if d.held && !b.kernel.address {
			d.insert(sequenceOf([]steps.Kind{steps.Gate, steps.Add}, restored)...)
		}
	default:
		return w.actOnLease(b, s)
	}
	return true
}

// restored is what a daemon does that finds its address gone.
var restored = &election.Effect{Kind: election.EffectAcquire}

// actOnLease takes a step that is about the lease and the switch.
func (w *world) actOnLease(b *board, s *step) bool {
	d := &b.daemon
	switch s.Kind {
	case steps.BeginTimer:
		w.spoilLease(b)
		if !d.armed {
			d.wake = b.firstLeaseEnd()
			b.kernel.timer = d.wake
		}
	case steps.BeginWord:
		if !d.armed {
			// The first lease counts from the claim, before anything was sent.
			d.armed, b.reign.until = true, b.firstLeaseEnd()
			w.setWord(b, b.firstLeaseEnd())
		}
	case steps.Shut:
		d.overtaken = d.armed && b.kernel.word == wordFired
		d.armed, d.set = false, wordFired
		b.kernel.word = wordFired
	case steps.Open:
		b.kernel.word, d.set = wordIdle, wordIdle
		if d.overtaken {
			d.sequence = max(d.sequence, d.plan.Sequence)
		}
		if d.overtaken && s.Effect != nil {
			d.named = d.plan.Resign.Successor
		}
	case steps.Extend:
		return d.core.Role() == election.Leader && d.armed && (d.sent || d.set != b.leaseEnd())
	case steps.ExtendTimer:
		w.spoilLease(b)
		w.setTimer(b)
	case steps.ExtendWord:
		w.setWord(b, b.leaseEnd())
	case steps.Prepare:
		w.prepare(b)
	}
	return true
}

// check is what the daemon does before and after everything else: it learns what the switch
// has done meanwhile.
func (w *world) check(b *board) {
	d := &b.daemon
	switch {
	case !d.armed || b.kernel.word != wordFired:
	case d.core.Role() == election.Leader:
		d.insert(plain(stepRead), plain(stepExpired))
	default:
		d.insert(sequenceOf(steps.Release, nil)...)
	}
}

// carryOut has the daemon do what the core wants done, in the steps of the product. The effects are in memory of the core, so
// they are copied.
func (w *world) carryOut(b *board, effects []election.Effect) {
	d := &b.daemon
	w.spoil(b, effects)
	d.role, d.sent, d.named = d.core.Role(), false, wire.Nobody
	effects = slices.Clone(effects)
	for i := range effects {
		if effects[i].Kind == election.EffectChange {
			w.traceChange(b, effects[i].Change)
		}
	}
	d.insert(w.reordered(listed(steps.Append(nil, effects)))...)
}

// sequenceOf are the steps of a sequence of the product, which is done because of an effect or without any.
func sequenceOf(kinds []steps.Kind, e *election.Effect) []step {
	var list []steps.Step
	new(steps.List).Do(kinds, func(s steps.Step) bool {
		s.Effect = e
		list = append(list, s)
		return true
	})
	return listed(list)
}

// listed are steps as a daemon takes them: without those of which no other actor notices anything. A probe begins with a look at
// the clock. The fence closes here, so nothing expires because of it.
func listed(all []steps.Step) []step {
	list := make([]step, 0, len(all))
	for _, s := range all {
		next := step{Step: s}
		switch s.Kind {
		case steps.Note, steps.Finish, steps.Tell, steps.Told, steps.Expired:
			continue
		case steps.Probe:
			list = append(list, plain(stepRead))
		case steps.Send:
			next.message = newPacket(s.Effect.Message)
		}
		list = append(list, next)
	}
	return list
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

// setTimer tells the switch when to wake, before the word says so: at the end of the lease, or when the daemon of a
// leader with votes would have sent its next heartbeat.
func (w *world) setTimer(b *board) {
	d := &b.daemon
	wake := max(b.leaseEnd(), d.core.OverdueAt())
	if d.set != b.leaseEnd() || d.wake != wake {
		b.kernel.timer, d.wake = wake, wake
	}
}

// setWord begins or extends the lease, unless the switch has ended it.
func (w *world) setWord(b *board, end election.Instant) {
	if d := &b.daemon; b.kernel.word == d.set || w.bug == bugStore {
		b.kernel.word, d.set = end, end
	}
}

// presignAhead is how far the sequence of the pre-signed RESIGN is ahead.
const presignAhead = 1 << 16

// prepare gives the switch its plan.
func (w *world) prepare(b *board) {
	d := &b.daemon
	resign, ok := d.core.PresignedResign()
	if !ok {
		b.toggle.plan = nil
	}
	if resign.Term == d.plan.Term && resign.Resign == d.plan.Resign {
		return
	}
	resign.Incarnation, resign.Sequence = b.incarnation, d.sequence+presignAhead
	d.plan = resign
	if ok {
		b.toggle.plan = newPacket(resign)
	}
}
