package console

import (
	"net"
	"sync"
)

// listener accepts a limited number of connections. A few more are accepted because they
// may have a reserved seat, or to be told that there are too many. The rest waits in the
// kernel's queue.
type listener struct {
	*socket
	limit  int
	open   chan struct{} // one element per connection
	closed chan struct{}
	close  func() error
}

// refusals is how many connections beyond the limit are told that there are too many.
const refusals = 8

func newListener(s *socket, limit, reserved int) *listener {
	l := &listener{socket: s, limit: limit, open: make(chan struct{}, limit+reserved+refusals), closed: make(chan struct{})}
	l.close = sync.OnceValue(func() error {
		close(l.closed)
		return l.UnixListener.Close()
	})
	return l
}

// Accept waits until another connection is allowed, and then for one.
func (l *listener) Accept() (net.Conn, error) {
	select {
	case l.open <- struct{}{}:
	case <-l.closed:
		return nil, net.ErrClosed
	}
	c, err := l.AcceptUnix()
	if err != nil {
		<-l.open
		return nil, err
	}
	return &connection{UnixConn: c, overLimit: len(l.open) > l.limit, release: sync.OnceFunc(func() { <-l.open })}, nil
}

// Close ends Accept. It may be called more than once.
func (l *listener) Close() error { return l.close() }

// connection is one that the listener counts.
type connection struct {
	*net.UnixConn
	overLimit bool
	release   func()
}

// Close closes the connection, so that another one may be accepted.
func (c *connection) Close() error {
	defer c.release()
	return c.UnixConn.Close()
}
