package console

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
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

const (
	// clientTimeout is for one answer. It is longer than the server gives its
	// backend, so that the one who knows more reports.
	clientTimeout = 8 * time.Second
	// maxAnswer bounds an answer. A group of 255 boards has about 80 kB.
	maxAnswer = 1 << 20
)

// Client talks to the daemon of this board. Its methods may be called by several
// goroutines at once, need no closing, and take at most eight seconds unless their
// context says otherwise. Their errors say what to do; errors.Is tells [ErrNotRunning].
type Client struct {
	path    string
	timeout time.Duration
}

// Dial returns a client for the socket of that path. It connects when it is used.
func Dial(path string) *Client {
	return &Client{path: path, timeout: clientTimeout}
}

// Status asks how the group is.
func (c *Client) Status(ctx context.Context) (Status, error) {
	var s Status
	err := c.call(ctx, http.MethodGet, pathStatus, nil, &s)
	return s, err
}

// StatusText asks how the group is, and returns the JSON as the daemon has written it. That may have
// keys that this version does not know.
func (c *Client) StatusText(ctx context.Context) ([]byte, error) {
	body, err := c.fetch(ctx, http.MethodGet, pathStatus, nil)
	if err == nil && !(isObject(body) && json.Valid(body)) {
		err = c.badAnswer(errNoObject)
	}
	return body, err
}

// Trace asks how the last changes of role went.
func (c *Client) Trace(ctx context.Context) (Trace, error) {
	var t Trace
	err := c.call(ctx, http.MethodGet, pathTrace, nil, &t)
	return t, err
}

// Resign makes the board hand over the lead, and says to whom.
func (c *Client) Resign(ctx context.Context) (Handover, error) { return c.handOver(ctx, pathResign) }

// Leave makes the daemon hand over, if it leads, and end.
func (c *Client) Leave(ctx context.Context) (Handover, error) { return c.handOver(ctx, pathLeave) }

func (c *Client) handOver(ctx context.Context, path string) (Handover, error) {
	var h Handover
	err := c.act(ctx, path, nil, &h, &h.Text)
	return h, err
}

// Drain has the board leave the lead to others from now on.
func (c *Client) Drain(ctx context.Context, asked DrainRequest) (Handover, error) {
	var h Handover
	err := c.act(ctx, pathDrain, asked, &h, &h.Text)
	return h, err
}

// Undrain ends that.
func (c *Client) Undrain(ctx context.Context) (Done, error) { return c.doneBy(ctx, pathUndrain, nil) }

// Pause has the address stay where it is, on all boards.
func (c *Client) Pause(ctx context.Context, asked PauseRequest) (Done, error) {
	return c.doneBy(ctx, pathPause, asked)
}

// Unpause ends that.
func (c *Client) Unpause(ctx context.Context) (Done, error) { return c.doneBy(ctx, pathUnpause, nil) }

// Keys asks which keys the boards accept.
func (c *Client) Keys(ctx context.Context) (Keys, error) {
	var k Keys
	err := c.call(ctx, http.MethodGet, pathKeys, nil, &k)
	return k, err
}

// ReloadKeys has the daemon read the key file again.
func (c *Client) ReloadKeys(ctx context.Context) (Done, error) {
	return c.doneBy(ctx, pathReload, nil)
}

// Try has the daemon run the checks of a configuration once. Set a deadline: they may use their timeouts.
func (c *Client) Try(ctx context.Context, asked TryRequest) (Tried, error) {
	var t Tried
	err := c.call(ctx, http.MethodPost, pathTry, asked, &t)
	return t, err
}

func (c *Client) doneBy(ctx context.Context, path string, asked any) (Done, error) {
	var d Done
	err := c.act(ctx, path, asked, &d, &d.Text)
	return d, err
}

// act has the daemon do something. What it says to that is in text afterwards.
func (c *Client) act(ctx context.Context, path string, asked, v any, text *string) error {
	err := c.call(ctx, http.MethodPost, path, asked, v)
	if err == nil && *text == "" {
		err = c.badAnswer(errors.New("the answer does not say what has happened"))
	}
	return err
}

// call makes a request with a body, unless that is nil, and decodes the answer into v.
func (c *Client) call(ctx context.Context, method, path string, asked, v any) error {
	body, err := c.fetch(ctx, method, path, asked)
	if err != nil {
		return err
	}
	if err := decode(body, v); err != nil {
		return c.badAnswer(err)
	}
	return nil
}

// fetch makes a request with a body, unless that is nil, and returns the answer.
func (c *Client) fetch(ctx context.Context, method, path string, asked any) ([]byte, error) {
	if _, limited := ctx.Deadline(); !limited {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, c.timeout)
		defer cancel()
	}
	response, err := c.do(ctx, method, path, asked)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	body, err := read(response)
	if err != nil {
		return nil, c.explain(err)
	}
	return body, nil
}

// do makes a request, and makes an error of every answer but 200.
func (c *Client) do(ctx context.Context, method, path string, asked any) (*http.Response, error) {
	var content io.Reader
	if asked != nil {
		text, err := json.Marshal(asked)
		if err != nil {
			return nil, err
		}
		content = bytes.NewReader(text)
	}
	request, err := http.NewRequestWithContext(ctx, method, "http://topdog"+path, content)
	if err != nil {
		return nil, err
	}
	response, err := c.exchange(request)
	if err != nil {
		return nil, err
	}
	if response.StatusCode == http.StatusOK {
		return response, nil
	}
	defer response.Body.Close()
	body, err := read(response)
	if err != nil {
		return nil, c.explain(err)
	}
	return nil, c.refused(response.StatusCode, body)
}

func read(response *http.Response) ([]byte, error) {
	body, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer+1))
	if err == nil && len(body) > maxAnswer {
		err = fmt.Errorf("the answer has more than %d bytes", maxAnswer)
	}
	return body, err
}

// errNoObject says that something else was answered.
var errNoObject = errors.New("the answer is no JSON object")

// decode takes an answer in. Fields that this version does not know are left
// out: the daemon may be newer than its client, between an update and a restart.
func decode(body []byte, v any) error {
	if !isObject(body) {
		return errNoObject
	}
	return json.Unmarshal(body, v)
}

// isObject reports whether a text begins as a JSON object does.
func isObject(body []byte) bool {
	body = bytes.TrimSpace(body)
	return len(body) > 0 && body[0] == '{'
}

// refused makes an error of an answer that is one.
func (c *Client) refused(code int, body []byte) error {
	var f failure
	if err := decode(body, &f); err != nil || f.Error == "" {
		return c.badAnswer(fmt.Errorf("HTTP status %d", code))
	}
	e := &requestError{code: code, message: f.Error, hint: f.Hint}
	switch code {
	case http.StatusForbidden:
		e.err = errDenied
	case http.StatusNotFound: // what it knows instead is of no use to the caller
		e.err, e.message = errOtherVersion, errOtherVersion.Error()
		e.hint = "if topdog was just updated: systemctl restart topdog (on a witness: topdog-witness)"
	}
	return e
}

func (c *Client) badAnswer(err error) error {
	return &requestError{
		message: fmt.Sprintf("what answers on %s does not talk like topdog (%v)", c.path, err),
		hint:    "see whether `socket` in the configuration is the daemon's, and restart it if topdog was just updated",
		err:     err,
	}
}

// ended says that the daemon went away in the middle; err may be nil.
func (c *Client) ended(err error) error {
	return &requestError{
		message: fmt.Sprintf("the topdog daemon on %s ended meanwhile", c.path),
		hint:    "systemctl status topdog",
		err:     errors.Join(ErrNotRunning, err),
	}
}

// explain says in words, and with what to do, why a request failed.
func (c *Client) explain(err error) error {
	var refused *requestError
	switch {
	case errors.As(err, &refused), errors.Is(err, context.Canceled):
		return err // it says so itself, or whoever cancelled knows why
	case errors.Is(err, context.DeadlineExceeded), os.IsTimeout(err):
		return &requestError{
			message: fmt.Sprintf("the topdog daemon on %s did not answer in time", c.path),
			hint:    "journalctl -u topdog may tell why",
			err:     err,
		}
	case errors.Is(err, fs.ErrNotExist):
		return &requestError{
			message: fmt.Sprintf("the topdog daemon does not run here (no %s)", c.path),
			hint:    "systemctl start topdog (on a witness: topdog-witness)",
			err:     ErrNotRunning,
		}
	case errors.Is(err, unix.ECONNREFUSED):
		return c.refusedByKernel()
	case errors.Is(err, fs.ErrPermission):
		return &requestError{
			message: fmt.Sprintf("no permission to talk to the topdog daemon on %s", c.path),
			hint:    c.hint(),
			err:     errors.Join(errDenied, err),
		}
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, unix.ECONNRESET), errors.Is(err, unix.EPIPE):
		return c.ended(err)
	default:
		return fmt.Errorf("asking the topdog daemon on %s: %w", c.path, err)
	}
}

// refusedByKernel tells the socket of a daemon that was killed from a file that
// is no socket; connect(2) says ECONNREFUSED for both.
func (c *Client) refusedByKernel() error {
	if info, err := os.Stat(c.path); err == nil && info.Mode().Type() != fs.ModeSocket {
		return &requestError{
			message: fmt.Sprintf("%s is no socket", c.path),
			hint:    "see `socket` in the configuration",
			err:     ErrNotRunning,
		}
	}
	return &requestError{
		message: fmt.Sprintf("the topdog daemon does not run any more (nobody answers on %s)", c.path),
		hint:    "systemctl restart topdog",
		err:     ErrNotRunning,
	}
}

// hint says how to become somebody who may connect.
func (c *Client) hint() string {
	if info, err := os.Stat(c.path); err == nil {
		if gid, ok := groupOf(info); ok && gid != 0 { // nobody should join the group root
			return "use sudo, or join " + groupName(gid) + " and log in again"
		}
	}
	return "use sudo"
}

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

// connect connects to the control socket. If the user may not, and only wants to look, it connects to the public one.
func (c *Client) connect(ctx context.Context, look bool) (net.Conn, error) {
	conn, err := dial(ctx, c.path)
	if !errors.Is(err, fs.ErrPermission) {
		return conn, err
	}
	if look {
		conn, other := dial(ctx, PublicPath(c.path))
		if errors.Is(other, fs.ErrNotExist) {
			return nil, err // the daemon is older than this program, or somebody has removed the socket
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
