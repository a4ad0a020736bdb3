package sim

import (
	"container/heap"

	"topdog/election"
)

// event is something that will happen: do is called, or the datagram reaches the board, or the board's core is woken.
type event struct {
	at       election.Instant
	order    uint64 // of scheduling, so that equal times replay in the same order
	do       func()
	datagram *datagram
	board    *Board
	place    int // in the queue, from 1; 0 if it is not there
}

// queue is a heap of events, of package heap.
type queue []*event

func (q queue) Len() int { return len(q) }

func (q queue) Less(i, j int) bool {
	if q[i].at != q[j].at {
		return q[i].at < q[j].at
	}
	return q[i].order < q[j].order
}

func (q queue) Swap(i, j int) {
	q[i], q[j] = q[j], q[i]
	q[i].place, q[j].place = i+1, j+1
}

func (q *queue) Push(e any) {
	*q = append(*q, e.(*event))
	(*q)[len(*q)-1].place = len(*q)
}

func (q *queue) Pop() any {
	last := len(*q) - 1
	e := (*q)[last]
	(*q)[last], e.place = nil, 0
	*q = (*q)[:last]
	return e
}

// schedule puts an event into the queue, behind all that are due at the same time. One that is there already is moved.
func (s *Sim) schedule(at election.Instant, e *event) {
	s.order++
	if e.at, e.order = at, s.order; e.place > 0 {
		heap.Fix(&s.queue, e.place-1)
	} else {
		heap.Push(&s.queue, e)
	}
}

// unschedule takes it out, if it is there.
func (s *Sim) unschedule(e *event) {
	if e.place > 0 {
		heap.Remove(&s.queue, e.place-1)
	}
}
