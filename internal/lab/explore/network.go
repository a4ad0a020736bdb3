package explore

import (
	"slices"
	"time"

	"topdog/election"
	"topdog/wire"
)

// flight is what is on its way to one board: a copy of a datagram, or an ARP packet.
type flight struct {
	kind     flightKind
	from, to int
	at       time.Duration
	message  *packet
	askedAt  election.Instant // when the ARP request was sent, on the clock of the asker
}

type flightKind uint8

const (
	flightDatagram flightKind = iota
	flightFloating            // a datagram to the floating address
	flightSecond              // a copy by the second path
	flightRequest             // an ARP request for the floating address
	flightReply
	flightWitness // an ARP reply of a witness, which always answers
)

var flightNames = [...]string{flightRequest: "ARP request", flightReply: "ARP reply", flightWitness: "witness's ARP reply"}

func (f *flight) String() string {
	if f.message != nil {
		return f.message.Type.String()
	}
	return flightNames[f.kind]
}

// received is what waits in the sockets of a daemon.
type received struct {
	kind    flightKind
	message *packet
	askedAt election.Instant
}

// send sends a message of a daemon.
func (w *world) send(b *board, s *step) {
	b.daemon.sequence++
	sent := s.message.Message
	sent.Incarnation, sent.Sequence = b.incarnation, b.daemon.sequence
	if sent.Leading && s.Effect.To == wire.Nobody && beginsInterval(sent.Type) {
		b.reign.until = wordForever
		if _, ends := b.daemon.core.LeaseEnd(); ends && !w.strict {
			b.reign.until = b.clock.local(w.now) + w.leaseOf(&sent)
		}
	}
	b.daemon.newest.note(&sent)
	kind := flightDatagram
	if s.Effect.Floating {
		kind = flightFloating
	}
	m := newPacket(sent)
	w.transmit(b, kind, s.Effect.To, m)
	if s.Effect.SecondPath {
		w.transmit(b, flightSecond, s.Effect.To, m)
	}
}

// leaseOf is how long a lease may last from a heartbeat or a COORDINATOR, as those understand it who
// hear that. The core has a shorter one until it knows that nobody has claimed.
func (w *world) leaseOf(m *wire.Message) time.Duration {
	grace := m.Heartbeat.Grace
	if m.Type == wire.TypeCoordinator {
		grace = m.Coordinator.Grace
	}
	if grace == 0 {
		grace = w.grace()
	}
	return w.interval + grace*3/4
}

func beginsInterval(t wire.Type) bool { return t == wire.TypeHeartbeat || t == wire.TypeCoordinator }

// transmit puts a message on the wire. One for the floating address goes to every board, and
// reaches those that answer for it.
func (w *world) transmit(b *board, kind flightKind, to wire.ID, m *packet) {
	for i := range w.boards[:w.size] {
		if to == wire.Nobody || int(to)-1 == i {
			w.launch(b, flight{kind: kind, from: int(b.id) - 1, to: i, message: m})
		}
	}
}

// launch puts anything on the wire.
func (w *world) launch(b *board, f flight) {
	if b.kernel.off || !b.kernel.cable && f.kind != flightSecond || f.from == f.to {
		return
	}
	f.at = w.now + w.latency
	w.flights = append(w.flights, f)
}

// askLAN asks a witness, and the address of the board that is suspected, by ARP.
func (w *world) askLAN(b *board, suspect wire.ID) {
	from, askedAt := int(b.id)-1, b.clock.local(w.now)
	if !b.kernel.off && b.kernel.cable && !w.mute[from] {
		w.flights = append(w.flights, flight{kind: flightWitness, from: from, to: from, at: w.now + 2*w.latency})
	}
	if suspect != wire.Nobody {
		w.launch(b, flight{kind: flightRequest, from: from, to: int(suspect) - 1, askedAt: askedAt})
	}
}

// addressInUse is what a probe of the address finds out.
func (w *world) addressInUse(b *board) bool {
	for i := range w.boards[:w.size] {
		to, back := flight{from: int(b.id) - 1, to: i}, flight{from: i, to: int(b.id) - 1}
		if other := &w.boards[i]; other != b && w.answers(other) && w.reaches(&to) && w.reaches(&back) {
			return true
		}
	}
	return false
}

// reaches reports whether what is on its way still has one.
func (w *world) reaches(f *flight) bool {
	to := &w.boards[f.to]
	if f.kind == flightSecond {
		return !to.kernel.off
	}
	return !w.cut[f.from][f.to] && (f.from == f.to || !w.mute[f.from]) && !w.deaf[f.to] && to.kernel.cable && !to.kernel.off
}

// arrive delivers what has been on its way: to the kernel, or to the sockets of the daemon.
func (w *world) arrive(i int) {
	f := w.flights[i]
	w.flights = slices.Delete(w.flights, i, i+1)
	to := &w.boards[f.to]
	switch {
	case !w.reaches(&f):
		return
	case f.kind == flightRequest:
		if w.answers(to) {
			w.launch(to, flight{kind: flightReply, from: f.to, to: f.from, askedAt: f.askedAt})
		}
		return
	case f.kind == flightFloating && !w.answers(to), to.daemon.core == nil:
		return
	}
	to.kernel.inbox = append(to.kernel.inbox, received{f.kind, f.message, f.askedAt})
}
