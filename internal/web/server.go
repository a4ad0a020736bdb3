package web

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Server serves routes. Set the fields before [Server.Run].
type Server struct {
	Routes []Route
	Limits Limits
	// Names returns the names of this machine, besides numbers and localhost. It may be nil.
	Names func() []string
	// HostHint says what to do about a request that names another host.
	HostHint string
	// Report is told what nobody else would learn, such as a panic. It may be nil. Several goroutines call it.
	Report func(error)
}

func (s *Server) report(err error) {
	if s.Report != nil {
		s.Report(err)
	}
}

// Listen opens a TCP port. The address is "HOST:PORT"; without a host it is all addresses of this machine.
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

// Run serves a port until ctx ends, which is no error. The port is closed when it returns. The
// contexts of requests end with ctx.
func (s *Server) Run(ctx context.Context, port net.Listener) error {
	l := newListener(port, s.Limits)
	server := &http.Server{
		Handler:           s,
		ReadHeaderTimeout: s.Limits.Request,
		ReadTimeout:       s.Limits.Request,
		WriteTimeout:      s.Limits.Request + s.Limits.Write,
		IdleTimeout:       s.Limits.Idle,
		MaxHeaderBytes:    s.Limits.HeaderBytes,
		BaseContext:       func(net.Listener) context.Context { return ctx },
		ConnState:         l.note,
		ErrorLog:          log.New(reporter{s}, "", 0),
		// It would answer "OPTIONS *" itself, without a look at the host.
		DisableGeneralOptionsHandler: true,
	}
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
	_ = server.Shutdown(linger) // late requests are no failure, they are ended next
	_ = server.Close()
	<-served
	return failed
}

// reporter passes on what net/http would log.
type reporter struct{ s *Server }

func (r reporter) Write(p []byte) (int, error) {
	r.s.report(errors.New("HTTP: " + strings.TrimSpace(string(p))))
	return len(p), nil
}

// Limits keep clients, broken or hostile ones included, from costing more than a small board can
// spare.
type Limits struct {
	Connections int // at the same time
	PerAddress  int // of those, from one address

	HeaderBytes int   // of a request; net/http adds 4 KiB of its own
	bodyBytes   int64 // of a request that may have a body

	Request time.Duration // for a request to arrive
	Write   time.Duration // for an answer to be accepted by the client
	Idle    time.Duration // between two requests on a connection
	Linger  time.Duration // at the end, for requests in progress
}

// DefaultLimits are those of the product. A browser has up to six connections to a host, and a
// connection costs about 20 kB. Pages ask twice a second, so a client that says nothing for
// 5 s has gone: its board or this one may have died without a word.
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

// listener accepts a limited number of connections, in all and of each address. One more takes the
// place of the oldest that is silent, so that nobody keeps others out by saying nothing. If all are
// busy, the new one is closed.
type listener struct {
	net.Listener
	limits Limits

	mu     sync.Mutex
	open   []*connection // the oldest first
	counts map[netip.Addr]int
}

func newListener(inner net.Listener, limits Limits) *listener {
	return &listener{Listener: inner, limits: limits, counts: map[netip.Addr]int{}}
}

// Accept waits for a connection that may stay.
func (l *listener) Accept() (net.Conn, error) {
	for {
		inner, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		c := &connection{Conn: inner, from: addressOf(inner), listener: l}
		if l.admit(c) {
			return c, nil
		}
		_ = inner.Close()
	}
}

// admit gives a connection a place, if there is one or one can be made.
func (l *listener) admit(c *connection) bool {
	l.mu.Lock()
	var gone *connection
	switch {
	case l.counts[c.from] >= l.limits.PerAddress:
		if gone = l.silent(func(other *connection) bool { return other.from == c.from }); gone == nil {
			l.mu.Unlock()
			return false
		}
	case len(l.open) >= l.limits.Connections:
		if gone = l.silent(func(*connection) bool { return true }); gone == nil {
			l.mu.Unlock()
			return false
		}
	}
	if gone != nil {
		l.remove(gone)
	}
	l.open = append(l.open, c)
	l.counts[c.from]++
	l.mu.Unlock()
	if gone != nil {
		_ = gone.Conn.Close()
	}
	return true
}

// silent is the oldest of some connections on which no request is in progress. l.mu is held.
func (l *listener) silent(among func(*connection) bool) *connection {
	for _, c := range l.open {
		if !c.busy && among(c) {
			return c
		}
	}
	return nil
}

// remove frees the place of a connection, once. l.mu is held.
func (l *listener) remove(c *connection) {
	for i, other := range l.open {
		if other != c {
			continue
		}
		l.open = append(l.open[:i], l.open[i+1:]...)
		if l.counts[c.from]--; l.counts[c.from] == 0 {
			delete(l.counts, c.from)
		}
		return
	}
}

// note is http.Server.ConnState.
func (l *listener) note(conn net.Conn, state http.ConnState) {
	c, ok := conn.(*connection)
	if !ok {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	c.busy = state == http.StateActive
}

// connection is one that the listener counts.
type connection struct {
	net.Conn
	from     netip.Addr
	listener *listener
	busy     bool // the listener's mu guards it
}

// Close closes the connection, so that another one may be accepted.
func (c *connection) Close() error {
	c.listener.mu.Lock()
	c.listener.remove(c)
	c.listener.mu.Unlock()
	return c.Conn.Close()
}

// addressOf is where a connection comes from.
func addressOf(c net.Conn) netip.Addr {
	return AddressOf(c.RemoteAddr().String())
}

// AddressOf is the address with which a client at HOST:PORT (http.Request.RemoteAddr) counts where there is a limit for each.
// One that does not say so, as of a pipe, counts with all of its kind. Of IPv6 it is the network: a machine may take any
// address of it (RFC 4291, section 2.5.1).
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
