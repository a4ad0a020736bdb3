package sim

import (
	"time"

	"topdog/election"
	"topdog/wire"
)

// Start switches the board on: a new life of its daemon.
func (b *Board) Start() {
	if b.core != nil {
		return
	}
	b.Config.Incarnation = wire.Incarnation(b.sim.rng.Uint32() | 1)
	core, err := election.New(b.Config, b.sim.now)
	if err != nil {
		panic(err) // a mistake of the one who wrote the simulation
	}
	b.core, b.finished, b.frozen, b.overdue, b.backlog = core, false, false, false, nil
	b.heard, b.sequence = make(map[wire.ID]seen), 0
	b.sim.trace(b, "starts")
	b.act(core.Link(b.sim.now, b.plugged))
}

// Crash ends the board's daemon without a word. The address goes with it.
func (b *Board) Crash() {
	if b.core == nil {
		return
	}
	b.sim.trace(b, "crashes")
	b.core, b.backlog = nil, nil
	b.hold(false)
}

// Pull pulls the board's cable; the board notices.
func (b *Board) Pull() { b.cable(false) }

// Plug puts the cable back.
func (b *Board) Plug() { b.cable(true) }

func (b *Board) cable(in bool) {
	if b.plugged == in {
		return
	}
	b.plugged = in
	b.sim.trace(b, "cable %s", map[bool]string{true: "in", false: "out"}[in])
	b.run(func() { b.act(b.core.Link(b.sim.now, in)) })
}

// Mute makes the switch drop the board's frames, both ways, unnoticed by it.
func (b *Board) Mute() { b.muted = true; b.sim.trace(b, "muted") }

// Unmute ends that.
func (b *Board) Unmute() { b.muted = false; b.sim.trace(b, "unmuted") }

// Deafen makes the board not hear another one, which is one way only.
func (b *Board) Deafen(to wire.ID) { b.deaf[to] = true; b.sim.trace(b, "deaf to %v", to) }

// Undeafen ends that.
func (b *Board) Undeafen(to wire.ID) { delete(b.deaf, to); b.sim.trace(b, "hears %v again", to) }

// Freeze stops the process; what comes in waits.
func (b *Board) Freeze() { b.frozen = true; b.sim.trace(b, "frozen") }

// Lose loses the next n messages of that type which the board sends: for all
// receivers, or for one of them if to is not nil. It replaces an earlier Lose.
func (b *Board) Lose(kind wire.Type, n int, to *Board) { b.lose = doomed{kind, n, to} }

// doomed says which messages are about to be lost.
type doomed struct {
	kind wire.Type
	left int
	to   *Board
}

// count takes in that a message is sent, and returns the fate of this one.
func (d *doomed) count(m *wire.Message) (lost doomed) {
	if d.left == 0 || d.kind != m.Type {
		return doomed{}
	}
	d.left--
	return doomed{m.Type, 1, d.to}
}

// hits reports whether the receiver does not get the message.
func (d *doomed) hits(to *Board) bool { return d.left > 0 && (d.to == nil || d.to == to) }

// Thaw lets it go on.
func (b *Board) Thaw() {
	b.frozen = false
	b.sim.trace(b, "thawed")
	backlog := b.backlog
	b.backlog = nil
	for _, do := range backlog {
		b.run(do)
	}
	// As in the daemon, what came meanwhile is taken in before what was due is done.
	if b.overdue && b.core != nil {
		b.overdue = false
		b.act(b.core.Wake(b.sim.now))
	}
}

// Resign hands the lead over, as a person would have it done. The error of a
// frozen board comes too late for anybody to read.
func (b *Board) Resign() error {
	var err error
	b.run(func() {
		var effects []election.Effect
		effects, err = b.core.Resign(b.sim.now)
		b.act(effects)
	})
	return err
}

// Stop ends the board's daemon as systemd would.
func (b *Board) Stop() {
	b.run(func() { b.act(b.core.Stop(b.sim.now)) })
}

// Reprioritise changes the board's priority while it runs.
func (b *Board) Reprioritise(priority uint8, preempt bool) {
	b.Config.Priority, b.Config.Preempt = priority, preempt
	b.run(func() { b.act(b.core.Reprioritise(b.sim.now, priority, preempt)) })
}

// Status returns the core's view; ok is false while the process is dead.
func (b *Board) Status() (s election.Status, ok bool) {
	if b.core == nil {
		return s, false
	}
	return b.core.Status(b.sim.now), true
}

// Running reports whether the board's process lives.
func (b *Board) Running() bool { return b.core != nil }

// Holding reports whether the board has the floating address.
func (b *Board) Holding() bool { return b.holding }

// Plugged reports whether the cable is in.
func (b *Board) Plugged() bool { return b.plugged }

// run lets the process do something, now or when it is thawed. What it was to do
// is forgotten if the process dies first.
func (b *Board) run(do func()) {
	switch {
	case b.core == nil:
	case b.frozen:
		b.backlog = append(b.backlog, do)
	default:
		do()
	}
}

// act carries out what the core wants done, in order, as the daemon does.
func (b *Board) act(effects []election.Effect) {
	for i := range effects {
		e := &effects[i]
		switch e.Kind {
		case election.EffectSend:
			b.transmit(e.To, e.Message)
		case election.EffectTake:
			b.hold(true)
		case election.EffectRelease:
			b.hold(false)
		case election.EffectProbe:
			b.sim.trace(b, "probes the address")
			core := b.core
			b.sim.after(probeTakes, func() {
				b.run(func() {
					if b.core == core {
						b.act(core.Probed(b.sim.now, b.sim.Foreign))
					}
				})
			})
		case election.EffectChange:
			b.sim.trace(b, "%v", e.Change)
		case election.EffectNotice:
			b.sim.trace(b, "notice: %v", e.Notice)
		case election.EffectFinished:
			b.finished = true
		}
	}
	if b.finished {
		b.sim.trace(b, "stopped")
		b.core = nil
		b.hold(false)
		return
	}
	b.schedule()
}

// schedule has the core woken at its deadline. Wakes that were scheduled for
// deadlines that have moved since find that they are not the last one.
func (b *Board) schedule() {
	at, ok := b.core.Deadline()
	if !ok {
		return
	}
	b.wake++
	wake, core := b.wake, b.core
	b.sim.after(max(0, at-b.sim.now), func() {
		switch {
		case b.core != core || b.wake != wake:
		case b.frozen:
			b.overdue = true
		default:
			b.act(core.Wake(b.sim.now))
		}
	})
}

func (b *Board) hold(on bool) {
	if b.holding == on {
		if on {
			b.sim.trace(b, "announces the address")
		}
		return
	}
	b.holding = on
	b.sim.trace(b, "%s the address", map[bool]string{true: "takes", false: "releases"}[on])
	b.sim.holds.change(b.sim.now, b, on)
}

// transmit puts a datagram on the wire.
func (b *Board) transmit(to wire.ID, m wire.Message) {
	s := b.sim
	b.sequence++
	m.Incarnation, m.Sequence = b.Config.Incarnation, b.sequence
	s.Packets[m.Type]++
	if s.Trace != nil {
		s.Trace(Event{At: s.now, Board: b, Message: &m, To: to})
	}
	fate := b.lose.count(&m)
	if !b.plugged || b.muted {
		return
	}
	for _, other := range s.boards {
		if other != b && (to == wire.Nobody || to == other.Config.ID) && !fate.hits(other) {
			s.deliver(b, other, m)
		}
	}
}

// deliver decides what the wire does with one receiver's copy.
func (s *Sim) deliver(from, to *Board, m wire.Message) {
	copies := 1
	if s.wire.Duplicate > 0 && s.rng.Float64() < s.wire.Duplicate {
		copies = 2
	}
	for range copies {
		if s.wire.Loss > 0 && s.rng.Float64() < s.wire.Loss {
			continue
		}
		delay := s.wire.Latency
		if s.wire.Jitter > 0 {
			delay += time.Duration(s.rng.Int64N(int64(s.wire.Jitter)))
		}
		s.after(delay, func() { to.receive(from.Config.ID, m) })
	}
}

func (b *Board) receive(from wire.ID, m wire.Message) {
	if !b.plugged || b.muted || b.deaf[from] || b.core == nil {
		return
	}
	if from == b.Config.ID { // a namesake
		b.run(func() { b.act(b.core.Namesake(b.sim.now, &m)) })
		return
	}
	if !b.fresh(&m) {
		return
	}
	b.run(func() { b.act(b.core.Step(b.sim.now, &m)) })
}

// fresh does the replay guard's work, without the proofs: nobody lies here.
func (b *Board) fresh(m *wire.Message) bool {
	const size = 64
	h, known := b.heard[m.Sender]
	if !known || h.incarnation != m.Incarnation {
		b.heard[m.Sender] = seen{incarnation: m.Incarnation, newest: m.Sequence, window: 1}
		return true
	}
	switch {
	case m.Sequence > h.newest:
		h.window = h.window<<min(m.Sequence-h.newest, size) | 1
		h.newest = m.Sequence
	case h.newest-m.Sequence >= size, h.window&(1<<(h.newest-m.Sequence)) != 0:
		return false
	default:
		h.window |= 1 << (h.newest - m.Sequence)
	}
	b.heard[m.Sender] = h
	return true
}
