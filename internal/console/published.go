package console

import (
	"sync"
	"time"
)

// transitions are the last ones that were published. Each reader of a stream takes them from
// here at its own pace, so that a slow one costs neither memory nor the daemon's time.
type transitions struct {
	mu     sync.Mutex
	number uint64      // of the newest; 0 if there is none
	kept   []published // the newest ones: number n is at (n-1) modulo the capacity
	more   chan struct{}
}

// published is a transition, and when it was published.
type published struct {
	Transition
	at time.Time
}

func newTransitions(kept int) *transitions {
	return &transitions{kept: make([]published, 0, kept), more: make(chan struct{})}
}

// add gives a transition its number, and wakes whoever waits for one.
func (p *transitions) add(t Transition) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.number++
	t.Number = p.number
	entry := published{t, time.Now()}
	if len(p.kept) < cap(p.kept) {
		p.kept = append(p.kept, entry)
	} else {
		p.kept[(t.Number-1)%uint64(cap(p.kept))] = entry
	}
	close(p.more)
	p.more = make(chan struct{})
}

// newest is the number of the newest.
func (p *transitions) newest() uint64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.number
}

// after returns all that came after a number, and a channel that is closed when there is more. If
// they are not all here any more, it is the newest alone, which says how many are missing.
func (p *transitions) after(number uint64) (news []Transition, more <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if number >= p.number {
		return nil, p.more
	}
	pending := p.number - number
	first, missed := number+1, uint64(0)
	if pending > uint64(cap(p.kept)) {
		first, missed = p.number, pending-1
	}
	for n := first; n <= p.number; n++ {
		entry := p.kept[(n-1)%uint64(cap(p.kept))]
		entry.AgeNs, entry.Missed = int64(time.Since(entry.at)), missed
		news = append(news, entry.Transition)
	}
	return news, p.more
}
