package console

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"
)

// Backend is the daemon behind the socket. Its methods are called by several
// goroutines at once and return soon after their context ends. An [*Error]
// chooses the HTTP status and the hint of the answer.
type Backend interface {
	// Status returns what the daemon knows now.
	Status(ctx context.Context) (Status, error)
	// Trace returns how the last changes of role went.
	Trace(ctx context.Context) (Trace, error)
	// Resign hands the lead over and says what happened: "handed over to pi2
	// (192.168.1.12)". [CallerFrom] tells who wanted it.
	Resign(ctx context.Context) (string, error)
}

// DefaultMode is the mode of the socket: for the daemon's user and its group.
const DefaultMode fs.FileMode = 0o660

// limits keep callers, broken or hostile ones included, from costing more than a
// small board can spare. Tests make them smaller.
type limits struct {
	connections int // at the same time
	streams     int // of those, how many may be streams of events

	header  int   // bytes; net/http adds 4 KiB of its own
	body    int64 // bytes; no request needs one
	request time.Duration
	idle    time.Duration // between two requests
	write   time.Duration // for one answer, or one event

	status time.Duration // for the backend to answer
	resign time.Duration // likewise: a handover takes a round trip, and a few when packets are lost
	linger time.Duration // at the end, for requests in progress

	beat time.Duration // events come at least this often
	gap  time.Duration // events are at least this far apart: a hundred a second are for people plenty
}

var defaultLimits = limits{
	connections: 32,
	streams:     16,
	header:      4 << 10,
	body:        1 << 10,
	request:     2 * time.Second,
	idle:        10 * time.Second,
	write:       5 * time.Second,
	status:      2 * time.Second,
	resign:      5 * time.Second,
	linger:      500 * time.Millisecond,
	beat:        time.Second,
	gap:         10 * time.Millisecond,
}

// Server serves the control socket. [Server.Run] does it, once at a time; when it
// has failed, it may be called again.
type Server struct {
	// Report is told what nobody else would learn, such as a panic of the
	// backend. It may be nil. Set it before Run; it is called by several goroutines.
	Report func(error)

	path      string
	mode      fs.FileMode
	backend   Backend
	authorise func(Caller) error
	limits    limits
	identify  func(context.Context, net.Conn) context.Context

	ready   chan struct{}
	once    sync.Once
	streams chan struct{} // one per stream of events

	mu      sync.Mutex
	changed chan struct{} // closed at the next change
}

// NewServer returns a server for the socket of that path and mode; mode 0 means
// [DefaultMode]. A nil authorise lets root, the daemon's own user and
// members of the socket's group make the board resign; another one returns an
// [*Error] for whom it refuses.
func NewServer(path string, mode fs.FileMode, backend Backend, authorise func(Caller) error) *Server {
	return newServer(path, mode, backend, authorise, defaultLimits)
}

func newServer(path string, mode fs.FileMode, backend Backend, authorise func(Caller) error, l limits) *Server {
	if mode == 0 {
		mode = DefaultMode
	}
	s := &Server{
		path: path, mode: mode, backend: backend, authorise: authorise, limits: l, identify: withCaller,
		ready: make(chan struct{}), streams: make(chan struct{}, l.streams), changed: make(chan struct{}),
	}
	if s.authorise == nil {
		s.authorise = s.authoriseBySocket
	}
	return s
}

// String names the task.
func (s *Server) String() string { return "control socket " + s.path }

// Ready is closed as soon as the socket is served for the first time.
func (s *Server) Ready() <-chan struct{} { return s.ready }

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

func (s *Server) report(err error) {
	if s.Report != nil {
		s.Report(err)
	}
}

// Run makes the socket and serves it until ctx ends, which is no error. The
// socket is gone when it returns, and so is every goroutine. Run fails when the
// socket cannot be made: errors.Is(err, ErrInUse) if another daemon has it.
func (s *Server) Run(ctx context.Context) error {
	sock, err := listen(s.path, s.mode)
	if err != nil {
		return err
	}
	door := newDoorkeeper(sock, s.limits.connections)

	// Requests outlive ctx for a moment: the answer "handed over" should arrive
	// even though the daemon stops.
	requests, abort := context.WithCancel(context.WithoutCancel(ctx))
	defer abort()

	// net/http waits for no connection that it was told to Close.
	var connections sync.WaitGroup
	srv := &http.Server{
		Handler:           s.handler(ctx),
		ReadHeaderTimeout: s.limits.request,
		ReadTimeout:       s.limits.request,
		WriteTimeout:      s.limits.write + max(s.limits.status, s.limits.resign),
		IdleTimeout:       s.limits.idle,
		MaxHeaderBytes:    s.limits.header,
		BaseContext:       func(net.Listener) context.Context { return requests },
		ConnContext:       s.connContext,
		ConnState: func(_ net.Conn, state http.ConnState) {
			switch state {
			case http.StateNew:
				connections.Add(1)
			case http.StateClosed:
				connections.Done()
			}
		},
		ErrorLog:                     log.New(reporter{s}, "", 0),
		DisableGeneralOptionsHandler: true, // which would answer "OPTIONS *" without JSON
	}

	served := make(chan error, 1)
	go func() { served <- srv.Serve(door) }()
	s.once.Do(func() { close(s.ready) })

	var failed error
	select {
	case <-ctx.Done():
	case failed = <-served:
		served <- http.ErrServerClosed
		failed = fmt.Errorf("control socket %s: %w", s.path, failed)
	}

	// The name goes first, so that the next client sees at once that nobody is here.
	removed := sock.remove()
	linger, cancel := context.WithTimeout(requests, s.limits.linger)
	defer cancel()
	_ = srv.Shutdown(linger) // late requests are no failure, they are ended next
	abort()
	_ = srv.Close()
	<-served
	connections.Wait()
	return errors.Join(failed, removed)
}

// connContext notes what is known of a connection before its first request.
func (s *Server) connContext(ctx context.Context, conn net.Conn) context.Context {
	if g, ok := conn.(*guest); ok && g.crowded {
		ctx = context.WithValue(ctx, crowdedKey{}, true)
	}
	return s.identify(ctx, conn)
}

type crowdedKey struct{}

// reporter passes on what net/http would log.
type reporter struct{ s *Server }

func (r reporter) Write(p []byte) (int, error) {
	r.s.report(errors.New("control socket: " + strings.TrimSpace(string(p))))
	return len(p), nil
}
