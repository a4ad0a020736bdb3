package sim

import "topdog/election"

// event is something that will happen: do is called, or the datagram reaches the board, or the board's core is woken, if that is
// still wanted.
type event struct {
	key
	do       func()
	datagram *datagram
	board    *Board
}

// key is the time and order of an event; the zero one is of none.
type key struct {
	at    election.Instant
	order uint64 // of scheduling, so that equal times replay in the same order
}

func (k *key) before(other *key) bool {
	if k.at != other.at {
		return k.at < other.at
	}
	return k.order < other.order
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
		if !e.before(&h[above].key) {
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
	h[len(h)-1] = event{} // what it is about may go
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
			if h[j].before(&h[least].key) {
				least = j
			}
		}
		if !h[least].before(&last.key) {
			break
		}
		h[i] = h[least]
		i = least
	}
	h[i] = last
	return first
}
