// Package sim runs election cores on a simulated LAN, in virtual time: the very
// cores that the daemon runs. It is single-threaded, and one seed replays
// everything: an event heap, a pseudo-random wire, and nothing else.
package sim

import (
	"container/heap"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"topdog/election"
	"topdog/wire"
)

// Wire says how the simulated LAN treats a datagram.
type Wire struct {
	// Latency and Jitter make a datagram take Latency plus up to Jitter. If Jitter
	// is larger than the gap between two datagrams they overtake each other.
	Latency, Jitter time.Duration
	// Loss is the probability that one receiver does not get a datagram.
	Loss float64
	// Duplicate is the probability that one receiver gets it twice.
	Duplicate float64
}

// Sim is a simulated LAN with boards on it.
type Sim struct {
	// Trace, if set, is told of every event that a person would want to see.
	Trace func(Event)
	// Packets counts datagrams sent, by type; a multicast counts once.
	Packets map[wire.Type]int
	// Foreign makes probes find that a foreign machine has the address.
	Foreign bool

	now    election.Instant
	rng    *rand.Rand
	wire   Wire
	boards []*Board
	queue  events
	order  uint64
	holds  timeline
}

// Event is one line of a trace.
type Event struct {
	At    election.Instant
	Board *Board
	What  string
	// Message is set when the board sent one, to To or to all.
	Message *wire.Message
	To      wire.ID
}

// probeTakes is how long a simulated probe of the address takes.
const probeTakes = 100 * time.Millisecond

// New returns an empty LAN.
func New(seed uint64, w Wire) *Sim {
	return &Sim{
		Packets: make(map[wire.Type]int),
		rng:     rand.New(rand.NewPCG(seed, 0x746f70646f67)),
		wire:    w,
	}
}

// Board is one simulated board. Between its lives it keeps its configuration.
type Board struct {
	Config election.Config
	// Label is what traces call it: its id, unless two boards have the same one.
	Label string

	sim      *Sim
	core     *election.Core // nil while the process is dead
	plugged  bool           // the cable is in
	heard    map[wire.ID]seen
	sequence wire.Sequence
	lose     doomed
	muted    bool // the switch drops its frames, and its link stays up
	deaf     map[wire.ID]bool
	frozen   bool // the process does not run
	overdue  bool // something was due while it was frozen
	backlog  []func()
	holding  bool
	wake     uint64 // number of the last wake that was scheduled
	finished bool
}

// seen is a board's memory of another one, which makes duplicates harmless as
// the daemon's replay guard does.
type seen struct {
	incarnation wire.Incarnation
	newest      wire.Sequence
	window      uint64
}

// Add puts a board on the LAN: powered off, with its cable in.
func (s *Sim) Add(cfg election.Config) *Board {
	b := &Board{Config: cfg, Label: cfg.ID.String(), sim: s, plugged: true, deaf: make(map[wire.ID]bool)}
	s.boards = append(s.boards, b)
	return b
}

// Board returns the board with that label, or nil.
func (s *Sim) Board(label string) *Board {
	for _, b := range s.boards {
		if b.Label == label {
			return b
		}
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

// SetWire changes how the LAN treats datagrams from now on.
func (s *Sim) SetWire(w Wire) { s.wire = w }

// event is something that will happen.
type event struct {
	at    election.Instant
	order uint64 // of scheduling, so that equal times replay in the same order
	do    func()
}

type events []event

func (q events) Len() int { return len(q) }
func (q events) Less(i, j int) bool {
	if q[i].at != q[j].at {
		return q[i].at < q[j].at
	}
	return q[i].order < q[j].order
}
func (q events) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *events) Push(x any)   { *q = append(*q, x.(event)) }
func (q *events) Pop() any {
	old := *q
	last := old[len(old)-1]
	*q = old[:len(old)-1]
	return last
}

func (s *Sim) after(d time.Duration, do func()) {
	s.order++
	heap.Push(&s.queue, event{at: s.now + d, order: s.order, do: do})
}

// At has something done after d, while the simulation runs.
func (s *Sim) At(d time.Duration, do func()) { s.after(d, do) }

// Run lets d of virtual time pass.
func (s *Sim) Run(d time.Duration) {
	end := s.now + d
	for len(s.queue) > 0 && s.queue[0].at <= end {
		e := heap.Pop(&s.queue).(event)
		s.now = e.at
		e.do()
	}
	s.now = end
}

func (s *Sim) trace(b *Board, format string, args ...any) {
	if s.Trace != nil {
		s.Trace(Event{At: s.now, Board: b, What: fmt.Sprintf(format, args...)})
	}
}
