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
	// fresh is how old a status may be that is shown. Pages ask every 500 ms, so each of them
	// gets another one each time, and all together they cause two or three requests a second.
	fresh = 400 * time.Millisecond
	// answerWithin is how long the daemon may take. Its loop turns within milliseconds. Pages
	// give up after 700 ms, and should be told before that why there is nothing to show.
	answerWithin = 500 * time.Millisecond
	// shownWithin is how long whoever wants to see a status waits. What happens while the daemon
	// answers has it asked once more.
	shownWithin = 600 * time.Millisecond
	// requestGap is the least time between two requests to the daemon, whoever asks for whatever.
	requestGap = 50 * time.Millisecond
)

// answer is what the daemon has said, or why it has not.
type answer struct {
	text   []byte // the JSON, as the daemon has written it
	tag    string // changes with the text
	err    error
	asked  boottime.Instant // when the request was sent
	after  uint64           // source.events then
	status func() (*console.Status, error)
}

// source asks the daemon for its status, for everybody who wants to know. There is one request at a time.
// All who ask meanwhile wait for its answer, and it serves those who come soon after.
type source struct {
	ask func(context.Context) ([]byte, error)
	ctx context.Context // of all requests

	mu     sync.Mutex
	last   console.Transition // the last of the stream
	events uint64             // how often something has happened. What was asked before the last time is out of date
	newest *answer            // nil before the first
	flight chan struct{}      // closed when the request in progress is over; nil if there is none
	sent   boottime.Instant   // when the last request was
}

func newSource(ctx context.Context, ask func(context.Context) ([]byte, error)) *source {
	return &source{ask: ask, ctx: ctx, sent: boottime.Now().Add(-requestGap), last: console.Transition{Event: console.EventDaemonGone}}
}

// heard takes in what has happened.
func (s *source) heard(t console.Transition) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t.Status = nil
	s.last = t
	s.events++
}

// now is how the board is by the stream. If there is no stream, its event is EventDaemonGone.
func (s *source) now() console.Transition {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.last
}

// shown returns a status that is fresh enough to be shown.
func (s *source) shown(ctx context.Context) (*answer, error) {
	return s.until(ctx, shownWithin, func(a *answer) bool { return boottime.Now().Sub(a.asked) <= fresh })
}

// until returns the first answer that is good, and not older than the last thing that has happened. It asks
// as often as it must, within some time.
func (s *source) until(ctx context.Context, within time.Duration, good func(*answer) bool) (*answer, error) {
	late := time.NewTimer(within)
	defer late.Stop()
	for {
		s.mu.Lock()
		if a := s.newest; a != nil && a.after == s.events && good(a) {
			s.mu.Unlock()
			return a, a.err
		}
		if s.flight == nil {
			s.flight = make(chan struct{})
			go s.fly(requestGap - boottime.Now().Sub(s.sent))
		}
		landed := s.flight
		s.mu.Unlock()
		select {
		case <-landed:
		case <-late.C:
			return nil, unavailable(fmt.Sprintf("the topdog daemon has not answered within %v", within), "journalctl -u topdog may tell why")
		case <-ctx.Done():
			return nil, ctx.Err() // whoever asked has gone
		}
	}
}

// fly makes a request, after a pause.
func (s *source) fly(pause time.Duration) {
	if pause > 0 {
		<-time.After(pause)
	}
	s.mu.Lock()
	s.sent = boottime.Now()
	a := &answer{asked: s.sent, after: s.events}
	s.mu.Unlock()

	ctx, cancel := context.WithTimeout(s.ctx, answerWithin)
	defer cancel()
	if a.text, a.err = s.ask(ctx); a.err != nil {
		a.err = unavailable(console.Explain(a.err))
	}
	a.status = sync.OnceValues(a.decode)
	sum := sha256.Sum256(a.text)
	a.tag = fmt.Sprintf(`"%x"`, sum[:8])

	s.mu.Lock()
	defer s.mu.Unlock()
	s.newest = a
	close(s.flight)
	s.flight = nil
}

// unavailable refuses a request because there is no daemon to ask.
func unavailable(message, hint string) error {
	return &web.Error{Code: http.StatusServiceUnavailable, Message: message, Hint: hint}
}

// decode reads the text.
func (a *answer) decode() (*console.Status, error) {
	if a.err != nil {
		return nil, a.err
	}
	status := &console.Status{}
	if err := json.Unmarshal(a.text, status); err != nil {
		return nil, fmt.Errorf("the daemon's status cannot be read: %w", err)
	}
	return status, nil
}
