package console

import (
	"context"
	"fmt"
	"net/http"
	"time"
)

// Changed tells everybody who listens to events that something has changed. It
// never blocks, and changes in quick succession become one event.
func (s *Server) Changed() {
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.changed)
	s.changed = make(chan struct{})
}

func (s *Server) nextChange() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.changed
}

// serveEvents sends a status at once, after each change, and every second.
func (s *Server) serveEvents(stopping context.Context, w *answer, r *http.Request) error {
	select {
	case s.streams <- struct{}{}:
		defer func() { <-s.streams }()
	default:
		return &requestError{
			code:    http.StatusServiceUnavailable,
			message: fmt.Sprintf("the daemon serves %d streams of events already", s.limits.streams),
			hint:    "end one, or use GET /v1/status",
		}
	}
	conn := http.NewResponseController(w)
	w.Header().Set("Content-Type", "application/x-ndjson")
	timer := time.NewTimer(s.limits.interval)
	defer timer.Stop()
	for {
		changed := s.nextChange() // before the status, so that none is missed
		status, err := s.status(r.Context())
		if err != nil {
			return err // once the stream has begun it becomes its last line
		}
		_ = conn.SetWriteDeadline(time.Now().Add(s.limits.write))
		if err := w.json(http.StatusOK, status); err != nil {
			return err
		}
		if err := conn.Flush(); err != nil {
			return nil // the client has gone
		}
		// The gap keeps a group that changes all the time from busying the board with telling so.
		if !pause(timer, s.limits.gap, nil, r.Context(), stopping) ||
			!pause(timer, s.limits.interval, changed, r.Context(), stopping) {
			return nil
		}
	}
}

// pause waits for d or for early, and reports false when one of the contexts ended.
func pause(timer *time.Timer, d time.Duration, early <-chan struct{}, request, stopping context.Context) bool {
	timer.Reset(d)
	select {
	case <-timer.C:
	case <-early:
	case <-request.Done():
		return false
	case <-stopping.Done():
		return false
	}
	return true
}
