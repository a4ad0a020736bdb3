package console

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"time"

	"topdog/internal/boottime"
)

// Transitions keep the last ones that were published. Each reader of a stream takes them from here at its own pace, so
// that a slow reader costs neither memory nor the publisher's time.
type Transitions struct {
	most int // are kept

	mu     sync.Mutex
	number uint64      // of the newest
	kept   []published // the newest last
	more   chan struct{}
}

// published is a transition, and when it happened.
type published struct {
	Transition
	at boottime.Instant
}

// NewTransitions keeps at most so many. The first one gets the number that comes after the given one.
func NewTransitions(most int, after uint64) *Transitions {
	return &Transitions{most: most, number: after, more: make(chan struct{})}
}

// Add gives a transition its number, and wakes whoever waits for one.
func (p *Transitions) Add(t Transition) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.number++
	t.Number = p.number
	if len(p.kept) == p.most {
		p.kept = slices.Delete(p.kept, 0, 1)
	}
	p.kept = append(p.kept, published{t, boottime.Now().Add(-time.Duration(t.AgeNs))})
	close(p.more)
	p.more = make(chan struct{})
}

// Newest returns the number of the newest transition; 0 if there has been none.
func (p *Transitions) Newest() uint64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.number
}

// after returns all that came after a number, and a channel that is closed when there is more. If they are not all kept
// any more, it returns only the newest, which tells how many are missing.
func (p *Transitions) after(number uint64) (news []Transition, more <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if number >= p.number {
		return nil, p.more
	}
	pending, missed := p.number-number, uint64(0)
	if pending > uint64(len(p.kept)) {
		pending, missed = 1, pending-1
	}
	now := boottime.Now()
	for _, t := range p.kept[len(p.kept)-int(pending):] {
		t.AgeNs, t.Missed = int64(now.Sub(t.at)), missed
		news = append(news, t.Transition)
	}
	return news, p.more
}

// Stream sends the transitions of a board to one reader, a line of JSON for each.
type Stream struct {
	To          http.ResponseWriter
	Stall       time.Duration // how long the reader may accept nothing
	Transitions *Transitions
	Stopped     <-chan struct{} // closed when there will be no more; those that there are already are still sent

	// Alive returns a channel that is closed when the next sign of life is due. It is nil if the reader wants none.
	Alive func() <-chan struct{}
	// isAlive returns why there is no sign of life then. It may be nil.
	isAlive func(context.Context) error
}

// errGone says that the reader has gone. That is no failure.
var errGone = errors.New("the reader has gone")

// snapshot is the first line of a stream, with the status as it was written.
type snapshot struct {
	Transition
	Status json.RawMessage `json:"status"`
}

// Send sends how the board is, and then every transition that comes after that, until ctx ends, the reader has gone or
// no more transitions come. The status is also given as the text that is sent of it. An error means that the stream
// cannot go on although somebody reads it.
func (s *Stream) Send(ctx context.Context, status *Status, text []byte) error {
	err := s.send(ctx, status.Snapshot(), text)
	if errors.Is(err, errGone) {
		return nil
	}
	return err
}

func (s *Stream) send(ctx context.Context, last Transition, text []byte) error {
	if err := s.write(&snapshot{last, text}); err != nil {
		return err
	}
	last.Status = nil
	var alive <-chan struct{}
	if s.Alive != nil {
		alive = s.Alive()
	}
	for stopped := false; ; {
		news, more := s.Transitions.after(last.Number)
		if len(news) > 0 {
			last = news[len(news)-1]
			lines := make([]any, len(news))
			for i := range news {
				lines[i] = &news[i]
			}
			if err := s.write(lines...); err != nil {
				return err
			}
		}
		if stopped {
			return nil
		}
		select {
		case <-more:
		case <-alive:
			if s.isAlive != nil {
				if err := s.isAlive(ctx); err != nil {
					return err
				}
			}
			alive = s.Alive()
			last.Event, last.AgeNs, last.Missed = EventAlive, 0, 0
			if err := s.write(&last); err != nil {
				return err
			}
		case <-s.Stopped:
			stopped = true // once more: the last transitions tell how it ended
		case <-ctx.Done():
			return nil
		}
	}
}

// write sends values, a line for each.
func (s *Stream) write(values ...any) error {
	conn := http.NewResponseController(s.To)
	_ = conn.SetWriteDeadline(time.Now().Add(s.Stall))
	for _, v := range values {
		line, err := encode(v)
		if err != nil {
			return err
		}
		if _, err := s.To.Write(line); err != nil {
			return errGone
		}
	}
	if conn.Flush() != nil {
		return errGone
	}
	return nil
}

// Publish adds a transition to all streams, with the next number. It never blocks.
func (s *Server) Publish(t Transition) { s.transitions.Add(t) }

// Published returns the number of the last transition. A [Status] has to tell it.
func (s *Server) Published() uint64 { return s.transitions.Newest() }

// wanted is what a client has asked for with /v1/events.
type wanted struct {
	forHooks bool // it is one of the streams that are kept for hooks
	alive    bool // with a sign of life every second
}

// wantedBy reads the query of a request.
func wantedBy(query url.Values) (wanted, error) {
	for name, values := range query {
		if name != "for" && name != "alive" || name == "for" && (len(values) != 1 || values[0] != "hooks") {
			return wanted{}, Refuse(http.StatusBadRequest, "the query means nothing here: "+excerpt(query.Encode()),
				"use /v1/events, with ?alive, ?for=hooks or ?alive&for=hooks if wanted")
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
	return Refuse(http.StatusServiceUnavailable,
		fmt.Sprintf("there may be %d streams of events %s", c.limiter.maxStreams(k), whose), "end one, or use GET /v1/status")
}

// serveEvents sends how the board is, and then every transition. It ends when the server is stopping.
func (s *Server) serveEvents(stopping context.Context, w *answer, r *http.Request) error {
	want, err := wantedBy(r.URL.Query())
	if err != nil {
		return err
	}
	if err := s.follow(connectionOf(r.Context()), want); err != nil {
		return err
	}
	made, err := s.shared(r.Context(), s.statuses)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/x-ndjson")
	stream := Stream{To: w, Stall: s.limits.stall, Transitions: s.transitions, Stopped: stopping.Done(), isAlive: s.isAlive}
	if want.alive {
		stream.Alive = func() <-chan struct{} {
			due := make(chan struct{})
			time.AfterFunc(s.limits.interval, func() { close(due) })
			return due
		}
	}
	return stream.Send(r.Context(), made.status, made.text) // an error becomes the last line
}

// isAlive returns an error unless the backend shows that it is.
func (s *Server) isAlive(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, s.limits.status)
	defer cancel()
	return late(s.backend.Alive(ctx), s.limits.status)
}
