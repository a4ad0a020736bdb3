package console

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"sync"
	"syscall"
	"time"

	"topdog/internal/web"
)

// Backend is what the daemon does for one group. Several goroutines call its methods at once. They return soon after their
// context ends.
type Backend interface {
	// Status returns what the daemon knows now.
	Status(ctx context.Context) (Status, error)
	// Trace returns how the last changes of role went.
	Trace(ctx context.Context) (Trace, error)
	// Scene returns what this board was told lately, and what it did.
	Scene(ctx context.Context) (Scene, error)
	// Alive returns nil as soon as the daemon's loop has turned.
	Alive(ctx context.Context) error
	// Resign hands the lead over, and returns when another board has it.
	Resign(ctx context.Context) (Handover, error)
	// Leave ends the daemon, and returns when it has handed over.
	Leave(ctx context.Context) (Handover, error)
	// Drain has this board leave the lead to others from now on, and returns when another board has it.
	Drain(ctx context.Context, asked DrainRequest) (Handover, error)
	// Undrain ends a drain.
	Undrain(ctx context.Context) (Done, error)
	// Pause keeps the address where it is, on all boards. Unpause ends a pause.
	Pause(ctx context.Context, asked PauseRequest) (Done, error)
	Unpause(ctx context.Context) (Done, error)
	// Keys returns which keys this board and the others accept.
	Keys(ctx context.Context) (Keys, error)
	// ReloadKeys has the daemon read the key file again.
	ReloadKeys(ctx context.Context) (Done, error)
	// Try runs the checks of a configuration once, as the daemon runs its own.
	Try(ctx context.Context, asked TryRequest) (Tried, error)
}

// limits keep clients, broken or hostile ones included, from costing more than a small board can spare. Tests make them
// smaller.
type limits struct {
	control, public, page socketLimits
	web.Limits

	kept     int           // transitions, for readers that are behind
	status   time.Duration // for the backend to answer
	interval time.Duration // between two signs of life in a stream that wants them
}

const (
	bodyBytes    = 1 << 10         // of a request; few need a body
	stall        = time.Minute     // how long the reader of a stream may pause; it may be a person at a terminal
	handoverTime = 5 * time.Second // for the backend to act: a handover takes a round trip, and a few when packets are lost

	// freshStatus and freshTrace are how old a shared answer may be. A trace is ten times as much work.
	freshStatus = 100 * time.Millisecond
	freshTrace  = 500 * time.Millisecond
	// gap is the least time between two answers, if things happen so fast that each is out of date at once.
	gap = 10 * time.Millisecond
)

var defaultLimits = limits{
	// Whoever may connect here may give the board commands anyway. These limits are for mistakes, such as a script that asks
	// in a loop.
	control: socketLimits{
		each:     pace{burst: 50, every: 10 * time.Millisecond},
		all:      pace{burst: 100, every: 5 * time.Millisecond},
		patience: time.Second,
		total:    48,
		perUser:  24,
	},
	public: socketLimits{
		each:     pace{burst: 8, every: 100 * time.Millisecond},
		all:      pace{burst: 16, every: 20 * time.Millisecond},
		patience: 4 * time.Second,
		total:    32,
		perUser:  8,
	},
	page: socketLimits{
		each:     pace{burst: 16, every: 20 * time.Millisecond},
		all:      pace{burst: 16, every: 20 * time.Millisecond},
		patience: time.Second,
		total:    16,
		perUser:  16,
	},
	Limits: web.Limits{
		HeaderBytes: 4 << 10,
		Request:     2 * time.Second,
		Write:       5*time.Second + handoverTime,
		Linger:      500 * time.Millisecond,
	},
	kept:     256,
	status:   2 * time.Second,
	interval: time.Second,
}

// Server serves the control socket, the public socket and that of the page, while [Server.Run] runs. Only one Run may be
// active at a time. After it has failed, it may be called again.
type Server struct {
	// Report gets the errors that no client gets, such as a panic of a backend. Set it before Run. Several goroutines
	// call it.
	Report func(error)

	path     string
	groups   []*Group
	limits   limits
	identify func(syscall.Conn) (user uint32)

	ready                 chan struct{} // closed as soon as the sockets are served for the first time
	once                  sync.Once
	control, public, page *limiter
	life                  context.Context // of requests
}

// NewServer returns a server for the control socket at that path. Root, the daemon's own user and members of the socket's
// group may connect to it, look, and give the board commands. Everybody may look on the public socket.
func NewServer(path string) *Server { return newServer(path, defaultLimits) }

func newServer(path string, l limits) *Server {
	return &Server{
		Report: func(error) {}, path: path, limits: l, identify: userOf, ready: make(chan struct{}), life: context.Background(),
		control: newLimiter(l.control), public: newLimiter(l.public), page: newLimiter(l.page),
	}
}

// Run makes the sockets and serves them until ctx ends, which is no error. When it returns, they are gone, and so is
// every goroutine. It fails if a socket cannot be made, for example because another daemon has it.
func (s *Server) Run(ctx context.Context) error {
	sockets, err := s.listen()
	if err != nil {
		return err
	}
	// Requests outlive ctx for a moment: the answer "handed over" should arrive although the daemon stops.
	requests, abort := context.WithCancel(context.WithoutCancel(ctx))
	defer abort()
	s.life = requests

	var connections sync.WaitGroup // net/http does not wait for those that it closes
	srv := s.httpServer(ctx, requests, &connections)
	ended := make(chan error, len(sockets))
	var serving sync.WaitGroup
	for _, l := range sockets {
		serving.Go(func() { ended <- srv.Serve(l) })
	}
	s.once.Do(func() { close(s.ready) })

	var failed error
	select {
	case <-ctx.Done():
	case failed = <-ended:
		failed = fmt.Errorf("control socket %s: %w", s.path, failed)
	}

	// The sockets' files go first, so that the next client learns at once that no daemon runs.
	var removed error
	for _, l := range sockets {
		removed = errors.Join(removed, l.socket.remove())
	}
	linger, cancel := context.WithTimeout(requests, s.limits.Linger)
	defer cancel()
	_ = srv.Shutdown(linger) // late requests are no failure: they are ended next
	abort()
	_ = srv.Close()
	serving.Wait()
	connections.Wait()
	for _, g := range s.groups {
		g.statuses.requests.Wait()
		g.traces.requests.Wait()
	}
	return errors.Join(failed, removed)
}

// listen makes all sockets.
func (s *Server) listen() (all []*listener, err error) {
	for _, l := range []struct {
		*limiter
		path   string
		mode   fs.FileMode
		public bool
	}{
		{s.control, s.path, groupMode, false},
		{s.public, PublicPath(s.path), publicMode, true},
		{s.page, pagePath(s.path), groupMode, true},
	} {
		made, err := listen(l.path, l.mode)
		if err != nil {
			for _, other := range all {
				err = errors.Join(err, other.socket.remove(), other.Close())
			}
			return nil, err
		}
		all = append(all, &listener{socket: made, limiter: l.limiter, public: l.public, identify: s.identify})
	}
	if err := openToPage(pagePath(s.path)); err != nil {
		s.Report(err)
	}
	return all, nil
}

// httpServer returns the HTTP server with its limits. Streams of events end with the first context, requests with the
// second.
func (s *Server) httpServer(ctx, requests context.Context, connections *sync.WaitGroup) *http.Server {
	srv := s.limits.Server(s.handler(ctx), s.Report)
	srv.BaseContext = func(net.Listener) context.Context { return requests }
	srv.ConnContext = func(ctx context.Context, c net.Conn) context.Context {
		return context.WithValue(ctx, connectionKey{}, c)
	}
	srv.ConnState = func(_ net.Conn, state http.ConnState) {
		switch state {
		case http.StateNew:
			connections.Add(1)
		case http.StateClosed:
			connections.Done()
		}
	}
	srv.SetKeepAlivesEnabled(false) // every connection carries one request: see limiter
	return srv
}

type connectionKey struct{}

// connectionOf returns the connection of a request, given its context.
func connectionOf(ctx context.Context) *connection { return ctx.Value(connectionKey{}).(*connection) }
