package console

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"
)

// Publish adds a transition to the streams of events, with the next number. It never blocks.
func (s *Server) Publish(t Transition) { s.transitions.Add(t) }

// Published is the number of the transition that was published last, which a [Status] has to tell.
func (s *Server) Published() uint64 { return s.transitions.Newest() }

// wanted is what a client wants who asks for events.
type wanted struct {
	forHooks bool // it is one of the streams that are kept for hooks
	alive    bool // it is told every second that the daemon's loop turns
}

// wantedBy reads the query of a request.
func wantedBy(query url.Values) (wanted, error) {
	for name, values := range query {
		if name != "for" && name != "alive" || name == "for" && (len(values) != 1 || values[0] != "hooks") {
			return wanted{}, &requestError{
				code:    http.StatusBadRequest,
				message: "the query means nothing here: " + excerpt(query.Encode()),
				hint:    "use /v1/events, with ?alive, ?for=hooks or ?alive&for=hooks if wanted",
			}
		}
	}
	return wanted{forHooks: query.Has("for"), alive: query.Has("alive")}, nil
}

// follow makes the connection of a request a stream. Not everybody may have a stream for hooks, or hooks would not get
// theirs.
func (s *Server) follow(c *connection, want wanted) error {
	k, whose := stream, "of each user"
	if want.forHooks {
		k, whose = hookStream, "for hooks"
		if err := s.mayAct(c); err != nil {
			return err
		}
	}
	if c.limiter.follow(c, k) {
		return nil
	}
	return &requestError{
		code:    http.StatusServiceUnavailable,
		message: fmt.Sprintf("there may be %d streams of events %s", c.limiter.maxStreams(k), whose),
		hint:    "end one, or use GET /v1/status",
	}
}

// snapshot is the first line, with the status as it was written.
type snapshot struct {
	Transition
	Status json.RawMessage `json:"status"`
}

// serveEvents sends how the board is, and then every transition.
func (s *Server) serveEvents(stopping context.Context, w *answer, r *http.Request) error {
	want, err := wantedBy(r.URL.Query())
	if err != nil {
		return err
	}
	if err := s.follow(connectionOf(r.Context()), want); err != nil {
		return err
	}
	status, err := s.statuses.get(r.Context())
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/x-ndjson")
	if err := s.sendEvents(w, &snapshot{status.first, status.text}); err != nil {
		return ignoreGone(err)
	}
	return ignoreGone(s.stream(stopping, w, r, status.first, want.alive))
}

// stream sends all transitions after the last one that was sent, until somebody ends it.
func (s *Server) stream(stopping context.Context, w *answer, r *http.Request, last Transition, alive bool) error {
	var tick <-chan time.Time
	if alive {
		ticker := time.NewTicker(s.limits.interval)
		defer ticker.Stop()
		tick = ticker.C
	}
	for ended := false; ; {
		news, more := s.transitions.After(last.Number)
		if len(news) > 0 {
			last = news[len(news)-1]
			if err := s.sendTransitions(w, news); err != nil {
				return err
			}
		}
		if ended {
			return nil
		}
		select {
		case <-more:
		case <-tick:
			if err := s.alive(r.Context()); err != nil {
				return err // it becomes the last line
			}
			last.Event, last.AgeNs, last.Missed = EventAlive, 0, 0
			if err := s.sendEvents(w, &last); err != nil {
				return err
			}
		case <-stopping.Done():
			ended = true // once more: the last transitions tell how it ended
		case <-r.Context().Done():
			return nil
		}
	}
}

// alive returns when the backend has shown that it is.
func (s *Server) alive(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, s.limits.status)
	defer cancel()
	return late(s.backend.Alive(ctx), s.limits.status)
}

// errGone says that the client has gone, which is no failure.
var errGone = errors.New("the client has gone")

func ignoreGone(err error) error {
	if errors.Is(err, errGone) {
		return nil
	}
	return err
}

// sendTransitions sends transitions, one per line.
func (s *Server) sendTransitions(w *answer, all []Transition) error {
	lines := make([]any, len(all))
	for i := range all {
		lines[i] = &all[i]
	}
	return s.sendEvents(w, lines...)
}

// sendEvents sends values, one per line.
func (s *Server) sendEvents(w *answer, lines ...any) error {
	conn := http.NewResponseController(w)
	_ = conn.SetWriteDeadline(time.Now().Add(s.limits.stall))
	for _, line := range lines {
		if err := w.json(http.StatusOK, line); err != nil {
			return err
		}
	}
	if conn.Flush() != nil {
		return errGone
	}
	return nil
}
