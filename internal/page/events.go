package page

import (
	"fmt"
	"net/http"
	"sync"
	"time"

	"topdog/internal/console"
	"topdog/internal/web"
)

const (
	maxStreams = 16 // readers of /v1/events at the same time
	// keptTransitions are for readers that are behind. A change of leader has about five.
	keptTransitions = 64
	// stall is how long a reader may accept nothing.
	stall = 10 * time.Second
)

// events are the daemon's stream, for several readers. Each takes it at its own pace. A stream ends
// when the daemon's does, as on the socket: what comes after that begins with a snapshot again.
type events struct {
	places chan struct{} // one element per reader

	mu  sync.Mutex
	now *stream // nil while there is no daemon
}

// stream is what a daemon has told from its snapshot on.
type stream struct {
	transitions *console.Transitions
	ended       chan struct{}

	mu    sync.Mutex
	alive chan struct{} // closed at the next sign of life
}

func newEvents() *events { return &events{places: make(chan struct{}, maxStreams)} }

// heard passes on what has happened.
func (e *events) heard(t console.Transition) {
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case t.Event == console.EventDaemonGone:
		e.end()
	case t.Event == console.EventAlive:
		if e.now != nil {
			e.now.lives()
		}
	case t.Event == console.EventSnapshot:
		e.end()
		e.begin(t.Number)
	case e.now == nil:
	case t.Number != e.now.transitions.Newest()+1:
		// This process was too slow, and has missed some. Readers learn how the board is by another snapshot.
		e.end()
		e.begin(t.Number)
	default:
		e.now.transitions.Add(t)
	}
}

// begin begins a stream after the transition of that number.
func (e *events) begin(number uint64) {
	e.now = &stream{
		transitions: console.NewTransitions(keptTransitions, number),
		ended:       make(chan struct{}), alive: make(chan struct{}),
	}
}

// end ends the stream.
func (e *events) end() {
	if e.now != nil {
		close(e.now.ended)
		e.now = nil
	}
}

// stream is the one that runs; nil if there is none.
func (e *events) stream() *stream {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.now
}

// enter takes a place for a reader, and returns how to leave it.
func (e *events) enter() (leave func(), err error) {
	select {
	case e.places <- struct{}{}:
		return func() { <-e.places }, nil
	default:
		return nil, &web.Error{
			Code:    http.StatusServiceUnavailable,
			Message: fmt.Sprintf("this page serves %d streams of events already", maxStreams),
			Hint:    "end one, or use GET /v1/status",
		}
	}
}

// lives wakes who waits for a sign of life.
func (s *stream) lives() {
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.alive)
	s.alive = make(chan struct{})
}

// nextLife is closed at the next sign of life.
func (s *stream) nextLife() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.alive
}

// serveEvents sends how the board is, and then every transition.
func (p *page) serveEvents(w http.ResponseWriter, r *http.Request) error {
	alive, err := wantsLife(r)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/x-ndjson")
	if r.Method == http.MethodHead {
		return nil
	}
	leave, err := p.events.enter()
	if err != nil {
		return err
	}
	defer leave()
	s := p.events.stream() // before the status: none of its transitions may be missing then
	a, err := p.source.shown(r.Context())
	if err != nil {
		return err
	}
	status, err := a.status()
	if err != nil {
		return err
	}
	if s == nil {
		return unavailable("this page does not follow the topdog daemon at the moment", "try again, or use GET /v1/status")
	}
	_ = http.NewResponseController(w).SetReadDeadline(time.Time{}) // there is nothing more to read
	toReader := console.Stream{To: w, Stall: stall, Transitions: s.transitions, Stopped: s.ended}
	if alive {
		toReader.Alive = s.nextLife
	}
	_ = toReader.Send(r.Context(), status, a.text) // its error would be for a reader who has had the beginning
	return nil
}

// wantsLife reads the query of a request.
func wantsLife(r *http.Request) (alive bool, err error) {
	for name := range r.URL.Query() {
		if name != "alive" {
			return false, &web.Error{Code: http.StatusBadRequest, Message: "the query means nothing here", Hint: "use /v1/events, with ?alive if wanted"}
		}
		alive = true
	}
	return alive, nil
}
