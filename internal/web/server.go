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

// Listen opens a TCP port. The address is "HOST:PORT"; without a host, the port is that of all addresses of this machine.
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

// Run serves a port until ctx ends, which is no error. It closes the port. The contexts of the requests end with ctx.
func (s *Server) Run(ctx context.Context, port net.Listener) error {
	l := &listener{Listener: port, limits: s.Limits}
	server := &http.Server{
		Handler:           s,
		ReadHeaderTimeout: s.Limits.Request,
		ReadTimeout:       s.Limits.Request,
		WriteTimeout:      s.Limits.Request + s.Limits.Write,
		IdleTimeout:       s.Limits.Idle,
		MaxHeaderBytes:    s.Limits.HeaderBytes,
		BaseContext:       func(net.Listener) context.Context { return ctx },
		ConnState:         l.note,
		ErrorLog:          ErrorLog(s.report),
		// It would answer "OPTIONS *" without a look at the host.
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
	_ = server.Shutdown(linger) // late requests are no failure: they are ended next
	_ = server.Close()
	<-served
	return failed
}

// ErrorLog reports what net/http would log.
func ErrorLog(report func(error)) *log.Logger { return log.New(reporter(report), "", 0) }

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
	Write   time.Duration // for an answer to be accepted by the client
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

// listener accepts a limited number of connections, in all and from each address. One more takes the place of the
// oldest that is silent, so that nobody keeps others out by saying nothing. If all are busy, the new one is closed.
type listener struct {
	net.Listener
	limits Limits

	mu   sync.Mutex
	open []*connection // the oldest first
}

// connection is one that the listener counts.
type connection struct {
	net.Conn
	from     netip.Addr
	listener *listener
	busy     bool // a request is in progress; the listener's mu guards it
}

// Accept waits for a connection that may stay.
func (l *listener) Accept() (net.Conn, error) {
	for {
		inner, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		c := &connection{Conn: inner, from: AddressOf(inner.RemoteAddr().String()), listener: l}
		if l.admit(c) {
			return c, nil
		}
		_ = inner.Close()
	}
}

// admit reports whether a connection may stay. If there is no room for it, it closes a silent one: of the same address if
// that has as many as it may have, or else of any.
func (l *listener) admit(c *connection) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	count := 0
	for _, other := range l.open {
		if other.from == c.from {
			count++
		}
	}
	greedy := count >= l.limits.PerAddress
	if greedy || len(l.open) >= l.limits.Connections {
		i := slices.IndexFunc(l.open, func(other *connection) bool { return !other.busy && (!greedy || other.from == c.from) })
		if i < 0 {
			return false
		}
		_ = l.open[i].Conn.Close()
		l.open = slices.Delete(l.open, i, i+1)
	}
	l.open = append(l.open, c)
	return true
}

// note is http.Server.ConnState.
func (l *listener) note(conn net.Conn, state http.ConnState) {
	if c, ok := conn.(*connection); ok {
		l.mu.Lock()
		defer l.mu.Unlock()
		c.busy = state == http.StateActive
	}
}

// Close closes the connection, so that another one may be accepted.
func (c *connection) Close() error {
	l := c.listener
	l.mu.Lock()
	l.open = slices.DeleteFunc(l.open, func(other *connection) bool { return other == c })
	l.mu.Unlock()
	return c.Conn.Close()
}

// AddressOf returns the address as which a client at HOST:PORT (http.Request.RemoteAddr) counts, where there is a limit
// for each. Of IPv6 that is the network, since a machine may take any address of it (RFC 4291, section 2.5.1). Clients
// without an address, as of a pipe, count as one.
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
