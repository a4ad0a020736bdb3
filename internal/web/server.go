package web

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Server serves routes. Set its fields before [Server.Run].
type Server struct {
	Routes Routes
	Limits Limits
	// Names returns the names of this machine, besides addresses and localhost. It may be nil.
	Names func() []string
	// HostHint says what to do if a request names another host.
	HostHint string
	// Report is told what nobody else would learn, such as a panic. It may be nil. Several goroutines call it.
	Report func(error)
}

func (s *Server) report(err error) {
	if s.Report != nil {
		s.Report(err)
	}
}

// Listen opens a TCP port. The address is "HOST:PORT"; without a host, the port is open on all addresses of this machine.
func Listen(ctx context.Context, address string) (net.Listener, error) {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	var hint string
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		hint = ": another program has that port; end it, or use another port"
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		hint = ": this machine does not have that address now; without an address, all are served"
	case errors.Is(err, syscall.EACCES):
		hint = ": use a port from 1024 on, or root"
	}
	if err != nil {
		return nil, fmt.Errorf("serve HTTP on %s: %w%s", address, err, hint)
	}
	return l, nil
}

// Run serves a port until ctx ends. That is no error. Run closes the port. The contexts of the requests end with ctx.
func (s *Server) Run(ctx context.Context, port net.Listener) error {
	l := &listener{Listener: port, places: Places{Total: s.Limits.Connections, Each: s.Limits.PerAddress}}
	server := s.Limits.Server(s, s.report)
	server.BaseContext = func(net.Listener) context.Context { return ctx }
	server.ConnState = l.note
	served := make(chan error, 1)
	go func() { served <- server.Serve(l) }()
	var failed error
	select {
	case <-ctx.Done():
	case failed = <-served:
		served <- http.ErrServerClosed
		failed = fmt.Errorf("serve HTTP on %s: %w", port.Addr(), failed)
	}
	linger, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.Limits.Linger)
	defer cancel()
	_ = server.Shutdown(linger) // late requests are no failure: they are ended next
	_ = server.Close()
	<-served
	return failed
}

// Server returns an HTTP server with these limits. It reports what net/http would log.
func (l *Limits) Server(handler http.Handler, report func(error)) *http.Server {
	return &http.Server{
		Handler:           handler,
		ReadHeaderTimeout: l.Request,
		ReadTimeout:       l.Request,
		WriteTimeout:      l.Request + l.Write,
		IdleTimeout:       l.Idle,
		MaxHeaderBytes:    l.HeaderBytes,
		ErrorLog:          log.New(reporter(report), "", 0),
		// net/http would answer "OPTIONS *" without checking the host, and without JSON.
		DisableGeneralOptionsHandler: true,
	}
}

// reporter reports what is written.
type reporter func(error)

func (report reporter) Write(p []byte) (int, error) {
	report(errors.New("HTTP: " + strings.TrimSpace(string(p))))
	return len(p), nil
}

// Limits keep clients, broken or hostile ones included, from costing more than a small board can spare.
type Limits struct {
	Connections int // at the same time
	PerAddress  int // from one address

	HeaderBytes int   // of a request; net/http adds 4 KiB of its own
	bodyBytes   int64 // of a request that may have a body

	Request time.Duration // for a request to arrive
	Write   time.Duration // for an answer to be made, and accepted by the client
	Idle    time.Duration // between two requests on a connection
	Linger  time.Duration // for requests that are in progress at the end
}

// DefaultLimits are the limits of the product. A browser has up to six connections to a host, and a connection costs
// about 20 kB. A page asks twice a second, so a client that says nothing for 5 s has gone: its machine may have died
// without a word.
var DefaultLimits = Limits{
	Connections: 256,
	PerAddress:  64,
	HeaderBytes: 8 << 10,
	bodyBytes:   4 << 10,
	Request:     2 * time.Second,
	Write:       5 * time.Second,
	Idle:        5 * time.Second,
	Linger:      500 * time.Millisecond,
}

// Places are the connections that are served at the same time. If there is no place for a new connection, another one is
// closed: a silent one, or else one of the client that has the most. So no client can keep others out, not even by opening
// connections on which it says nothing.
type Places struct {
	Total, Each int           // how many there are, and how many one client may have
	Young       time.Duration // how long after it was opened a connection does not count as silent

	mu    sync.Mutex
	taken []*Place // the oldest first
}

// Place is the place of one connection.
type Place struct {
	Client any          // whose it is: a value that can be compared
	Hangup func() error // closes the connection

	// The mutex of Places guards these.
	since  time.Time
	busy   bool // a request has arrived
	stream bool // the answer goes on until somebody ends it
}

// Take gives a connection its place, and reports whether there is one for it.
func (p *Places) Take(place *Place, now time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	count, most := map[any]int{}, place.Client
	for _, other := range p.taken {
		if count[other.Client]++; count[other.Client] > count[most] {
			most = other.Client
		}
	}
	own := count[place.Client]
	if full := len(p.taken) >= p.Total; full || own >= p.Each {
		i := slices.IndexFunc(p.taken, func(other *Place) bool {
			return !other.busy && now.Sub(other.since) >= p.Young && (other.Client == place.Client || own < p.Each && count[other.Client] > own)
		})
		if i < 0 && own < p.Each && count[most] > own+1 { // else this client would have more than the one that loses it
			i = slices.IndexFunc(p.taken, func(other *Place) bool { return other.Client == most })
		}
		if i < 0 {
			return false
		}
		_ = p.taken[i].Hangup()
		p.taken = slices.Delete(p.taken, i, i+1)
	}
	place.since = now
	p.taken = append(p.taken, place)
	return true
}

// Leave makes room for another connection.
func (p *Places) Leave(place *Place) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.taken = slices.DeleteFunc(p.taken, func(other *Place) bool { return other == place })
}

// SetBusy notes whether there is a request on a connection.
func (p *Places) SetBusy(place *Place, busy bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	place.busy = busy
}

// Stream makes a connection a stream. It reports false if its client has so many already.
func (p *Places) Stream(place *Place, most int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	count := 0
	for _, other := range p.taken {
		if other.stream && other.Client == place.Client {
			count++
		}
	}
	place.stream = count < most
	return place.stream
}

// listener accepts connections that have a place, and closes the others.
type listener struct {
	net.Listener
	places Places
}

// connection is a connection that has a place.
type connection struct {
	net.Conn
	Place
	listener *listener
}

// Accept waits for a connection that may stay.
func (l *listener) Accept() (net.Conn, error) {
	for {
		inner, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		c := &connection{inner, Place{Client: AddressOf(inner.RemoteAddr().String()), Hangup: inner.Close}, l}
		if l.places.Take(&c.Place, time.Now()) {
			return c, nil
		}
		_ = inner.Close()
	}
}

// note is http.Server.ConnState.
func (l *listener) note(conn net.Conn, state http.ConnState) {
	if c, ok := conn.(*connection); ok {
		l.places.SetBusy(&c.Place, state == http.StateActive)
	}
}

// Close closes the connection, so that another one may be accepted.
func (c *connection) Close() error {
	c.listener.places.Leave(&c.Place)
	return c.Conn.Close()
}

// AddressOf returns the address by which a client at HOST:PORT (http.Request.RemoteAddr) is counted, where each client has a
// limit. For IPv6 that is the network, since a machine may take any address in its network (RFC 4291, section 2.5.1). All
// clients without an address, such as those of a pipe, count as one.
func AddressOf(remote string) netip.Addr {
	from, err := netip.ParseAddrPort(remote)
	if err != nil {
		return netip.Addr{}
	}
	address := from.Addr().Unmap()
	if network, err := address.WithZone("").Prefix(64); err == nil && address.Is6() && !address.IsLinkLocalUnicast() {
		return network.Addr()
	}
	return address
}
