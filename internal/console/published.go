package console

import (
	"sync"
	"time"

	"topdog/internal/boottime"
)

// Transitions are the last ones that were published. Each reader of a stream takes them from
// here at its own pace, so that a slow one costs neither memory nor the publisher's time.
type Transitions struct {
	mu     sync.Mutex
	began  uint64      // the number before that of the first
	number uint64      // of the newest
	kept   []published // the newest ones: number n is at (n-1) modulo the capacity
	more   chan struct{}
}

// published is a transition, and when it happened.
type published struct {
	Transition
	at boottime.Instant
}

// NewTransitions keeps so many. The first one gets the number that follows after.
func NewTransitions(kept int, after uint64) *Transitions {
	return &Transitions{kept: make([]published, kept), began: after, number: after, more: make(chan struct{})}
}

// Add gives a transition its number, and wakes whoever waits for one.
func (p *Transitions) Add(t Transition) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.number++
	t.Number = p.number
	p.kept[p.index(t.Number)] = published{t, boottime.Now().Add(-time.Duration(t.AgeNs))}
	close(p.more)
	p.more = make(chan struct{})
}

// index is where the transition of a number is.
func (p *Transitions) index(number uint64) int { return int((number - 1) % uint64(len(p.kept))) }

// Newest is the number of the newest; 0 if there has been none.
func (p *Transitions) Newest() uint64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.number
}

// After returns all that came after a number, and a channel that is closed when there is more. If
// they are not all here any more, it is the newest alone, which says how many are missing.
func (p *Transitions) After(number uint64) (news []Transition, more <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if number >= p.number {
		return nil, p.more
	}
	pending := p.number - number
	first, missed := number+1, uint64(0)
	if pending > min(uint64(len(p.kept)), p.number-p.began) {
		first, missed = p.number, pending-1
	}
	now := boottime.Now()
	for n := first; n <= p.number; n++ {
		entry := p.kept[p.index(n)]
		entry.AgeNs, entry.Missed = int64(now.Sub(entry.at)), missed
		news = append(news, entry.Transition)
	}
	return news, p.more
}
