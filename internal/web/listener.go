package web

import (
	"net"
	"net/http"
	"net/netip"
	"sync"
)

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
