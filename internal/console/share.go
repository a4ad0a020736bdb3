package console

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"sync"
	"time"

	"topdog/internal/boottime"
	"topdog/internal/web"
)

// Transitions keep the newest transitions. Each reader of a stream takes them from here at its own pace, so that a slow
// reader costs no memory, and does not delay whoever adds them.
type Transitions struct {
	most int // how many are kept

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

// NewTransitions returns Transitions that keep at most that many. The first one will have the number after + 1.
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

// after returns all transitions after the one of that number, and a channel that is closed when there are more. If not all
// of them are kept any more, it returns only the newest, with the number of those that are missing.
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
	Stopped     <-chan struct{} // closed when no more will be added; those that were added before are still sent

	// Alive returns a channel that is closed when the next sign of life is due. It is nil if the reader wants none.
	Alive func() <-chan struct{}
	// isAlive returns an error if there is no sign of life then. It may be nil.
	isAlive func(context.Context) error
}

// WantsLife reports whether the query of a request for a stream asks for signs of life.
func WantsLife(r *http.Request) (bool, error) {
	query := r.URL.Query()
	for name := range query {
		if name != "alive" && name != "group" {
			return false, Refuse(http.StatusBadRequest, "the query means nothing here: "+web.Excerpt(query.Encode()),
				"use /v1/events, with ?alive if wanted")
		}
	}
	return query.Has("alive"), nil
}

// errGone says that the reader has gone, which is not reported.
var errGone = errors.New("the reader has gone")

// snapshot is the first line of a stream, with a status that is already JSON.
type snapshot struct {
	Transition
	Status json.RawMessage `json:"status"`
}

// Send sends the state of the board, and then every transition after that, until ctx ends, the reader has gone or no more
// transitions come. The text is the status as JSON, which the first line contains. If the stream cannot go on for another
// reason, its last line says why.
func (s *Stream) Send(ctx context.Context, status *Status, text []byte) {
	if err := s.send(ctx, status.Snapshot(), text); err != nil && !errors.Is(err, errGone) {
		message, hint := web.Explain(err)
		_ = s.write(&web.Error{Message: message, Hint: hint})
	}
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
			stopped = true // look once more: the last transitions tell how it ended
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
		line, err := web.Encode(v)
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

// Cache asks once for all callers of [Cache.Get] who want the same answer at the same time, and keeps the answer for those
// who come soon after. Set the exported fields before the first Get.
type Cache struct {
	Ask   func(context.Context, *Answer) error // fills in what is asked for
	News  func() uint64                        // grows with everything that makes a fresh answer untrue
	Life  func() context.Context               // when it ends, so do the requests
	Limit time.Duration                        // for one request
	Gap   time.Duration                        // the least from one request to the next
	Keep  time.Duration                        // how long an answer is kept

	requests sync.WaitGroup

	mu     sync.Mutex
	newest *Answer       // nil if there is none, or it was kept long enough
	done   chan struct{} // closed when the request in progress is over; nil if there is none
	began  time.Time     // when the last request was made
}

// Answer is an answer that a [Cache] keeps.
type Answer struct {
	Text   []byte  // in JSON
	Tag    string  // changes with the text; "" if the asker needs none
	Status *Status // what the text says; nil if that is no status

	Asked boottime.Instant // when the request was made
	News  uint64           // Cache.News then
	err   error
}

// Get returns an answer for which suits returns true. It asks again until there is one, or until ctx ends. The error is
// that of the answer, or the cause of the end of ctx.
func (c *Cache) Get(ctx context.Context, suits func(*Answer) bool) (*Answer, error) {
	for {
		c.mu.Lock()
		if a := c.newest; a != nil && suits(a) {
			c.mu.Unlock()
			return a, a.err
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
			return nil, context.Cause(ctx)
		}
	}
}

// request asks after a pause.
func (c *Cache) request(pause time.Duration) {
	ctx, cancel := context.WithTimeout(c.Life(), c.Limit+max(0, pause))
	defer cancel()
	if pause > 0 {
		select {
		case <-time.After(pause):
		case <-ctx.Done():
		}
	}
	began := time.Now()
	a := &Answer{Asked: boottime.Now(), News: c.News()}
	a.err = c.Ask(ctx, a)

	c.mu.Lock()
	defer c.mu.Unlock()
	c.began, c.newest = began, a
	close(c.done)
	c.done = nil
	// Most of the time nobody asks, and a board has little memory for old answers.
	time.AfterFunc(c.Keep, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.newest == a {
			c.newest = nil
		}
	})
}
