package console

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"time"
)

// Watch calls each with a status at once, after every change and every second,
// until ctx ends, each fails, or the daemon goes away; it returns why.
func (c *Client) Watch(ctx context.Context, each func(Status) error) error {
	caller := ctx
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	timeout := time.AfterFunc(c.timeout, func() { cancel(context.DeadlineExceeded) })
	defer timeout.Stop()

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
			return c.badAnswer(err)
		}
		if event.Error != "" {
			return &requestError{message: event.Error, hint: event.Hint}
		}
		timeout.Stop() // what the caller does with it may take its time
		if err := each(event.Status); err != nil {
			return err
		}
		timeout.Reset(c.timeout)
	}
	switch err := lines.Err(); {
	case caller.Err() != nil:
		return caller.Err()
	case errors.Is(err, bufio.ErrTooLong):
		return c.badAnswer(err)
	case context.Cause(ctx) != nil:
		return c.explain(context.Cause(ctx))
	default:
		return c.ended(err)
	}
}

// wholeLines splits like bufio.ScanLines, and leaves out a last line without an end:
// a daemon that was killed while it wrote has sent no bad answer.
func wholeLines(data []byte, atEOF bool) (advance int, line []byte, err error) {
	if i := bytes.IndexByte(data, '\n'); i >= 0 {
		return i + 1, data[:i], nil
	}
	if atEOF {
		return len(data), nil, nil
	}
	return 0, nil, nil
}
