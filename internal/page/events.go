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
	maxReaders = 16 // of /v1/events at the same time
	// keptTransitions are for readers that are behind. A change of leader has about five.
	keptTransitions = 64
	// stall is how long a reader may accept nothing before its stream ends.
	stall = 10 * time.Second
)

// events passes the daemon's stream on to several readers, each at its own pace. A reader's stream ends when the daemon's
// does, as on the socket: the next one begins with a snapshot again.
type events struct {
	mu    sync.Mutex
	now   *stream       // nil while there is no daemon
	alive chan struct{} // closed at the next sign of life
}

// stream is what a daemon has told since its snapshot.
type stream struct {
	transitions *console.Transitions
	ended       chan struct{}
}

func newEvents() *events {
	return &events{alive: make(chan struct{})}
}

// heard passes on what has happened.
func (e *events) heard(t console.Transition) {
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case t.Event == console.EventDaemonGone:
		e.end()
	case t.Event == console.EventAlive:
		close(e.alive)
		e.alive = make(chan struct{})
	case t.Event == console.EventSnapshot, e.now != nil && t.Number != e.now.transitions.Newest()+1:
		// If this process was too slow and has missed some, another snapshot tells the readers how the board is.
		e.end()
		e.now = &stream{transitions: console.NewTransitions(keptTransitions, t.Number), ended: make(chan struct{})}
	case e.now != nil:
		e.now.transitions.Add(t)
	}
}

// end ends the stream, if there is one. e.mu is held.
func (e *events) end() {
	if e.now != nil {
		close(e.now.ended)
		e.now = nil
	}
}

// stream returns the present stream, or nil if there is none.
func (e *events) stream() *stream {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.now
}

// nextLife returns a channel that is closed at the next sign of life.
func (e *events) nextLife() <-chan struct{} {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.alive
}

// enter admits a reader, and returns a function for the reader to call when it has finished.
func (p *page) enter() (leave func(), err error) {
	select {
	case p.readers <- struct{}{}:
		return func() { <-p.readers }, nil
	default:
		return nil, &web.Error{
			Code:    http.StatusServiceUnavailable,
			Message: fmt.Sprintf("this page serves %d streams of events already", maxReaders),
			Hint:    "end one, or use GET /v1/status",
		}
	}
}

// serveEvents sends the status of the board, and then every transition.
func (p *page) serveEvents(g *group, w http.ResponseWriter, r *http.Request) error {
	alive, err := console.WantsLife(r)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/x-ndjson")
	if r.Method == http.MethodHead {
		return nil
	}
	leave, err := p.enter()
	if err != nil {
		return err
	}
	defer leave()
	s := g.events.stream() // before the status, so that no transition is missing after it
	a, err := g.source.shown(r.Context())
	if err != nil {
		return err
	}
	if s == nil {
		return unavailable("this page does not follow the topdog daemon at the moment", "try again, or use GET /v1/status")
	}
	_ = http.NewResponseController(w).SetReadDeadline(time.Time{}) // there is nothing more to read
	toReader := console.Stream{To: w, Stall: stall, Transitions: s.transitions, Stopped: s.ended}
	if alive {
		toReader.Alive = g.events.nextLife
	}
	toReader.Send(r.Context(), a.Status, a.Text)
	return nil
}
