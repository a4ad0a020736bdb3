package console

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"sync"
	"syscall"
	"time"

	"topdog/internal/web"
)

// socketLimits bound what the clients of one socket may cost.
type socketLimits struct {
	each, all pace          // of the requests of each user, and of all users together
	patience  time.Duration // how long a request waits for its turn

	total, perUser int // connections that are served at the same time
}

// pace allows a burst of events, and then one event per interval. This is the generic cell rate algorithm (ITU-T I.371),
// whose whole state is one point in time.
type pace struct {
	burst int
	every time.Duration
}

// next returns when an event that comes now may happen, and the state after that event.
func (p pace) next(state, now time.Time) (at, after time.Time) {
	if state.Before(now) {
		state = now
	}
	at, after = state.Add(-time.Duration(p.burst-1)*p.every), state.Add(p.every)
	if at.Before(now) {
		at = now
	}
	return at, after
}

// limiter applies the limits of one socket. Every connection carries one request, so to limit one is to limit the other.
type limiter struct {
	socketLimits

	mu    sync.Mutex
	paces map[uint32]time.Time // by user
	pace  time.Time            // of all users

	places web.Places
}

func newLimiter(l socketLimits) *limiter {
	return &limiter{socketLimits: l, places: web.Places{Total: l.total, Each: l.perUser, Young: young}}
}

// maxPaces is how many users the limiter remembers before it forgets those who have not asked lately. There can be no more
// than a few hundred who have, since the pace of all users bounds their requests.
const maxPaces = 64

// turn returns when the request of a user who connects now may be served. It returns false if that is too far in the future.
func (l *limiter) turn(user uint32, now time.Time) (at time.Time, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	at, own := l.each.next(l.paces[user], now)
	free, all := l.all.next(l.pace, now)
	if at.Before(free) {
		at = free
	}
	if at.Sub(now) > l.patience {
		return at, false
	}
	if l.paces == nil {
		l.paces = map[uint32]time.Time{}
	}
	if len(l.paces) >= maxPaces {
		for id, state := range l.paces {
			if state.Before(now) {
				delete(l.paces, id)
			}
		}
	}
	l.paces[user], l.pace = own, all
	return at, true
}

// young is how long a client may take to send its request before its connection may be given to another client. A
// program sends it at once, but on a busy board it may have to wait for a processor.
const young = 200 * time.Millisecond

// maxStreams returns how many streams of events each user may have. The other half of the connections stays free for
// requests.
func (l *limiter) maxStreams() int { return l.places.Each / 2 }

// connection is one client with its one request.
type connection struct {
	// UnixConn has CloseWrite. net/http uses it to let a client that is still sending read the whole answer.
	*net.UnixConn
	limiter *limiter
	public  bool      // it is not on the control socket, so the client may only look
	user    uint32    // unidentified if the kernel does not tell
	turn    time.Time // of its request
	place   web.Place
}

// Close closes the connection and makes room for another one.
func (c *connection) Close() error {
	c.limiter.places.Leave(&c.place)
	return c.UnixConn.Close()
}

// refuse answers a client without reading its request, and closes the connection. That costs about a tenth of what an answer
// costs.
func (c *connection) refuse(message, hint string) {
	if body, err := json.Marshal(&web.Error{Message: message, Hint: hint}); err == nil {
		const answer = "HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/json\r\nContent-Length: %d\r\n" +
			"Connection: close\r\n\r\n%s\n"
		_, _ = fmt.Fprintf(c.UnixConn, answer, len(body)+1, body) // it fits into the socket's buffer, so this never waits
	}
	_ = c.UnixConn.Close()
}

// await waits for the turn of the connection's request. It returns false if one of the contexts ends before that.
func (c *connection) await(request, stopping context.Context) bool {
	wait := time.Until(c.turn)
	if wait <= 0 {
		return true
	}
	select {
	case <-time.After(wait):
		return true
	case <-request.Done():
	case <-stopping.Done():
	}
	return false
}

const (
	// batch is how far ahead of the pace connections may be accepted. To sleep after each connection would cost more than to
	// accept it.
	batch = 30 * time.Millisecond
	// backlog is how many connections wait in the kernel. If there are more, connect(2) fails with EAGAIN.
	backlog = 64
)

// arrivals is the pace at which connections are accepted, including those that are then refused.
var arrivals = pace{burst: 32, every: 4 * time.Millisecond}

// listener accepts the connections of a socket, and hands those that have a place to net/http.
type listener struct {
	*socket
	*limiter
	public   bool
	identify func(syscall.Conn) (user uint32)
	arrived  time.Time // the state of arrivals
}

// Accept returns the next connection that is to be served. One goroutine at a time may call it.
func (l *listener) Accept() (net.Conn, error) {
	for {
		raw, err := l.AcceptUnix()
		if err != nil {
			return nil, err
		}
		var at time.Time
		at, l.arrived = arrivals.next(l.arrived, time.Now())
		if wait := time.Until(at); wait > batch {
			time.Sleep(wait)
		}
		c := &connection{UnixConn: raw, limiter: l.limiter, public: l.public, user: l.identify(raw)}
		c.place = web.Place{Client: c.user, Hangup: raw.Close}
		var ok bool
		if c.turn, ok = l.turn(c.user, time.Now()); !ok {
			c.refuse(fmt.Sprintf("user %d asks too often", c.user), "ask less often, or follow GET /v1/events")
			continue
		}
		if l.places.Take(&c.place, time.Now()) {
			return c, nil
		}
		c.refuse(fmt.Sprintf("user %d has as many connections as a user may have", c.user), "end one")
	}
}
