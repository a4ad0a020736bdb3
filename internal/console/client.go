package console

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"
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
