package page

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"time"

	"topdog/internal/boottime"
	"topdog/internal/console"
	"topdog/internal/web"
)

const (
	// fresh is how old a status may be when it is shown. A page asks every 500 ms, so it gets another one each time, and all
	// pages together cause two or three requests a second.
	fresh = 400 * time.Millisecond
	// answerWithin is how long the daemon may take. Its loop turns within milliseconds. A page gives up after 700 ms, and
	// should have learned by then why there is nothing to show.
	answerWithin = 500 * time.Millisecond
	// shownWithin is how long a page waits for a status. If something happens while the daemon answers, the daemon is asked
	// once more.
	shownWithin = 600 * time.Millisecond
	// requestGap is the least time between two requests to the daemon.
	requestGap = 50 * time.Millisecond
)

// source knows the state of the board from the daemon's stream and from the daemon's status. All who want the status at the
// same time share one request.
type source struct {
	cache *console.Cache

	mu     sync.Mutex
	last   console.Transition // the last event of the stream
	events uint64             // how many events there were. A status from before the last one is out of date
}

func newSource(ctx context.Context, ask func(context.Context) ([]byte, error)) *source {
	s := &source{last: console.Transition{Event: console.EventDaemonGone}}
	s.cache = &console.Cache{
		News: s.news, Life: func() context.Context { return ctx }, Limit: answerWithin, Gap: requestGap, Keep: fresh,
		Ask: func(ctx context.Context, a *console.Answer) error {
			text, err := ask(ctx)
			if err != nil {
				return unavailable(web.Explain(err))
			}
			status := &console.Status{}
			if err := json.Unmarshal(text, status); err != nil {
				return fmt.Errorf("the daemon's status cannot be read: %w", err)
			}
			sum := sha256.Sum256(text)
			a.Text, a.Tag, a.Status = text, fmt.Sprintf(`"%x"`, sum[:8]), status
			return nil
		},
	}
	return s
}

func (s *source) news() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.events
}

// heard takes in an event.
func (s *source) heard(t console.Transition) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t.Status = nil
	s.last = t
	s.events++
}

// now returns the last event of the stream. If there is no stream, it is EventDaemonGone.
func (s *source) now() console.Transition {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.last
}

// shown returns an answer that is fresh enough to be shown.
func (s *source) shown(ctx context.Context) (*console.Answer, error) {
	return s.until(ctx, shownWithin, func(a *console.Answer) bool { return boottime.Now().Sub(a.Asked) <= fresh })
}

// until returns an answer that is good, and newer than the last event. It asks the daemon until there is one, or the time is
// over.
func (s *source) until(ctx context.Context, within time.Duration, good func(*console.Answer) bool) (*console.Answer, error) {
	late := unavailable(fmt.Sprintf("the topdog daemon has not answered within %v", within), "journalctl -u topdog may tell why")
	ctx, cancel := context.WithTimeoutCause(ctx, within, late)
	defer cancel()
	return s.cache.Get(ctx, func(a *console.Answer) bool { return a.News == s.news() && good(a) })
}

// unavailable refuses a request because there is no daemon to answer it.
func unavailable(message, hint string) error {
	return &web.Error{Code: http.StatusServiceUnavailable, Message: message, Hint: hint}
}
