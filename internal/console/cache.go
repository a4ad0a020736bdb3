package console

import (
	"context"
	"sync"
	"time"

	"topdog/internal/boottime"
)

// Cache asks for something once for all who want it at the same time, and keeps it for those who come soon after. Set
// the exported fields before the first [Cache.Get].
type Cache[T any] struct {
	Ask   func(context.Context) (T, error)
	News  func() uint64          // grows with everything that makes an answer out of date before its time
	Life  func() context.Context // when it ends, so do the requests
	Limit time.Duration          // for one request
	Gap   time.Duration          // the least from one request to the next
	Keep  time.Duration          // how long an answer is kept

	requests sync.WaitGroup

	mu     sync.Mutex
	newest *Answer[T]    // nil if there is none, or it was kept long enough
	done   chan struct{} // closed when the request in progress is over; nil if there is none
	began  time.Time     // when the last request was made
}

// Answer is what a [Cache] has been told.
type Answer[T any] struct {
	Value T
	err   error
	asked boottime.Instant // when the request was made
	News  uint64           // Cache.News then
}

// Get returns an answer that suits whoever wants it. It asks again until there is one, or until ctx ends. The error is
// that of the answer, or the reason for which ctx has ended.
func (c *Cache[T]) Get(ctx context.Context, suits func(*Answer[T]) bool) (value T, err error) {
	for {
		c.mu.Lock()
		if a := c.newest; a != nil && suits(a) {
			c.mu.Unlock()
			return a.Value, a.err
		}
		if c.done == nil {
			c.done = make(chan struct{})
			pause := c.Gap - time.Since(c.began)
			c.requests.Go(func() { c.request(pause) })
		}
		done := c.done
		c.mu.Unlock()
		select {
		case <-done:
		case <-ctx.Done():
			return value, context.Cause(ctx)
		}
	}
}

// request asks after a pause.
func (c *Cache[T]) request(pause time.Duration) {
	ctx, cancel := context.WithTimeout(c.Life(), c.Limit+max(0, pause))
	defer cancel()
	if pause > 0 {
		select {
		case <-time.After(pause):
		case <-ctx.Done():
		}
	}
	began := time.Now()
	a := &Answer[T]{asked: boottime.Now(), News: c.News()}
	a.Value, a.err = c.Ask(ctx)

	c.mu.Lock()
	defer c.mu.Unlock()
	c.began, c.newest = began, a
	close(c.done)
	c.done = nil
	// A board has little memory, and most of the time nobody asks.
	time.AfterFunc(c.Keep, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.newest == a {
			c.newest = nil
		}
	})
}
