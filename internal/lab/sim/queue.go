package sim

import "topdog/election"

// task says what an event does.
type task uint8

const (
	taskDo    task = iota // calls the function in the slot
	taskWake              // wakes the board's core, if that is still wanted
	taskReach             // the datagram in the slot reaches the board
)

// event is something that will happen. It has no pointers, so that the garbage
// collector need not look at the queue and moving events about costs nothing
// but the moving: what an event is about lies in a slot.
type event struct {
	at    election.Instant
	order uint64 // of scheduling, so that equal times replay in the same order
	slot  uint32
	board uint16
	task  task
}

func (e *event) before(other *event) bool {
	if e.at != other.at {
		return e.at < other.at
	}
	return e.order < other.order
}

// queue is a heap of events in which each has up to four below it: half as deep
// as a binary one, and four neighbours share a cache line or two. It is not
// container/heap because that one boxes every event.
type queue []event

const fanOut = 4

func (q *queue) push(e event) {
	*q = append(*q, e)
	h := *q
	i := len(h) - 1
	for i > 0 {
		above := (i - 1) / fanOut
		if !e.before(&h[above]) {
			break
		}
		h[i] = h[above]
		i = above
	}
	h[i] = e
}

// pop takes out the first event; there must be one.
func (q *queue) pop() event {
	h := *q
	first, last := h[0], h[len(h)-1]
	h = h[:len(h)-1]
	*q = h
	if len(h) == 0 {
		return first
	}
	i := 0
	for {
		below := fanOut*i + 1
		if below >= len(h) {
			break
		}
		least := below
		for j := below + 1; j < min(below+fanOut, len(h)); j++ {
			if h[j].before(&h[least]) {
				least = j
			}
		}
		if !h[least].before(&last) {
			break
		}
		h[i] = h[least]
		i = least
	}
	h[i] = last
	return first
}

// slots keeps what events are about, and uses what became free again.
type slots[T any] struct {
	all  []T
	free []uint32
}

func (s *slots[T]) put(v T) uint32 {
	if n := len(s.free); n > 0 {
		slot := s.free[n-1]
		s.free = s.free[:n-1]
		s.all[slot] = v
		return slot
	}
	s.all = append(s.all, v)
	return uint32(len(s.all) - 1)
}

func (s *slots[T]) take(slot uint32) T {
	var none T
	v := s.all[slot]
	s.all[slot] = none
	s.free = append(s.free, slot)
	return v
}
