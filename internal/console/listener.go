package console

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net"
	"net/http"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// admission is what one of the sockets lets in.
type admission struct {
	public bool // whoever connects may look, and no more
	places places
	// One connection is one request, so these are requests as well.
	each, all pace
	// patience is how long somebody may have to wait for his turn, or for a place.
	patience time.Duration
	// arrivals is at what pace connections are taken out of the kernel's queue at all. Most of those beyond the other
	// paces are only told so, which costs about a tenth of an answer.
	arrivals pace
}

const (
	// portion is for how long connections may be accepted in advance. To sleep after each would cost more than
	// to accept it.
	portion = 30 * time.Millisecond
	// placeEvery is how often a connection that has its turn looks for a place.
	placeEvery = 20 * time.Millisecond
	// backlog is how many connections wait in the kernel. Beyond that it tells those who connect to try again.
	backlog = 64
)

// listener accepts connections at a bounded pace, and hands on those that have a place.
type listener struct {
	*socket
	*admission
	identify func(c syscall.Conn, groups bool) (credentials, error)

	ready  chan *connection
	closed chan struct{}
	close  func() error

	mu      sync.Mutex
	turns   turns
	waiting map[*connection]*time.Timer // for their turn, or for a place; nil when the listener is closed
}

func newListener(s *socket, d *admission, identify func(c syscall.Conn, groups bool) (credentials, error)) *listener {
	l := &listener{
		socket: s, admission: d, identify: identify,
		// Those that had to go again before they were handed on are in here, too.
		ready: make(chan *connection, 2*d.places.connections.all), closed: make(chan struct{}),
		turns: turns{each: d.each, all: d.all, patience: d.patience}, waiting: map[*connection]*time.Timer{},
	}
	l.close = sync.OnceValue(func() error {
		close(l.closed)
		err := l.UnixListener.Close()
		l.forget()
		return err
	})
	return l
}

// Close ends Accept and admit, and hangs up on those who wait. It may be called more than once.
func (l *listener) Close() error { return l.close() }

// forget hangs up on those who wait, and on those who are not served yet.
func (l *listener) forget() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for c, timer := range l.waiting {
		timer.Stop()
		c.Close()
	}
	l.waiting = nil
	for {
		select {
		case c := <-l.ready:
			c.Close()
		default:
			return
		}
	}
}

// Accept waits for the next connection that is to be served.
func (l *listener) Accept() (net.Conn, error) {
	select {
	case c := <-l.ready:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

// admit accepts connections until the listener is closed, or fails.
func (l *listener) admit() error {
	var full time.Time
	for {
		c, err := l.AcceptUnix()
		now := time.Now()
		var at time.Time
		at, full = l.arrivals.turn(full, now)
		switch {
		case err == nil:
			l.arrived(c, now)
		case isTemporary(err): // no more files, for example
			at = now.Add(time.Second)
		default:
			return err
		}
		if wait := at.Sub(now); wait > portion {
			select {
			case <-time.After(wait):
			case <-l.closed:
			}
		}
	}
}

// isTemporary reports whether a failure passes without that the socket is made again.
func isTemporary(err error) bool {
	var errno syscall.Errno
	return errors.As(err, &errno) && (errno.Temporary() || errno == unix.ENOMEM || errno == unix.ENOBUFS)
}

// unknownUser is in the place of a user whom the kernel does not name.
const unknownUser = math.MaxUint32

// arrived has a connection served when its user has his turn.
func (l *listener) arrived(raw *net.UnixConn, now time.Time) {
	c := &connection{UnixConn: raw, admission: l.admission, place: place{user: unknownUser, since: now}}
	if caller, err := l.identify(raw, !l.public); err == nil {
		c.caller, c.known, c.user = caller, true, caller.uid
	}
	c.hangUp = func() { raw.Close() }
	l.mu.Lock()
	at, ok := l.turns.next(c.user, now)
	l.mu.Unlock()
	if !ok {
		c.refuse(fmt.Sprintf("user %d asks too often", c.user), "ask less often, or follow GET /v1/events")
		return
	}
	c.giveUp = at.Add(l.patience)
	if at.After(now) {
		l.later(c, at.Sub(now))
	} else {
		l.placed(c)
	}
}

// later has a connection wait.
func (l *listener) later(c *connection, wait time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.waiting == nil {
		c.Close()
		return
	}
	l.waiting[c] = time.AfterFunc(wait, func() {
		l.mu.Lock()
		delete(l.waiting, c)
		l.mu.Unlock()
		l.placed(c)
	})
}

// placed hands a connection on as soon as there is a place for it.
func (l *listener) placed(c *connection) {
	c.since = time.Now()
	switch {
	case l.places.take(&c.place):
		l.hand(c)
	case c.since.After(c.giveUp):
		c.refuse(fmt.Sprintf("user %d has all connections that one may have", c.user), "end one")
	default:
		l.later(c, placeEvery)
	}
}

// hand hands a connection on to whoever calls Accept.
func (l *listener) hand(c *connection) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.waiting != nil {
		select {
		case l.ready <- c:
			return
		default: // nobody calls it
		}
	}
	c.Close()
}

// connection is one that has a place.
type connection struct {
	*net.UnixConn
	place
	admission *admission
	caller    credentials
	known     bool // the kernel has said who calls
	giveUp    time.Time
}

// Close closes the connection, and gives its place back.
func (c *connection) Close() error {
	c.admission.places.leave(&c.place)
	return c.UnixConn.Close()
}

// refuse tells somebody that he is not served, whatever he wants to ask, and hangs up.
func (c *connection) refuse(message, hint string) {
	body, err := json.Marshal(failure{Error: message, Hint: hint})
	if err == nil {
		// It fits into the socket, so nobody waits for the other side.
		_, _ = fmt.Fprintf(c.UnixConn, "HTTP/1.1 %d %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s\n",
			http.StatusServiceUnavailable, http.StatusText(http.StatusServiceUnavailable), len(body)+1, body)
	}
	c.UnixConn.Close()
}
