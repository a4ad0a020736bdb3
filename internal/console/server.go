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
// goroutines at once and return soon after their context ends.
type Backend interface {
	// Status returns what the daemon knows now.
	Status(ctx context.Context) (Status, error)
	// Trace returns how the last changes of role went.
	Trace(ctx context.Context) (Trace, error)
	// Alive returns when the daemon's loop has turned.
	Alive(ctx context.Context) error
	// Resign hands the lead over, and returns when another board has it.
	Resign(ctx context.Context) (Handover, error)
	// Leave ends the daemon, and returns when it has handed over.
	Leave(ctx context.Context) (Handover, error)
	// Drain has this board leave the lead to others from now on, and returns when another board has it.
	Drain(ctx context.Context, asked DrainRequest) (Handover, error)
	// Undrain ends that.
	Undrain(ctx context.Context) (Done, error)
	// Pause has the address stay where it is, on all boards. Unpause ends that.
	Pause(ctx context.Context, asked PauseRequest) (Done, error)
	Unpause(ctx context.Context) (Done, error)
	// Keys returns which keys this board and the others accept.
	Keys(ctx context.Context) (Keys, error)
	// ReloadKeys has the daemon read the key file again.
	ReloadKeys(ctx context.Context) (Done, error)
	// Try runs the checks of a configuration once, as those of the daemon are run.
	Try(ctx context.Context, asked TryRequest) (Tried, error)
}

// limits keep callers, broken or hostile ones included, from costing more than a
// small board can spare. Tests make them smaller.
type limits struct {
	connections int // at the same time
	streams     int // of those, how many may be streams of events
	hookStreams int // beyond all of these, for streams that hooks depend on
	kept        int // transitions, for readers that are behind

	header  int   // bytes; net/http adds 4 KiB of its own
	body    int64 // bytes; few requests need one
	file    int64 // bytes of a body with a configuration file
	request time.Duration
	idle    time.Duration // between two requests
	write   time.Duration // for one answer
	stall   time.Duration // for a reader of a stream to go on reading; it may be a person who looks

	status time.Duration // for the backend to answer
	resign time.Duration // likewise: a handover takes a round trip, and a few when packets are lost
	linger time.Duration // at the end, for requests in progress

	interval time.Duration // between two signs of life in a stream that wants them
}

var defaultLimits = limits{
	connections: 32,
	streams:     16,
	hookStreams: 4, // `topdog hooks`, topdog-leader.service, and as many again while they are restarted
	kept:        256,
	header:      4 << 10,
	body:        1 << 10,
	file:        MaxTryBytes,
	request:     2 * time.Second,
	idle:        10 * time.Second,
	write:       5 * time.Second,
	stall:       time.Minute,
	status:      2 * time.Second,
	resign:      5 * time.Second,
	linger:      500 * time.Millisecond,
	interval:    time.Second,
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
	authorise func(credentials) error
	limits    limits
	identify  func(context.Context, net.Conn) context.Context

	ready       chan struct{} // closed as soon as the socket is served for the first time
	once        sync.Once
	streams     chan struct{} // one per stream of events
	hookStreams chan struct{} // likewise, of those with a reserved seat
	transitions *Transitions
}

// NewServer returns a server for the socket of that path and mode. Whoever may
// connect may ask. Root, the daemon's own user and members of the socket's group
// may also make the board resign.
func NewServer(path string, mode fs.FileMode, backend Backend) *Server {
	return newServer(path, mode, backend, defaultLimits)
}

func newServer(path string, mode fs.FileMode, backend Backend, l limits) *Server {
	s := &Server{
		path: path, mode: mode, backend: backend, limits: l, identify: withCredentials,
		ready: make(chan struct{}), streams: make(chan struct{}, l.streams),
		hookStreams: make(chan struct{}, l.hookStreams), transitions: NewTransitions(l.kept, 0),
	}
	s.authorise = s.authoriseBySocket
	return s
}

func (s *Server) report(err error) {
	if s.Report != nil {
		s.Report(err)
	}
}

// Run makes the socket and serves it until ctx ends, which is no error. The
// socket is gone when it returns, and so is every goroutine. Run fails when the
// socket cannot be made, for example because another daemon has it.
func (s *Server) Run(ctx context.Context) error {
	sock, err := listen(s.path, s.mode)
	if err != nil {
		return err
	}
	// Requests outlive ctx for a moment: the answer "handed over" should arrive
	// even though the daemon stops.
	requests, abort := context.WithCancel(context.WithoutCancel(ctx))
	defer abort()

	// net/http waits for no connection that it was told to Close.
	var connections sync.WaitGroup
	srv := s.httpServer(ctx, requests, &connections)
	served := make(chan error, 1)
	go func() { served <- srv.Serve(newListener(sock, s.limits.connections, s.limits.hookStreams)) }()
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

// httpServer returns the server with its limits. Streams of events end with the
// first context, requests with the second.
func (s *Server) httpServer(ctx, requests context.Context, connections *sync.WaitGroup) *http.Server {
	return &http.Server{
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
}

// connContext notes what is known of a connection before its first request.
func (s *Server) connContext(ctx context.Context, conn net.Conn) context.Context {
	if c, ok := conn.(*connection); ok && c.overLimit {
		ctx = context.WithValue(ctx, overLimitKey{}, true)
	}
	return s.identify(ctx, conn)
}

type overLimitKey struct{}

// reporter passes on what net/http would log.
type reporter struct{ s *Server }

func (r reporter) Write(p []byte) (int, error) {
	r.s.report(errors.New("control socket: " + strings.TrimSpace(string(p))))
	return len(p), nil
}
