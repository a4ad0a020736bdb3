// Package sim runs election cores on a simulated LAN, in virtual time. They are the
// same cores that the daemon runs. The simulation is an event heap and a pseudo-random
// network on a single thread. So the same seed gives the same run.
//
// Faults have files of their own: those of a board are in board.go, those of datagrams
// in lan.go and delay.go, and those of clocks in clock.go. The measurements are in
// count.go, history.go and watch.go.
package sim

import (
	"container/heap"
	"math/rand/v2"
	"slices"
	"time"

	"topdog/election"
	"topdog/election/steps"
	"topdog/internal/lab/scene"
	"topdog/wire"
)

// Sim is a simulated LAN with boards on it.
type Sim struct {
	// Trace, if set, is told of every event that a person would want to see.
	Trace func(Event)
	// Arrivals, if set, is told what becomes of each copy of each datagram.
	Arrivals func(Arrival)
	// Loses, if set, loses those messages on the way to a board for which it says so.
	Loses func(from, to *Board, m *wire.Message) bool
	// Counts counts datagrams and messages that were sent since ResetCounts.
	Counts Counts
	// Wire is how the LAN treats datagrams from now on.
	Wire Wire
	// Second is the second path.
	Second SecondPath
	// Foreign makes probes find that a foreign machine has the address.
	Foreign bool

	now     election.Instant
	rng     *rand.Rand
	boards  []*Board
	queue   queue
	order   uint64
	history []situation
	steps   steps.List         // that boards take
	sent    uint64             // datagrams
	peers   map[wire.ID]*Board // the first board of each id
	watches []*Watch

	filters                   []scene.Filter
	leaving, arriving, shares []scene.Filter // the same, by where they lose a frame, and those that lose a share
}

// probeTakes is how long a simulated probe of the address takes.
const probeTakes = 100 * time.Millisecond

// New returns an empty LAN.
func New(seed uint64, w Wire) *Sim {
	return &Sim{
		rng:     rand.New(rand.NewPCG(seed, 0x746f70646f67)),
		Wire:    w,
		peers:   make(map[wire.ID]*Board),
		history: []situation{{nowhere: true}},
	}
}

// Add puts a board on the LAN: powered off, with its cable in.
func (s *Sim) Add(cfg election.Config) *Board {
	b := &Board{Config: cfg, Label: cfg.ID.String(), sim: s, machine: len(s.boards) + 1, plugged: true}
	if s.peers[cfg.ID] == nil {
		s.peers[cfg.ID] = b
	}
	b.peer = s.peers[cfg.ID].machine
	b.waking.board = b
	s.boards = append(s.boards, b)
	return b
}

// Board returns the board with that label, or nil.
func (s *Sim) Board(label string) *Board {
	if i := slices.IndexFunc(s.boards, func(b *Board) bool { return b.Label == label }); i >= 0 {
		return s.boards[i]
	}
	return nil
}

// Boards returns all boards in the order in which they were added.
func (s *Sim) Boards() []*Board { return slices.Clone(s.boards) }

// Now is the virtual time.
func (s *Sim) Now() election.Instant { return s.now }

// Rand is the simulation's source of randomness, for schedules of faults that
// the same seed shall replay.
func (s *Sim) Rand() *rand.Rand { return s.rng }

// At has something done after d, while the simulation runs.
func (s *Sim) At(d time.Duration, do func()) {
	s.schedule(s.now+d, &event{do: do})
}

// Run lets d of virtual time pass.
func (s *Sim) Run(d time.Duration) { s.RunUntil(nil, d) }

// RunBefore lets d pass like RunUntil, and leaves what is due at its end for later.
func (s *Sim) RunBefore(so func() bool, d time.Duration) {
	if d > 0 && !s.RunUntil(so, d-1) {
		s.now++
	}
}

// RunUntil lets time pass until something is so, but not more than atMost. It
// reports whether it is so. It looks after every event, so what it finds has just
// happened.
func (s *Sim) RunUntil(so func() bool, atMost time.Duration) bool {
	if so != nil && so() {
		return true
	}
	end := s.now + atMost
	for len(s.queue) > 0 && s.queue[0].at <= end {
		s.next()
		if so != nil && so() {
			return true
		}
	}
	s.now = end
	return false
}

// next has the next event happen.
func (s *Sim) next() {
	e := heap.Pop(&s.queue).(*event)
	s.now = e.at
	switch {
	case e.do != nil:
		e.do()
	case e.datagram != nil:
		e.board.receive(e.datagram)
	default:
		e.board.wake()
	}
}
