package console

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"net"
	"net/http"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// maxHeader bounds the header of an answer, of which the daemon's has 200 bytes.
const maxHeader = 16 << 10

// exchange makes a request over a connection of its own, which ends with the request's
// context, or when the answer's body is closed. A local socket needs no more. [http.Client]
// would bring proxies, redirects, connection pools and internationalised names with it,
// which is a fortieth of the program.
func (c *Client) exchange(request *http.Request) (*http.Response, error) {
	ctx := request.Context()
	conn, err := c.connect(ctx, request.Method == http.MethodGet)
	if err != nil {
		return nil, c.explain(causeOf(ctx, err))
	}
	answer := &answerBody{ctx: ctx, conn: conn}
	answer.release = context.AfterFunc(ctx, func() { conn.Close() })

	limited := &io.LimitedReader{R: conn, N: maxHeader}
	request.Close = true
	unsent := request.Write(conn)
	response, err := http.ReadResponse(bufio.NewReader(limited), request) // a daemon that has hung up may have said why
	if err != nil && unsent != nil {
		err = unsent
	}
	if err != nil {
		answer.Close()
		if limited.N == 0 {
			return nil, c.badAnswer(fmt.Errorf("its header has more than %d bytes", maxHeader))
		}
		return nil, c.explain(causeOf(ctx, err))
	}
	limited.N = math.MaxInt64 // who reads the body has limits of their own
	answer.body = response.Body
	response.Body = answer
	return response, nil
}

// connectAgain is how long to wait when so many connect that the kernel has no place for another one.
const connectAgain = 2 * time.Millisecond

// connect connects to the control socket. Whoever may not, and only wants to look, gets that of the page if he is the page,
// and else the public one.
func (c *Client) connect(ctx context.Context, look bool) (net.Conn, error) {
	conn, err := dial(ctx, c.path)
	switch {
	case !errors.Is(err, fs.ErrPermission):
		return conn, err
	case look:
		conn, other := dial(ctx, pagePath(c.path))
		if errors.Is(other, fs.ErrPermission) || errors.Is(other, fs.ErrNotExist) {
			conn, other = dial(ctx, PublicPath(c.path))
		}
		if errors.Is(other, fs.ErrNotExist) {
			return nil, err // the daemon is older than this program, or somebody has removed it
		}
		return conn, other
	}
	if _, absent := os.Lstat(PublicPath(c.path)); absent != nil {
		return nil, err
	}
	return nil, &requestError{message: mayOnlyLook(uint32(os.Geteuid())), hint: c.hint(), err: errors.Join(errDenied, err)}
}

// dial connects to a socket.
func dial(ctx context.Context, path string) (net.Conn, error) {
	var d net.Dialer
	for {
		conn, err := d.DialContext(ctx, "unix", path)
		if !errors.Is(err, unix.EAGAIN) {
			return conn, err
		}
		select {
		case <-time.After(connectAgain):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// answerBody is the body of an answer, with the connection from which it comes. Closing
// it hangs up; http's own body would first wait for the end of a stream that has none.
type answerBody struct {
	ctx     context.Context
	conn    net.Conn
	body    io.Reader
	release func() bool // ends the connection's dependence on ctx
}

func (a *answerBody) Read(p []byte) (int, error) {
	n, err := a.body.Read(p)
	if err != nil && err != io.EOF {
		err = causeOf(a.ctx, err)
	}
	return n, err
}

func (a *answerBody) Close() error {
	a.release()
	return a.conn.Close()
}

// causeOf is why the context ended, if it did, for then that has closed the connection
// and err tells only of that.
func causeOf(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return err
}
