package sim

import (
	"slices"
	"strings"
	"time"

	"topdog/election"
	"topdog/wire"
)

// Wire says how the simulated LAN treats a datagram.
type Wire struct {
	// Latency and Jitter make a datagram take Latency plus up to Jitter. If Jitter
	// is larger than the gap between two datagrams they overtake each other.
	Latency, Jitter time.Duration
	// Delay takes the place of both, if it is set.
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
	w := &s.wire
	d := w.Latency
	switch {
	case w.Delay.shape != shapeNone:
		d = w.Delay.draw(s.rng)
	case w.Jitter > 0:
		d += time.Duration(s.rng.Int64N(int64(w.Jitter)))
	}
	if w.Reorder > 0 && s.rng.Float64() < w.Reorder {
		d += w.HoldBack
	}
	return d
}

// even reports whether all copies of a datagram arrive at the same time, if at
// all, and draw nothing but their loss. Then one event does for all of them.
func (w *Wire) even() bool {
	return w.Delay.constant() && (w.Delay.shape != shapeNone || w.Jitter == 0) && w.Duplicate == 0 && w.Reorder == 0
}

// SetWire changes how the LAN treats datagrams from now on.
func (s *Sim) SetWire(w Wire) { s.wire = w }

// Partition cuts the LAN into groups that do not hear each other; the boards that
// are in none of them are one more group. It takes the place of an earlier one.
// Datagrams that are under way do not arrive either.
func (s *Sim) Partition(groups ...[]wire.ID) {
	for _, b := range s.boards {
		b.group = 0
		for i, ids := range groups {
			if slices.Contains(ids, b.Config.ID) {
				b.group = i + 1
			}
		}
	}
	s.grouped = true
	s.noteReach()
	var words []string
	for _, ids := range groups {
		words = append(words, list(ids))
	}
	s.trace(nil, EventFault, "partition %s", strings.Join(words, " / "))
	s.review()
}

// Cut makes the boards to not hear the boards from any more, while these hear
// them. Cuts add up until Heal.
func (s *Sim) Cut(from, to []wire.ID) {
	s.cut(from, to)
	s.trace(nil, EventFault, "what %s say does not reach %s", list(from), list(to))
	s.review()
}

func (s *Sim) cut(from, to []wire.ID) {
	if s.cuts == nil {
		s.cuts = make([]bool, len(s.boards)*len(s.boards))
	}
	for _, a := range s.boards {
		for _, b := range s.boards {
			if a != b && slices.Contains(from, a.Config.ID) && slices.Contains(to, b.Config.ID) {
				s.cuts[s.pair(a, b)] = true
			}
		}
	}
}

// Heal ends all partitions and cuts. Boards that are muted or deaf remain so.
func (s *Sim) Heal() {
	if !s.grouped && s.cuts == nil {
		return
	}
	s.grouped, s.cuts = false, nil
	s.noteReach()
	s.trace(nil, EventFault, "partition healed")
	s.review()
}

// Filter is something that the switch does not pass.
type Filter struct {
	From, To  []wire.ID // nil for all boards
	Multicast bool      // nothing else
}

// Filter has the switch lose these, and a trace say what that is. They take the place of all others, but for those of partitions.
func (s *Sim) Filter(filters []Filter, what string) {
	s.trace(nil, EventFault, "%s", what)
	for _, b := range s.boards {
		b.dropIn, b.dropOut, b.losesMulticast = false, false, false
	}
	s.cuts, s.noMulticast = nil, 0
	for _, f := range filters {
		switch {
		case f.From != nil && f.To != nil:
			s.cut(f.From, f.To)
			continue
		case f.From != nil && f.Multicast:
			panic("sim: a board that sends no multicast is not simulated") // a mistake of the one who wrote the simulation
		}
		for _, b := range s.boards {
			b.losesMulticast = b.losesMulticast || f.Multicast && has(f.To, b)
			b.dropIn = b.dropIn || !f.Multicast && f.From == nil && has(f.To, b)
			b.dropOut = b.dropOut || f.From != nil && has(f.From, b)
		}
	}
	for _, b := range s.boards {
		if b.losesMulticast {
			s.noMulticast++
		}
	}
	s.noteReach()
	s.review()
}

func has(ids []wire.ID, b *Board) bool { return ids == nil || slices.Contains(ids, b.Config.ID) }

func list(ids []wire.ID) string {
	var words []string
	for _, id := range ids {
		words = append(words, id.String())
	}
	return strings.Join(words, ", ")
}

func (s *Sim) pair(from, to *Board) int { return int(from.number)*len(s.boards) + int(to.number) }

// carries reports whether the LAN lets a frame through that is on it. The sender's cable
// may have been pulled since.
func (s *Sim) carries(from, to *Board) bool {
	switch {
	case to.dropIn, to.deafTo(from):
		return false
	case s.grouped && from.group != to.group:
		return false
	case s.cuts != nil && s.cuts[s.pair(from, to)]:
		return false
	}
	return true
}

// datagram is a message on the wire. All receivers share it.
type datagram struct {
	from   *Board
	m      wire.Message
	kind   Kind
	slot   uint32
	copies int // that are still to arrive, and the sender while it sends
	number uint64
	sent   election.Instant
	lost   bitset // the boards that a flood does not reach
	to     wire.ID
	way    way
	fate   doomed
	last   func() // called when no copy is under way any more
}

// way is how a datagram gets to its receivers.
type way uint8

const (
	wayMulticast way = iota
	wayBroadcast
	wayUnicast
)

// bitset is a set of boards, of which there may be evenBoards.
type bitset [evenBoards / 64]uint64

const evenBoards = 2 * (wire.MaxBoards + 1)

func (s *bitset) add(n uint16)      { s[n/64] |= 1 << (n % 64) }
func (s *bitset) has(n uint16) bool { return s[n/64]&(1<<(n%64)) != 0 }

// datagram returns a free one.
func (s *Sim) datagram() *datagram {
	if len(s.spare) == 0 {
		const some = 8
		more := make([]datagram, some)
		for i := range more {
			more[i].slot = s.datagrams.put(&more[i])
			s.spare = append(s.spare, &more[i])
		}
	}
	d := s.spare[len(s.spare)-1]
	s.spare = s.spare[:len(s.spare)-1]
	return d
}

// drop says that one copy is not under way any more.
func (s *Sim) drop(d *datagram) {
	if d.copies--; d.copies > 0 {
		return
	}
	if last := d.last; last != nil {
		d.last = nil
		last()
	}
	s.spare = append(s.spare, d)
}

// transmit puts a datagram on the wire.
func (b *Board) transmit(e *election.Effect) {
	s := b.sim
	b.sequence++
	if e.Beat != 0 {
		b.core.Sent(e.Beat, b.sequence)
	}
	s.sent++
	d := s.datagram()
	own(&d.m, &e.Message)
	d.m.Incarnation, d.m.Sequence = b.Config.Incarnation, b.sequence
	to := e.To
	if e.Floating {
		to = s.owner(b)
	}
	d.from, d.to, d.number, d.sent, d.copies = b, to, s.sent, s.now, 1
	d.way = wayMulticast
	if to != wire.Nobody {
		d.way = wayUnicast
	}
	d.kind = s.kindOf(b, to, &d.m)
	if to != unassigned { // else nothing leaves: nobody answers the ARP request before it
		s.Packets[d.m.Type]++
		s.count(b, d.kind, to, e.Audience)
	}
	s.observeSend(&d.m)
	if s.Trace != nil && to != unassigned {
		s.traceSend(d, e)
	}
	if len(b.afterBeat) > 0 && d.kind == Kind(wire.TypeHeartbeat) {
		d.last = b.afterHeartbeat()
	}
	d.fate = b.lose.count(&d.m)
	s.put(d)
	if e.Broadcast && s.Broadcast != nil {
		s.Broadcast(&d.m)
	}
	// On a wire that loses nothing the copy would be a replay for everybody.
	if e.Broadcast && (s.wire.Loss > 0 || s.noMulticast > 0) {
		s.putCopy(d)
	}
	s.drop(d)
}

// put puts a datagram on the wire.
func (s *Sim) put(d *datagram) {
	b := d.from
	switch {
	case !b.plugged || b.dropOut:
		s.nowhere(d)
	case d.to == wire.Nobody && s.wire.even() && len(s.boards) <= evenBoards:
		s.broadcast(d)
	default:
		for _, other := range s.boards {
			if other != b && (d.to == wire.Nobody || d.to == other.Config.ID) {
				s.deliver(d, other)
			}
		}
	}
}

// putCopy sends a copy of a multicast by broadcast.
func (s *Sim) putCopy(d *datagram) {
	c := s.datagram()
	own(&c.m, &d.m)
	c.from, c.to, c.number, c.sent, c.copies = d.from, d.to, d.number, d.sent, 1
	c.kind, c.fate, c.way = d.kind, d.fate, wayBroadcast
	s.put(c)
	s.drop(c)
}

// own copies a message with its lists, which the sender's core may use again while
// the copy is under way. Lists that the copy has already are used again too.
func own(to, from *wire.Message) {
	standings, trust, candidates := to.Report.Standings, to.OK.Trust, to.Coordinator.Candidates
	*to = *from
	to.Report.Standings = append(standings[:0], from.Report.Standings...)
	to.OK.Trust = append(trust[:0], from.OK.Trust...)
	to.Coordinator.Candidates = append(candidates[:0], from.Coordinator.Candidates...)
}

// unassigned is the id of nobody who could get a datagram.
const unassigned = ^wire.ID(0)

// owner returns the board that a frame for the floating address finds: the one that has
// announced it last of those that the sender is in touch with.
func (s *Sim) owner(from *Board) wire.ID {
	holders := s.Summarise(s.now).Holders
	for i := range holders {
		if b := holders[len(holders)-1-i]; b != from && from.plugged && b.plugged && s.inTouch(from, b) {
			return b.Config.ID
		}
	}
	return unassigned
}

// nowhere is for a datagram of a board that the LAN does not hear.
func (s *Sim) nowhere(d *datagram) {
	if s.Arrivals == nil {
		return
	}
	for _, other := range s.boards {
		if other != d.from && (d.to == wire.Nobody || d.to == other.Config.ID) {
			s.arrival(d, other, FateCut)
		}
	}
}

// deliver decides what the wire does with one receiver's copy.
func (s *Sim) deliver(d *datagram, to *Board) {
	if d.fate.hits(to) {
		s.arrival(d, to, FateLost)
		return
	}
	copies := 1
	if s.wire.Duplicate > 0 && s.rng.Float64() < s.wire.Duplicate {
		copies = 2
	}
	for range copies {
		if s.wire.Loss > 0 && s.rng.Float64() < s.wire.Loss {
			s.arrival(d, to, FateLost)
			continue
		}
		d.copies++
		s.schedule(s.now+s.delay(), event{task: taskReach, slot: d.slot, board: to.number})
	}
}

// broadcast decides what an even wire does with all copies. They arrive in the
// order of the boards, as if each were an event of its own: nothing can come
// between events that were scheduled one after the other for the same time.
func (s *Sim) broadcast(d *datagram) {
	d.lost = bitset{}
	for _, other := range s.boards {
		if other == d.from {
			continue
		}
		if d.fate.hits(other) || s.wire.Loss > 0 && s.rng.Float64() < s.wire.Loss {
			d.lost.add(other.number)
			s.arrival(d, other, FateLost)
		}
	}
	d.copies++
	s.schedule(s.now+s.delay(), event{task: taskFlood, slot: d.slot})
}

func (s *Sim) flood(d *datagram) {
	for _, to := range s.boards {
		if to != d.from && !d.lost.has(to.number) {
			to.receive(d)
		}
	}
	s.drop(d)
}

// receive is where a copy reaches a board.
func (b *Board) receive(d *datagram) {
	s := b.sim
	switch {
	case !b.plugged || !s.carries(d.from, b), d.way == wayMulticast && b.losesMulticast:
		s.arrival(d, b, FateCut)
	case b.core == nil:
		s.arrival(d, b, FateDead)
	case d.from.peer != b.peer && !b.fresh(d):
		s.arrival(d, b, FateReplay)
		if d.way == wayMulticast {
			b.core.HeardMulticast(b.local(), d.m.Sender)
		}
	case b.frozen:
		d.copies++
		b.backlog = append(b.backlog, chore{datagram: d})
		s.arrival(d, b, FateWaits)
	default:
		s.arrival(d, b, FateArrived)
		b.take(d)
	}
}

// take hands a datagram to the core.
func (b *Board) take(d *datagram) {
	if d.from.peer == b.peer {
		b.act(b.core.DuplicateID(b.local(), &d.m))
		return
	}
	if d.way == wayMulticast {
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

// fresh does the replay guard's work, without the proofs: nobody lies here.
func (b *Board) fresh(d *datagram) bool {
	if int(d.from.peer) >= len(b.heard) {
		b.heard = append(b.heard, make([]seen, len(b.sim.peers)-len(b.heard))...)
	}
	h, m := &b.heard[d.from.peer], &d.m
	if h.incarnation != m.Incarnation {
		*h = seen{m.Incarnation, wire.NewWindow(m.Sequence, 0)}
		return true
	}
	return h.window.Admit(m.Sequence) == wire.Accepted
}
