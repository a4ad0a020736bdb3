package sim

import (
	"slices"
	"time"

	"topdog/election"
	"topdog/internal/lab/scene"
	"topdog/wire"
)

// Wire says how the simulated LAN treats a datagram.
type Wire struct {
	// Delay is how long a datagram takes. If it varies by more than the gap between two datagrams they overtake each other.
	Delay Delay
	// Loss is the probability that one receiver does not get a datagram.
	Loss float64
	// Duplicate is the probability that one receiver gets it twice.
	Duplicate float64
	// Reorder is the probability that one receiver's copy is held back by HoldBack,
	// so that later ones overtake it.
	Reorder  float64
	HoldBack time.Duration
}

// delay draws how long one copy takes.
func (s *Sim) delay() time.Duration {
	w := &s.Wire
	d := w.Delay.sample(s.rng)
	if w.Reorder > 0 && s.rng.Float64() < w.Reorder {
		d += w.HoldBack
	}
	return d
}

// Filter has the switch lose frames, and a trace say what that is. These filters take the place of those before. What a board
// sends is lost where it is sent, and all else where it would arrive: datagrams that are under way are lost then too.
func (s *Sim) Filter(filters []scene.Filter, what string) {
	s.filters, s.leaving, s.arriving, s.shares = slices.Clone(filters), nil, nil, nil
	for _, f := range filters {
		switch {
		case f.Share > 0:
			s.shares = append(s.shares, f)
		case f.From != nil && f.To == nil:
			s.leaving = append(s.leaving, f)
		default:
			s.arriving = append(s.arriving, f)
		}
	}
	if what != "" {
		s.trace(nil, EventFault, "%s", what)
	}
	s.note()
	s.review()
}

// Filters are those that the switch has.
func (s *Sim) Filters() []scene.Filter { return slices.Clone(s.filters) }

// unheard reports whether the switch drops what the board sends.
func (b *Board) unheard() bool { return lost(b.sim.leaving, b.machine, scene.Client, false) }

// deaf reports whether the switch drops what is for the board, whoever sends it.
func (b *Board) deaf() bool { return lost(b.sim.arriving, scene.Client, b.machine, false) }

func lost(filters []scene.Filter, from, to int, multicast bool) bool {
	return len(filters) > 0 && scene.Lost(filters, from, to, multicast, nil)
}

// carries reports whether the LAN lets a frame through that is on it. The sender's cable
// may have been pulled since.
func (s *Sim) carries(from, to *Board, multicast bool) bool {
	return !lost(s.arriving, from.machine, to.machine, multicast)
}

// reaches reports whether what a board sends to another one comes there.
func (s *Sim) reaches(from, to *Board) bool { return !from.unheard() && s.carries(from, to, false) }

// lostByChance draws whether a frame is lost by chance.
func (s *Sim) lostByChance(from, to *Board, multicast bool) bool {
	p := s.Wire.Loss
	for _, f := range s.shares {
		share := f.Share
		if f.Share = 0; lost([]scene.Filter{f}, from.machine, to.machine, multicast) {
			p = 1 - (1-p)*(1-share)
		}
	}
	return p > 0 && s.rng.Float64() < p
}

// datagram is a message on the wire. All receivers share it.
type datagram struct {
	from      *Board
	m         wire.Message
	kind      Kind
	number    uint64
	sent      election.Instant
	to        wire.ID
	multicast bool             // and not unicast, or a copy by broadcast
	last      election.Instant // when the last copy arrives, if one does
}

// transmit puts a datagram on the wire.
func (b *Board) transmit(e *election.Effect) {
	s := b.sim
	b.sequence++
	if e.Beat != 0 {
		b.core.Sent(e.Beat, b.sequence)
	}
	s.sent++
	to := e.To
	if e.Floating {
		to = s.owner(b)
	}
	d := &datagram{from: b, m: own(&e.Message), number: s.sent, sent: s.now, to: to, multicast: to == wire.Nobody}
	d.m.Incarnation, d.m.Sequence = b.Config.Incarnation, b.sequence
	d.kind = s.kindOf(b, to, &d.m)
	if to != unassigned { // else nothing leaves: nobody answers the ARP request before it
		s.count(b, d.kind, to, e.Audience)
	}
	s.observeSend(&d.m)
	if s.Trace != nil && to != unassigned {
		m := own(&d.m) // for a listener that keeps it
		s.tell(Event{
			Kind: EventMessage, Board: b, Message: &m, Counted: d.kind, Number: d.number,
			To: to, Floating: e.Floating, Broadcast: e.Broadcast, Audience: slices.Clone(e.Audience),
		})
	}
	s.put(d)
	if e.SecondPath {
		b.transmitBySecondPath(d)
	}
	if d.kind == Kind(wire.TypeHeartbeat) {
		for _, do := range b.afterBeat {
			s.At(max(0, d.last-s.now), do)
		}
		b.afterBeat = nil
	}
	// On a wire that loses nothing the copy would be a replay for everybody.
	if e.Broadcast && (s.Wire.Loss > 0 || slices.ContainsFunc(s.filters, func(f scene.Filter) bool { return f.Share > 0 || f.Multicast })) {
		c := *d
		c.multicast = false
		s.put(&c)
	}
}

// put puts a datagram on the wire.
func (s *Sim) put(d *datagram) {
	b := d.from
	silent := !b.plugged || lost(s.leaving, b.machine, scene.Client, d.multicast)
	for _, other := range s.boards {
		switch {
		case other == b || d.to != wire.Nobody && d.to != other.Config.ID:
		case silent:
			s.arrival(d, other, FateCut)
		default:
			s.deliver(d, other)
		}
	}
}

// own copies a message with its lists, which the sender's core may use again while
// the copy is under way.
func own(m *wire.Message) wire.Message {
	c := *m
	c.Report.Standings = slices.Clone(m.Report.Standings)
	c.OK.Trust = slices.Clone(m.OK.Trust)
	c.Coordinator.Candidates = slices.Clone(m.Coordinator.Candidates)
	return c
}

// unassigned is the id of nobody who could get a datagram.
const unassigned = ^wire.ID(0)

// owner returns the board that a frame for the floating address finds: the one that has
// announced it last of those that the sender is in touch with.
func (s *Sim) owner(from *Board) wire.ID {
	holders := s.holders()
	for i := range holders {
		if b := holders[len(holders)-1-i]; b != from && from.plugged && b.plugged && s.inTouch(from, b) {
			return b.Config.ID
		}
	}
	return unassigned
}

// deliver decides what the wire does with one receiver's copy.
func (s *Sim) deliver(d *datagram, to *Board) {
	if s.Loses != nil && s.Loses(d.from, to, &d.m) {
		s.arrival(d, to, FateLost)
		return
	}
	copies := 1
	if s.Wire.Duplicate > 0 && s.rng.Float64() < s.Wire.Duplicate {
		copies = 2
	}
	for range copies {
		if s.lostByChance(d.from, to, d.multicast) {
			s.arrival(d, to, FateLost)
			continue
		}
		at := s.now + s.delay()
		d.last = max(d.last, at)
		s.schedule(at, &event{datagram: d, board: to})
	}
}

// receive is where a copy reaches a board.
func (b *Board) receive(d *datagram) {
	s := b.sim
	switch {
	case !b.plugged || !s.carries(d.from, b, d.multicast):
		s.arrival(d, b, FateCut)
	case b.core == nil:
		s.arrival(d, b, FateDead)
	case d.from.Config.ID != b.Config.ID && !fresh(&b.heard, len(s.boards), d):
		s.arrival(d, b, FateReplay)
		if d.multicast {
			b.core.HeardMulticast(b.local(), d.m.Sender)
		}
	default:
		s.arrival(d, b, map[bool]Fate{true: FateWaits, false: FateArrived}[b.frozen])
		b.run(func() { b.take(d) })
	}
}

// take hands a datagram to the core.
func (b *Board) take(d *datagram) {
	if d.from.Config.ID == b.Config.ID {
		b.act(b.core.DuplicateID(b.local(), &d.m))
		return
	}
	if d.multicast {
		b.act(b.core.Step(b.local(), &d.m))
	} else {
		b.act(b.core.StepDirect(b.local(), &d.m))
	}
}

// seen is a board's memory of another one, which makes duplicates harmless as
// the daemon's replay guard does.
type seen struct {
	incarnation wire.Incarnation
	window      wire.Window
}

// Carry has something done when a datagram that is sent now arrives, unless it is
// lost. It is for other protocols that shall be compared on the same LAN.
func (s *Sim) Carry(arrive func()) {
	if s.Wire.Loss > 0 && s.rng.Float64() < s.Wire.Loss {
		return
	}
	s.At(s.delay(), arrive)
}
