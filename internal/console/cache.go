package console

import (
	"context"
	"sync"
	"time"

	"topdog/internal/boottime"
)

// shared is a text that many may ask for at once. It is made for all of them together.
type shared struct {
	fresh time.Duration // how old it may be
	// gap is the least time between two, though each of them is out of date at once.
	gap   time.Duration
	write func(context.Context) (made, error)
	news  func() uint64          // grows with all that makes a text out of date before its time
	life  func() context.Context // until when something may be made
	limit time.Duration          // for it to be made

	flights sync.WaitGroup // one for each that is being made

	mu     sync.Mutex
	newest *made         // nil if there is none, or it is too old
	flight chan struct{} // closed when what is being made is there; nil if nothing is
	began  time.Time     // when that was, the last time
}

// made is such a text.
type made struct {
	text  []byte
	first Transition // of a status: the first line of a stream that begins with it, without the status
	err   error

	asked boottime.Instant // when it was asked for
	news  uint64           // then
	lease time.Duration    // of a status: how long the lease in it lasts; 0 for no lease
}

// serves reports whether it can be told to somebody who asks at a moment for a text that is so old at most. A leader extends its
// lease all the time, and must not be told to have none.
func (m *made) serves(asked boottime.Instant, fresh time.Duration) bool {
	age := asked.Sub(m.asked)
	return age <= fresh && (m.lease == 0 || age < m.lease)
}

// get returns a text that is fresh: nothing has happened since, or it was asked for by this call or a later one.
func (s *shared) get(ctx context.Context) (*made, error) {
	arrived := boottime.Now()
	for {
		s.mu.Lock()
		if m := s.newest; m != nil && (m.asked >= arrived || m.err == nil && m.news == s.news() && m.serves(boottime.Now(), s.fresh)) {
			s.mu.Unlock()
			return m, m.err
		}
		if s.flight == nil {
			s.flight = make(chan struct{})
			pause := s.gap - time.Since(s.began)
			s.flights.Go(func() { s.fly(pause) })
		}
		landed := s.flight
		s.mu.Unlock()
		select {
		case <-landed:
		case <-ctx.Done():
			return nil, ctx.Err() // whoever asked has gone
		}
	}
}

// fly has a text made, after a pause.
func (s *shared) fly(pause time.Duration) {
	ctx, cancel := context.WithTimeout(s.life(), s.limit+max(0, pause))
	defer cancel()
	if pause > 0 {
		select {
		case <-time.After(pause):
		case <-ctx.Done():
		}
	}
	began, asked, news := time.Now(), boottime.Now(), s.news()
	m, err := s.write(ctx)
	m.asked, m.news, m.err = asked, news, late(err, s.limit)

	s.mu.Lock()
	defer s.mu.Unlock()
	s.began, s.newest = began, &m
	close(s.flight)
	s.flight = nil
	// A board has little memory, and most of the time nobody asks.
	time.AfterFunc(s.fresh, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.newest == &m {
			s.newest = nil
		}
	})
}
