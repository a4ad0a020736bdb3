package sim

import (
	"slices"
	"time"

	"topdog/election"
	"topdog/wire"
)

// Watch measures how long a LAN needs for a new leader. It is told of every change as
// it happens, so its times are exact, and nothing is looked at in between.
type Watch struct {
	sim    *Sim
	since  election.Instant
	leader *Board

	proclaimed, taken *election.Instant // nil if it has not happened yet
	agreed            *election.Instant // the first agreement that has ended, if it was not over at once
	settled           *election.Instant // forgotten when the agreement ends
}

// first keeps when something happens for the first time.
func first(at **election.Instant, now election.Instant) {
	if *at == nil {
		*at = &now
	}
}

// after is how long that took.
func (w *Watch) after(at *election.Instant) (time.Duration, bool) {
	if at == nil {
		return 0, false
	}
	return *at - w.since, true
}

// Watch begins to measure now: just before or just after the event that ends the time of the leader.
func (s *Sim) Watch() *Watch {
	w := &Watch{sim: s, since: s.now}
	s.watches = append(s.watches, w)
	w.review()
	return w
}

// Stop ends the measuring; what was measured stays.
func (w *Watch) Stop() {
	w.sim.watches = slices.DeleteFunc(w.sim.watches, func(other *Watch) bool { return other == w })
}

// Since is when it began.
func (w *Watch) Since() election.Instant { return w.since }

// Proclaimed is how long it took until a board was proclaimed, by COORDINATOR or
// LEADER; ok is false if none has been.
func (w *Watch) Proclaimed() (after time.Duration, ok bool) { return w.after(w.proclaimed) }

// Acquired is how long it took until a board acquired the address that did not have it.
func (w *Watch) Acquired() (after time.Duration, ok bool) { return w.after(w.taken) }

// Agreed is how long it took until for the first time all live boards followed one
// live leader. Live is who runs, has its cable in, and is not frozen. Where the LAN
// is cut, each part must agree on a leader in it.
//
// An agreement that is over in the same instant is none: so it does not matter in
// which order several boards crash at once.
func (w *Watch) Agreed() (after time.Duration, ok bool) {
	if w.agreed != nil {
		return w.after(w.agreed)
	}
	return w.Settled()
}

// Settled is like Agreed, for the agreement that lasts now.
func (w *Watch) Settled() (after time.Duration, ok bool) { return w.after(w.settled) }

// Leader is the first board that took the address, or nil.
func (w *Watch) Leader() *Board { return w.leader }

// review looks whether the live boards agree now. It is called after each change of what
// they agree on or who they are.
func (s *Sim) review() {
	for _, w := range s.watches {
		w.review()
	}
}

func (w *Watch) review() {
	switch s := w.sim; {
	case slices.ContainsFunc(s.boards, (*Board).alive) && !slices.ContainsFunc(s.boards, func(b *Board) bool { return !s.agrees(b) }):
		first(&w.settled, s.now)
	case w.settled != nil:
		if *w.settled < s.now {
			first(&w.agreed, *w.settled)
		}
		w.settled = nil
	}
}

func (b *Board) alive() bool { return b.reachable() && !b.frozen }

// agrees reports whether the board is dead, or follows a live leader whom all follow
// that it is in touch with.
func (s *Sim) agrees(b *Board) bool {
	if !b.alive() {
		return true
	}
	leader := s.peers[b.leader]
	if leader == nil || !leader.alive() || leader.role != election.Leader || b.role != election.Leader && b.role != election.Follower {
		return false
	}
	if b == leader {
		return s.alone(b)
	}
	return b.role == election.Follower && s.inTouch(b, leader)
}

// alone reports whether no other board that this leader is in touch with follows somebody else.
// Followers are compared by way of their leader: that is enough, and linear.
func (s *Sim) alone(leader *Board) bool {
	return !slices.ContainsFunc(s.boards, func(b *Board) bool {
		return b != leader && b.alive() && b.leader != leader.Config.ID && s.inTouch(b, leader)
	})
}

// inTouch reports whether two boards hear each other.
func (s *Sim) inTouch(a, b *Board) bool {
	return s.reaches(a, b) && s.reaches(b, a)
}

// observeSend and observeTake take in what the watches wait for.
func (s *Sim) observeSend(m *wire.Message) {
	if m.Type == wire.TypeCoordinator || m.Type == wire.TypeLeader {
		for _, w := range s.watches {
			first(&w.proclaimed, s.now)
		}
	}
}

func (s *Sim) observeTake(b *Board) {
	for _, w := range s.watches {
		first(&w.taken, s.now)
		if w.leader == nil {
			w.leader = b
		}
	}
}
