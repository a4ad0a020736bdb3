package console

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"topdog/internal/web"
)

const (
	// clientTimeout is for one answer. It is longer than the server gives its backend, so that the server can still say
	// what is wrong.
	clientTimeout = 8 * time.Second
	// maxAnswer bounds an answer. The status of a group of 255 boards has about 80 kB.
	maxAnswer = 1 << 20
	// maxHeader bounds the header of an answer. The daemon's has 200 bytes.
	maxHeader = 16 << 10
)

// Client talks to the daemon of this board. Several goroutines may use one at once, and it needs no closing. Each
// method takes at most eight seconds unless its context says otherwise. The errors say what to do; errors.Is tells
// [ErrNotRunning].
type Client struct {
	path    string
	group   string        // that it asks about; "" for the only one, or for all
	timeout time.Duration // for one answer
	silence time.Duration // how long a stream may bring nothing
}

// Dial returns a client for the control socket at that path. The client connects anew for each request.
func Dial(path string) *Client {
	return &Client{path: path, timeout: clientTimeout, silence: aliveWithin}
}

// Of returns a client that asks about the group of that name. Without it, the daemon refuses what can be asked of one group
// only, if it has several.
func (c *Client) Of(group string) *Client {
	of := *c
	of.group = group
	return &of
}

// Groups asks for the names of the groups of this board, in the order of its configuration. A daemon of before there could
// be several has one.
func (c *Client) Groups(ctx context.Context) ([]string, error) {
	groups, err := ask[GroupNames](ctx, c, http.MethodGet, pathGroups, nil)
	if e, ok := errors.AsType[*web.Error](err); ok && e.Code == http.StatusNotFound {
		s, err := c.Status(ctx)
		return []string{s.Group}, err
	}
	if err == nil && len(groups.Groups) == 0 {
		err = c.badAnswer(errors.New("the answer has no group"))
	}
	return groups.Groups, err
}

// Status asks how the group is.
func (c *Client) Status(ctx context.Context) (Status, error) {
	return ask[Status](ctx, c, http.MethodGet, pathStatus, nil)
}

// StatusText asks how the group is, and returns the daemon's JSON unchanged. It may have keys that this version does not
// know.
func (c *Client) StatusText(ctx context.Context) ([]byte, error) {
	body, err := c.fetch(ctx, http.MethodGet, pathStatus, nil)
	if err == nil && !json.Valid(body) {
		err = c.badAnswer(errors.New("the answer is no JSON"))
	}
	return body, err
}

// Trace asks how the last changes of role went.
func (c *Client) Trace(ctx context.Context) (Trace, error) {
	return ask[Trace](ctx, c, http.MethodGet, pathTrace, nil)
}

// Scene asks what this board was told lately, and what it did.
func (c *Client) Scene(ctx context.Context) (Scene, error) {
	return ask[Scene](ctx, c, http.MethodGet, pathScene, nil)
}

// Resign has the board hand over the lead, and returns who leads then.
func (c *Client) Resign(ctx context.Context) (Handover, error) {
	return ask[Handover](ctx, c, http.MethodPost, pathResign, nil)
}

// Leave has the daemon hand over the lead, if it has it, and end.
func (c *Client) Leave(ctx context.Context) (Handover, error) {
	return ask[Handover](ctx, c, http.MethodPost, pathLeave, nil)
}

// Drain has the board leave the lead to others from now on.
func (c *Client) Drain(ctx context.Context, asked DrainRequest) (Handover, error) {
	return ask[Handover](ctx, c, http.MethodPost, pathDrain, asked)
}

// Undrain ends a drain.
func (c *Client) Undrain(ctx context.Context) (Done, error) {
	return ask[Done](ctx, c, http.MethodPost, pathUndrain, nil)
}

// Pause keeps the address where it is, on all boards.
func (c *Client) Pause(ctx context.Context, asked PauseRequest) (Done, error) {
	return ask[Done](ctx, c, http.MethodPost, pathPause, asked)
}

// Unpause ends a pause.
func (c *Client) Unpause(ctx context.Context) (Done, error) {
	return ask[Done](ctx, c, http.MethodPost, pathUnpause, nil)
}

// Keys asks which keys the boards accept.
func (c *Client) Keys(ctx context.Context) (Keys, error) {
	return ask[Keys](ctx, c, http.MethodGet, pathKeys, nil)
}

// ReloadKeys has the daemon read the key file again.
func (c *Client) ReloadKeys(ctx context.Context) (Done, error) {
	return ask[Done](ctx, c, http.MethodPost, pathReload, nil)
}

// Try has the daemon run the checks of a configuration once. Set a deadline: the checks may use their timeouts.
func (c *Client) Try(ctx context.Context, asked TryRequest) (Tried, error) {
	return ask[Tried](ctx, c, http.MethodPost, pathTry, asked)
}

// ask makes a request, with a body unless that is nil, and decodes the answer. It ignores keys that this version does not
// know: between an update and a restart, the daemon and its client may be of different versions.
func ask[A any](ctx context.Context, c *Client, method, path string, body any) (answer A, err error) {
	text, err := c.fetch(ctx, method, path, body)
	if err != nil {
		return answer, err
	}
	if err := json.Unmarshal(text, &answer); err != nil {
		return answer, c.badAnswer(err)
	}
	return answer, nil
}

// fetch makes a request, with a body unless that is nil, and returns the answer.
func (c *Client) fetch(ctx context.Context, method, path string, body any) ([]byte, error) {
	limit := c.timeout
	if end, limited := ctx.Deadline(); limited {
		limit = time.Until(end)
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	response, err := c.do(ctx, method, path, body)
	if err != nil {
		return nil, err
	}
	return c.read(response)
}

// do makes a request, and returns an error for every HTTP status but 200. The body of the answer can be read until ctx
// ends.
func (c *Client) do(ctx context.Context, method, path string, body any) (*http.Response, error) {
	var content bytes.Buffer
	if body != nil {
		if err := json.NewEncoder(&content).Encode(body); err != nil {
			return nil, err
		}
	}
	address := url.URL{Scheme: "http", Host: "topdog", Path: path, RawQuery: c.query(path)}
	request, err := http.NewRequestWithContext(ctx, method, address.String(), &content)
	if err != nil {
		return nil, err
	}
	response, err := c.exchange(request)
	if err != nil || response.StatusCode == http.StatusOK {
		return response, err
	}
	text, err := c.read(response)
	if err != nil {
		return nil, err
	}
	return nil, c.refused(path, response.StatusCode, text)
}

// query returns the query of a request: the group that it is about, and what a stream should have.
func (c *Client) query(path string) string {
	query := url.Values{}
	if c.group != "" {
		query.Set("group", c.group)
	}
	if path == pathEvents {
		query.Set("alive", "")
	}
	return query.Encode()
}

// read returns the body of an answer.
func (c *Client) read(response *http.Response) ([]byte, error) {
	body, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer+1))
	if err != nil {
		return nil, c.explain(causeOf(response.Request.Context(), err))
	}
	if len(body) > maxAnswer {
		return nil, c.explain(fmt.Errorf("the answer has more than %d bytes", maxAnswer))
	}
	return body, nil
}

// exchange sends a request over a connection of its own, which is closed when the request's context ends, so nobody has to
// close the body of the answer. A daemon that is asked too often answers and hangs up without reading the request.
// [http.Client] would report that as a broken connection, and not return the answer.
func (c *Client) exchange(request *http.Request) (*http.Response, error) {
	ctx := request.Context()
	conn, err := c.connect(ctx, request.Method == http.MethodGet)
	if err != nil {
		return nil, c.explain(causeOf(ctx, err))
	}
	context.AfterFunc(ctx, func() { conn.Close() })

	limited := &io.LimitedReader{R: conn, N: maxHeader}
	request.Close = true
	unsent := request.Write(conn) // there may be an answer all the same
	response, err := http.ReadResponse(bufio.NewReader(limited), request)
	switch {
	case err == nil:
		limited.N = math.MaxInt64 // whoever reads the body bounds it
		return response, nil
	case limited.N == 0:
		return nil, c.badAnswer(fmt.Errorf("its header has more than %d bytes", maxHeader))
	}
	return nil, c.explain(causeOf(ctx, cmp.Or(unsent, err)))
}

// causeOf returns why the context has ended, or err if it has not. The end of the context closes the connection, so err
// would only say that the connection is closed.
func causeOf(ctx context.Context, err error) error {
	return cmp.Or(context.Cause(ctx), err)
}

// connect connects to the control socket. If the user may not do that and only wants to look, connect tries the socket of
// the page, which only the page may use, and then the public socket.
func (c *Client) connect(ctx context.Context, look bool) (net.Conn, error) {
	conn, err := dial(ctx, c.path)
	if !errors.Is(err, fs.ErrPermission) {
		return conn, err
	}
	if !look {
		return nil, denied(fmt.Sprintf("user %d may look, but not give this board commands", os.Geteuid()), permissionHint)
	}
	for _, path := range []string{pagePath(c.path), PublicPath(c.path)} {
		conn, other := dial(ctx, path)
		if !errors.Is(other, fs.ErrPermission) && !errors.Is(other, fs.ErrNotExist) {
			return conn, other
		}
	}
	return nil, err // somebody has removed the sockets
}

// dial connects to a socket. It tries again while the kernel has no room for another connection.
func dial(ctx context.Context, path string) (net.Conn, error) {
	const again = 2 * time.Millisecond
	var d net.Dialer
	for {
		conn, err := d.DialContext(ctx, "unix", path)
		if !errors.Is(err, unix.EAGAIN) {
			return conn, err
		}
		select {
		case <-time.After(again):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// refused returns the error that an answer tells of.
func (c *Client) refused(path string, code int, body []byte) error {
	e := &web.Error{}
	if err := json.Unmarshal(body, e); err != nil || e.Message == "" {
		return c.badAnswer(fmt.Errorf("HTTP status %d", code))
	}
	e.Code = code
	if code == http.StatusNotFound && strings.Contains(e.Message, path) { // it lacks the path, and no group; the answer lists the paths that the daemon has, which do not help the caller
		e.Message = "the daemon is of another version than this program"
		e.Hint = "if topdog was just updated: systemctl restart topdog (on a witness: topdog-witness)"
	}
	return e
}

// failed returns an error with a hint. The message has a %s for the path of the socket.
func (c *Client) failed(err error, message, hint string) error {
	return &web.Error{Message: fmt.Sprintf(message, c.path), Hint: hint, Err: err}
}

func (c *Client) badAnswer(err error) error {
	return &web.Error{
		Message: fmt.Sprintf("what answers on %s does not talk like topdog (%v)", c.path, err),
		Hint:    "see whether `socket` in the configuration is the daemon's, and restart it if topdog was just updated",
		Err:     err,
	}
}

// explain returns an error that says in words why a request failed, and what to do.
func (c *Client) explain(err error) error {
	var refused *web.Error
	switch {
	case errors.As(err, &refused), errors.Is(err, context.Canceled):
		return err // it says what to do, or the caller has cancelled and knows why
	case errors.Is(err, context.DeadlineExceeded), os.IsTimeout(err):
		return c.failed(err, "the topdog daemon on %s did not answer in time", "journalctl -u topdog may tell why")
	case errors.Is(err, fs.ErrNotExist):
		return c.failed(ErrNotRunning, "the topdog daemon does not run here (no %s)",
			"systemctl start topdog (on a witness: topdog-witness)")
	case errors.Is(err, unix.ECONNREFUSED):
		return c.failed(ErrNotRunning, "the topdog daemon does not run any more (nobody answers on %s)",
			"systemctl restart topdog")
	case errors.Is(err, fs.ErrPermission):
		return c.failed(err, "no permission to talk to the topdog daemon on %s", permissionHint)
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, unix.ECONNRESET), errors.Is(err, unix.EPIPE):
		return c.failed(errors.Join(ErrNotRunning, err), "the topdog daemon on %s ended meanwhile", "systemctl status topdog")
	default:
		return fmt.Errorf("asking the topdog daemon on %s: %w", c.path, err)
	}
}
