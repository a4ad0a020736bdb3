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
// context says otherwise. Their errors say what to do; errors.Is tells
// [ErrNotRunning] and [ErrDenied], and errors.As an [*Error] of the daemon.
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
	err := c.call(ctx, http.MethodGet, pathStatus, &s)
	return s, err
}

// Trace asks how the last changes of role went.
func (c *Client) Trace(ctx context.Context) (Trace, error) {
	var t Trace
	err := c.call(ctx, http.MethodGet, pathTrace, &t)
	return t, err
}

// Resign makes the board hand over the lead and returns what happened.
func (c *Client) Resign(ctx context.Context) (string, error) {
	var r result
	err := c.call(ctx, http.MethodPost, pathResign, &r)
	if err == nil && r.Result == "" {
		err = c.nonsense(errors.New("the answer has no result"))
	}
	return r.Result, err
}

// Watch calls each with a status at once, after every change and every second,
// until ctx ends, each fails, or the daemon goes away; it returns why.
func (c *Client) Watch(ctx context.Context, each func(Status) error) error {
	caller := ctx
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	silence := time.AfterFunc(c.timeout, func() { cancel(context.DeadlineExceeded) })
	defer silence.Stop()

	response, err := c.do(ctx, http.MethodGet, pathEvents)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	lines := bufio.NewScanner(response.Body)
	lines.Buffer(nil, maxAnswer)
	lines.Split(wholeLines)
	for lines.Scan() {
		var event struct {
			Status
			failure
		}
		if err := json.Unmarshal(lines.Bytes(), &event); err != nil {
			return c.nonsense(err)
		}
		if event.Error != "" {
			return &Error{Message: event.Error, Hint: event.Hint}
		}
		silence.Stop() // what the caller does with it may take its time
		if err := each(event.Status); err != nil {
			return err
		}
		silence.Reset(c.timeout)
	}
	switch err := lines.Err(); {
	case caller.Err() != nil:
		return caller.Err()
	case errors.Is(err, bufio.ErrTooLong):
		return c.nonsense(err)
	case context.Cause(ctx) != nil:
		return c.explain(context.Cause(ctx))
	default:
		return c.ended(err)
	}
}

// wholeLines splits like bufio.ScanLines, and leaves out a last line without an end:
// a daemon that was killed while it wrote has not talked nonsense.
func wholeLines(data []byte, atEOF bool) (advance int, line []byte, err error) {
	if i := bytes.IndexByte(data, '\n'); i >= 0 {
		return i + 1, data[:i], nil
	}
	if atEOF {
		return len(data), nil, nil
	}
	return 0, nil, nil
}

// call makes a request and decodes the answer into v.
func (c *Client) call(ctx context.Context, method, path string, v any) error {
	if _, limited := ctx.Deadline(); !limited {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, c.timeout)
		defer cancel()
	}
	response, err := c.do(ctx, method, path)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	body, err := read(response)
	if err != nil {
		return c.explain(err)
	}
	if err := decode(body, v); err != nil {
		return c.nonsense(err)
	}
	return nil
}

// do makes a request, and makes an error of every answer but 200.
func (c *Client) do(ctx context.Context, method, path string) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, method, "http://topdog"+path, nil)
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

// decode takes an answer in. Fields that this version does not know are left
// out: the daemon may be newer than its client, between an update and a restart.
func decode(body []byte, v any) error {
	if body = bytes.TrimSpace(body); len(body) == 0 || body[0] != '{' {
		return errors.New("the answer is no JSON object")
	}
	return json.Unmarshal(body, v)
}

// refused makes an error of an answer that is one.
func (c *Client) refused(code int, body []byte) error {
	var f failure
	if err := decode(body, &f); err != nil || f.Error == "" {
		return c.nonsense(fmt.Errorf("HTTP status %d", code))
	}
	e := &Error{Code: code, Message: f.Error, Hint: f.Hint}
	if code == http.StatusForbidden {
		e.Err = ErrDenied
	}
	return e
}

func (c *Client) nonsense(err error) error {
	return &Error{
		Message: fmt.Sprintf("what answers on %s does not talk like topdog (%v)", c.path, err),
		Hint:    "see whether `socket` in the configuration is the daemon's, and restart it if topdog was just updated",
		Err:     err,
	}
}

// ended says that the daemon went away in the middle; err may be nil.
func (c *Client) ended(err error) error {
	return &Error{
		Message: fmt.Sprintf("the topdog daemon on %s ended meanwhile", c.path),
		Hint:    "systemctl status topdog",
		Err:     errors.Join(ErrNotRunning, err),
	}
}

// explain says in words, and with what to do, why a request failed.
func (c *Client) explain(err error) error {
	switch {
	case errors.Is(err, context.Canceled):
		return err // whoever cancelled knows why
	case errors.Is(err, context.DeadlineExceeded), os.IsTimeout(err):
		return &Error{
			Message: fmt.Sprintf("the topdog daemon on %s did not answer in time", c.path),
			Hint:    "journalctl -u topdog may tell why",
			Err:     err,
		}
	case errors.Is(err, fs.ErrNotExist):
		return &Error{
			Message: fmt.Sprintf("the topdog daemon does not run here (no %s)", c.path),
			Hint:    "systemctl start topdog",
			Err:     ErrNotRunning,
		}
	case errors.Is(err, unix.ECONNREFUSED):
		return c.refusedByKernel()
	case errors.Is(err, fs.ErrPermission):
		return &Error{
			Message: fmt.Sprintf("no permission to talk to the topdog daemon on %s", c.path),
			Hint:    "use sudo, or join " + c.group() + " and log in again",
			Err:     errors.Join(ErrDenied, err),
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
		return &Error{
			Message: fmt.Sprintf("%s is no socket", c.path),
			Hint:    "see `socket` in the configuration",
			Err:     ErrNotRunning,
		}
	}
	return &Error{
		Message: fmt.Sprintf("the topdog daemon does not run any more (nobody answers on %s)", c.path),
		Hint:    "systemctl restart topdog",
		Err:     ErrNotRunning,
	}
}

// group names the group that may connect.
func (c *Client) group() string {
	if info, err := os.Stat(c.path); err == nil {
		if gid, ok := groupOf(info); ok && gid != 0 { // nobody should join the group root
			return groupName(gid)
		}
	}
	return "the socket's group"
}
