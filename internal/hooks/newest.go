package hooks

import "sync"

// newest keeps the newest state for somebody who is busy.
type newest struct {
	wake chan struct{} // has an element when there is something new

	mu        sync.Mutex
	state     state
	taken     bool
	overtaken int // states that nobody has seen
}

func newNewest() *newest { return &newest{wake: make(chan struct{}, 1), taken: true} }

// put enters a state. It never blocks. One that says nothing new, such as that the address was acquired by
// a board that is the leader already, leaves the one before, with its event.
func (n *newest) put(s state) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.overtaken += int(s.Missed)
	if s.word == n.state.word && s.Leader == n.state.Leader {
		return
	}
	if !n.taken {
		n.overtaken++
	}
	n.state, n.taken = s, false
	select {
	case n.wake <- struct{}{}:
	default: // it is awake
	}
}

// take returns the newest state, whether it is another one than before, and how many nobody has seen
// since the last call.
func (n *newest) take() (s state, another bool, overtaken int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	another, overtaken = !n.taken, n.overtaken
	n.taken, n.overtaken = true, 0
	return n.state, another, overtaken
}
